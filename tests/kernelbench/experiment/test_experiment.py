"""Experiments from file to report, on the landscape and on a device."""

import contextlib
import json
import math
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from logs import NO_LOGS, judged, no_log
from logs import run as run_directory

from harness.solution.includes import digest_of
from kernelbench.cli import main
from kernelbench.experiment import figures, on_device, outcomes, running
from kernelbench.experiment.forecast import forecast
from kernelbench.experiment.outcomes import Finished
from kernelbench.experiment.plan import LIMITS, Cell, ExperimentError, parse, read
from kernelbench.experiment.report import report
from kernelbench.experiment.running import spent
from kernelbench.experiment.store import DEFINITION, Store, _read, finished
from kernelbench.metrics.scheduling import Trace, Unit
from kernelbench.solvers.log.journal import Attempt, Call, Journal

LANDSCAPE = """
name = "try"
budget = 4
seeds = [0, 1]
repeats = 2
[landscape]
problems = 2
[[variant]]
name = "refine"
solver = "refine"
[[variant]]
name = "samples"
solver = "best_of_n"
"""


@pytest.fixture
def kb(tmp_path):
    def kb(text, *options, out="out"):
        path = tmp_path / "experiment.toml"
        path.write_text(text)
        return CliRunner().invoke(main, ["experiment", str(path), "-o", str(tmp_path / out), *options])

    return kb


# -- figures, by hand --------------------------------------------------------------------------------------------------


def run_of(variant, seed, repeat, *speedups, tokens=10.0, usd=0.1):
    """A run of one problem a list, whose attempts have these speedups."""
    attempt = lambda problem, speedup: outcomes.judged(judged(problem, speedup), lambda result: "no_issues")  # noqa: E731
    traces = [
        Trace(f"1/{number}", None, tuple(Unit((attempt(f"1/{number}", speedup),), tokens, usd) for speedup in of))
        for number, of in enumerate(speedups, 1)
    ]
    return Finished(Cell(variant, seed, repeat), traces)


@pytest.fixture
def compared():
    """Two variants, two repeats; the second variant is twice as fast on the first problem."""
    definition = {
        "name": "x", "problems": "1/1,1/2", "repeats": 2,
        "variant": [{"name": "a", "solver": "refine"}, {"name": "b", "solver": "refine"}],
    }  # fmt: skip
    runs = [
        run_of("a", 0, 0, [0.5, 2.0], [0.5]), run_of("a", 0, 1, [2.0], [0.5]),
        run_of("b", 0, 0, [4.0], [0.5, 3.0]), run_of("b", 0, 1, [4.0], [0.5]),
    ]  # fmt: skip
    return figures.figures(parse(definition), runs)


def test_means_are_over_all_problems_of_all_runs(compared):
    a, b = compared["variants"]
    assert a["geometric_mean"]["value"] == pytest.approx(1.0)
    assert b["geometric_mean"]["value"] == pytest.approx((4 * 3 * 4 * 0.5) ** 0.25)
    assert b["median"]["value"] == pytest.approx(3.5)
    assert a["fallback"]["value"] == pytest.approx(math.sqrt(2))
    assert a["attempts"] == 5 and a["tokens"] == 50 and a["usd"] == pytest.approx(0.5)


UNPRICED = {"name": "x", "problems": "1/1", "repeats": 3, "variant": [{"name": "a", "solver": "refine"}]}


def test_a_cost_of_which_a_part_is_not_known_is_not_known():
    """Without a price for one of two models, 0.10 USD were told as what both had cost."""
    experiment, runs = parse(UNPRICED), [run_of("a", 0, 0, [2.0]), run_of("a", 0, 1, [2.0], usd=None)]
    (known,) = report(experiment, runs[:1], "kb", "today").data["variants"]
    made = report(experiment, runs, "kb", "today")
    (variant,) = made.data["variants"]
    assert (known["tokens"], known["usd"]) == (10, 0.1) and (variant["tokens"], variant["usd"]) == (20, None)
    (table,) = next(section for section in made.sections if section.title == "Variants").tables
    assert [*zip(table.headers, table.rows[0])][-2:] == [("tokens", "20"), ("USD", "-")]
    assert spent(runs)["usd"] == 0.1  # a ceiling counts what it knows


def test_a_forecast_of_what_was_measured_without_a_cost_knows_none():
    """It said 0.00 USD, measured."""
    finished_runs = {run.cell: run for run in [run_of("a", 0, 0, [2.0], tokens=None, usd=None)]}
    experiment = parse(UNPRICED)
    left = [cell for cell in experiment.cells() if cell not in finished_runs]
    (found,) = forecast(experiment, SimpleNamespace(finished=finished_runs, left=lambda: left))
    assert (found.runs, found.tokens, found.usd, found.seconds, found.source) == (2, None, None, 0.0, "measured")


def test_runs_without_problems_have_no_figures():
    """A log of others may have some."""
    definition = {
        "name": "x", "problems": "1/1", "variant": [{"name": name, "solver": "refine"} for name in ("a", "b")],
    }  # fmt: skip
    found = figures.figures(parse(definition), [run_of("a", 0, 0), run_of("b", 0, 0)])
    assert found["variants"][0]["geometric_mean"]["value"] is None
    assert found["compared"][0]["ratio"]["value"] is None


def test_fast_p_and_attempt_fast_p(compared):
    a, b = compared["variants"]
    assert a["at_least"]["2"]["value"] == 0.5 and b["at_least"]["2"]["value"] == 0.75
    assert a["attempt_fast_p"] == [[1, 0.25], [2, 0.5]]


def test_the_cv_is_that_of_the_means_of_repeated_runs(compared):
    """b: means sqrt(12) and sqrt(2), so that the CV is their standard deviation over their mean."""
    a, b = compared["variants"]
    means = math.sqrt(12), math.sqrt(2)
    deviation = abs(means[0] - means[1]) / math.sqrt(2)
    assert a["cv"]["value"] == pytest.approx(0.0)
    assert b["cv"]["value"] == pytest.approx(deviation / (sum(means) / 2))


def test_variants_are_compared_pair_by_pair(compared):
    (row,) = compared["compared"]
    assert row["name"] == "b" and row["over"] == "a"
    assert row["ratio"]["value"] == pytest.approx(24**0.25)
    assert row["signed_area"]["value"] == pytest.approx((4 + 3 + 4 + 0.5) / 4 - (2 + 0.5) / 2)


def test_intervals_draw_whole_clusters(compared):
    """The problems are two clusters: the extreme draws are those of one problem alone."""
    b = compared["variants"][1]
    assert b["geometric_mean"]["low"] == pytest.approx(math.sqrt(3 * 0.5))
    assert b["geometric_mean"]["high"] == pytest.approx(4.0)


# -- the command -------------------------------------------------------------------------------------------------------


def test_a_landscape_from_file_to_report(kb, tmp_path):
    done = kb(LANDSCAPE)
    assert done.exit_code == 0, done.output
    page, text = (tmp_path / "out" / name for name in ("report.html", "report.md"))
    for word in ("Attempt-Fast-p(2)", "signed area", "CV of runs", "without gaming", "raw median", "best policy"):
        assert word in text.read_text() and word in page.read_text(), word
    assert "data:image/svg+xml" in page.read_text() and (tmp_path / "out/figures/pareto.svg").exists()
    data = json.loads((tmp_path / "out/report.json").read_text())
    assert [of["runs"] for of in data["variants"]] == [4, 4]


def test_repeats_of_a_seed_differ_and_a_repeated_experiment_does_not(kb, tmp_path):
    kb(LANDSCAPE)
    kb(LANDSCAPE, out="again")
    once, again = finished(tmp_path / "out"), finished(tmp_path / "again")
    assert {cell: one.traces for cell, one in once.items()} == {cell: one.traces for cell, one in again.items()}
    assert once[Cell("refine", 0, 0)].traces != once[Cell("refine", 0, 1)].traces


@pytest.mark.slow
def test_finished_runs_are_kept_and_more_may_be_added(kb, tmp_path):
    kb(LANDSCAPE)
    log = tmp_path / "out/cells.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:3]) + lines[3][:40])  # killed while it wrote the fourth
    assert kb(LANDSCAPE).exit_code == 2  # without --resume nothing is overwritten
    assert kb(LANDSCAPE.replace("[0, 1]", "[0, 1, 2]"), "--resume").exit_code == 0
    after = log.read_text().splitlines(keepends=True)
    assert after[:3] == lines[:3] and len(after) == 12


ONE = {"format": 1, "variant": "a", "seed": 0, "repeat": 0, "seconds": 1, "problems": []}
PART = {"problem": "1/1", "sol_fp16_ms": 1.0, "units": []}


@pytest.mark.parametrize(
    "record",
    [
        [], 5, {**ONE, "variant": []}, {**ONE, "seconds": "x"}, {**ONE, "problems": [{**PART, "problem": 5}]},
        {**ONE, "problems": [{**PART, "units": 5}]},
        *({**ONE, "problems": [{**PART, "units": [{"attempts": [one], "tokens": 1, "usd": 1}]}]}
          for one in (list("abcde"), [1, 2, 2, 0.1, "<script>"], [1, -3, 0, -1, "no_issues"], [1],
                      [1, 2, 2, -1, "no_issues"])),
    ],
)  # fmt: skip
def test_finished_runs_of_others_with_values_of_other_types_are_one_clear_error(tmp_path, record):
    (tmp_path / "cells.jsonl").write_text(json.dumps(ONE) + "\n")
    assert len(finished(tmp_path)) == 1
    (tmp_path / "cells.jsonl").write_text(json.dumps(record) + "\n")
    with pytest.raises(ExperimentError, match="cells.jsonl is damaged"):
        finished(tmp_path)


def test_runs_of_others_that_cannot_be_paired_are_one_clear_error(tmp_path):
    other = {**ONE, "variant": "other", "problems": [PART, {**PART, "problem": "1/2"}]}
    (tmp_path / "cells.jsonl").write_text(f"{json.dumps(ONE)}\n{json.dumps(other)}\n")
    with pytest.raises(ExperimentError, match="of other problems than a run of the same seed and repeat"):
        finished(tmp_path)


@pytest.mark.parametrize("definition", [[], 5, {"variant": 5}, {"variant": [5]}, {"variant": [{}]}])
def test_a_definition_of_others_with_values_of_other_types_is_one_clear_error(tmp_path, definition):
    (tmp_path / DEFINITION).write_text(json.dumps(definition))
    with pytest.raises(ExperimentError, match=f"{DEFINITION} cannot be read"):
        _read(tmp_path / DEFINITION)


def test_an_experiment_is_not_continued_with_another_solver(kb, tmp_path):
    """Runs of two solvers were pooled as one variant."""
    solver = tmp_path / "own.py"
    own = LANDSCAPE.replace('solver = "refine"', f'solver = "{solver}"')
    solver.write_text("def solve(task):\n    yield task.llm.ask(task.prompt())\n")
    assert kb(own).exit_code == 0
    assert kb(own, "--resume").exit_code == 0
    solver.write_text(solver.read_text() + "# another\n")
    done = kb(own, "--resume")
    assert done.exit_code == 2 and "the solver of refine changed; choose another --out" in done.output


@pytest.mark.parametrize(
    "change",
    [
        ('budget = 4', 'budget = 4\nschedule = "zz"'), ("problems = 2", 'problems = 2\nauthor = "zz"'),
        ('solver = "refine"', "solver_command = '\"unclosed'"),
    ],
)  # fmt: skip
def test_what_a_plan_names_and_there_is_not_is_one_clear_error(kb, change):
    done = kb(LANDSCAPE.replace(*change))
    assert done.exit_code == 2 and "error: " in done.output and not isinstance(done.exception, ValueError)


@pytest.mark.parametrize(
    ("key", "shown"), [("MY_TOKEN", "MY_TOKEN"), (r"A\nfinished runs: 9", r"A\nfinished runs: 9")]
)
def test_a_plan_says_where_it_sends_which_key(tmp_path, key, shown):
    (tmp_path / "e.toml").write_text(
        'name = "e"\nproblems = "1/19"\nbudget = 1\n[model]\nname = "m"\nbase_url = "http://a.example/v1"\n'
        f'key_variable = "{key}"\n[[variant]]\nname = "a"\nsolver = "refine"\n'
    )
    done = CliRunner().invoke(main, ["experiment", str(tmp_path / "e.toml"), "--dry-run"])
    assert f"Models are asked at http://a.example/v1 with the key in {shown}" in done.output


def test_a_variant_whose_solver_fails_leaves_the_others_alone(kb, tmp_path):
    done = kb(LANDSCAPE.replace('solver = "refine"', 'solver = "refine"\nsettings = {feedback = "X"}'))
    assert done.exit_code == 3 and "not finished: refine seed=0 repeat=0: the solver failed" in done.output
    assert {cell.variant for cell in finished(tmp_path / "out")} == {"samples"}
    assert (tmp_path / "out/report.html").exists()


PROBLEMS = """
name = "of a folder"
problems = "all"
budget = 1
[evaluation]
device = "cpu"
problem_dir = "{folder}"
[[variant]]
name = "template"
solver = "template"
"""


@pytest.mark.parametrize("planted", ["cells.jsonl", "runs/template/s0_r0/results.jsonl"])
def test_a_new_experiment_takes_no_runs_of_others_for_its_own(kb, tmp_path, planted):
    """An archive brought them beside a plan, where a new experiment of it looks by default."""
    (tmp_path / "out" / planted).parent.mkdir(parents=True)
    (tmp_path / "out" / planted).touch()
    done = kb(LANDSCAPE)
    assert done.exit_code == 2 and "a new experiment begins in an empty folder" in done.output


def test_one_process_at_a_time_makes_the_runs_of_an_experiment(kb, tmp_path):
    """Two spent the whole limit each, and made the same runs."""
    assert kb(LANDSCAPE).exit_code == 0
    with contextlib.closing(Store(tmp_path / "out", read(tmp_path / "experiment.toml"), resume=True)):
        done = kb(LANDSCAPE, "--resume")
    assert done.exit_code == 2 and "another kb is writing into" in done.output
    assert kb(LANDSCAPE, "--resume").exit_code == 0


def test_an_experiment_is_not_continued_with_other_problems(kb, tmp_path):
    """A run of them was made, paid for, and could not stand beside the others."""
    folder = tmp_path / "problems" / "level1"
    folder.mkdir(parents=True)
    for number in (1, 2):
        (folder / f"{number}_x.py").write_text("")
    text = PROBLEMS.format(folder=folder.parent)
    (tmp_path / "before.toml").write_text(text)
    with contextlib.closing(Store(tmp_path / "out", read(tmp_path / "before.toml"), resume=False)) as store:
        store.add(run_of("template", 0, 0, [0.5]))
    more = text + '[[variant]]\nname = "more"\nsolver = "template"\n'
    done = kb(more, "--resume")
    assert done.exit_code == 2 and "template seed=0 repeat=0 is of other problems than all now" in done.output
    assert not (tmp_path / "out/runs").exists()


def of_one_problem(tmp_path):
    """Folder of a problem, and the text of a plan on it, which is in ``before.toml`` too."""
    folder = tmp_path / "problems" / "level1"
    folder.mkdir(parents=True)
    (folder / "1_x.py").write_text("x = 1\n")
    text = PROBLEMS.format(folder=folder.parent)
    (tmp_path / "before.toml").write_text(text)
    return folder, text


def test_an_experiment_is_not_continued_with_another_text_of_a_problem(kb, tmp_path):
    """A finished run of the old one was paired with one of the new."""
    folder, text = of_one_problem(tmp_path)
    with contextlib.closing(Store(tmp_path / "out", read(tmp_path / "before.toml"), resume=False)) as store:
        store.add(run_of("template", 0, 0, [0.5]))
        kept = judged("1/1", 0.5, problem_sha256=digest_of(folder / "1_x.py"))
        run_directory(store.run_folder(Cell("template", 0, 0)), kept)
    (folder / "1_x.py").write_text("x = 2\n")
    done = kb(text + '[[variant]]\nname = "more"\nsolver = "template"\n', "--resume")
    assert done.exit_code == 2 and "1/1 changed since template seed=0 repeat=0: choose another --out" in done.output
    assert not (tmp_path / "out/runs/more").exists()
    assert kb(text, "--resume").exit_code == 0  # it pairs nothing with it


@pytest.mark.parametrize("before, message", [
    (["GPU A"], "its finished runs are of GPU A, and this is GPU B: continue it there, or choose another --out"),
    (["GPU B"], "every check held"),
    (["GPU B", "GPU A"], "more seed=0 repeat=0 is of GPU A, and an earlier run of GPU B: choose another --out"),
])  # fmt: skip
def test_an_experiment_is_not_continued_on_another_device(kb, tmp_path, monkeypatch, before, message):
    """Figures paired runs of two GPUs."""
    _, text = of_one_problem(tmp_path)
    with contextlib.closing(Store(tmp_path / "out", read(tmp_path / "before.toml"), resume=False)) as store:
        for name, device in zip(("template", "more"), before):
            store.add(run_of(name, 0, 0, [0.5]))
            run_directory(store.run_folder(Cell(name, 0, 0)), judged("1/1", 0.5), device=device)

    def on_the_other(*_, watcher, **__):
        watcher.started(SimpleNamespace(device={"name": "GPU B"}), 1)
        raise ExperimentError("every check held")

    monkeypatch.setattr(on_device, "solve", on_the_other)
    more = "".join(f'[[variant]]\nname = "{name}"\nsolver = "template"\n' for name in ("more", "most"))
    done = kb(text + more, "--resume")
    assert done.exit_code == 2 and message in done.output


@pytest.mark.parametrize("given, message", [
    ({"baseline": "eager,b.jsonl"}, "give it baselines timed in turn"),
    ({"workload": "small,full"}, "an experiment is of one workload"),
])  # fmt: skip
def test_what_a_solver_could_not_be_told_is_refused(given, message):
    """A stored baseline was accepted, and then no solution had a speedup over it."""
    variant = {"name": "a", "solver": "template"}
    experiment = parse({"name": "x", "problems": "1/1", "variant": [variant], "evaluation": given})
    with pytest.raises(ExperimentError, match=message):
        on_device.options_of(experiment)


def test_a_landscape_is_not_continued_beside_runs_of_other_problems(kb, tmp_path):
    """A run was added that made the folder one that nothing could read."""
    assert kb(LANDSCAPE).exit_code == 0
    cells = tmp_path / "out" / "cells.jsonl"
    *_, last = lines = cells.read_text().splitlines()
    more = [json.loads(line) for line in lines if json.loads(line)["variant"] != json.loads(last)["variant"]]
    for cell in more:
        cell["problems"].append(cell["problems"][0] | {"problem": "1/999"})
    cells.write_text("".join(json.dumps(cell) + "\n" for cell in more))
    before = cells.read_text()
    done = kb(LANDSCAPE, "--resume")
    assert done.exit_code == 2 and "is of other problems than those of its landscape" in done.output
    assert cells.read_text() == before


@pytest.fixture
def begun(tmp_path):
    """Open the store of a plan with these variants, as its runs would be made."""

    def begun(*variants, resume=True):
        (tmp_path / "experiment.toml").write_text(LANDSCAPE[: LANDSCAPE.index("[[variant]]")] + "".join(variants))
        with contextlib.closing(Store(tmp_path / "out", read(tmp_path / "experiment.toml"), resume)):
            pass

    return begun


def variant(name, solver, more=""):
    return f'[[variant]]\nname = "{name}"\nsolver = "{solver}"\n{more}\n'


@pytest.mark.parametrize("other", [variant("b", "one_shot"), variant("b", "best_of_n", "budget = 3")])
def test_a_variant_that_was_left_out_does_not_come_back_as_another(begun, other):
    """Its finished runs stood under the name of the new one, as its figures."""
    a, b = variant("a", "refine"), variant("b", "best_of_n")
    begun(a, b, resume=False)
    for plan in ([a], [a], [a, b], [a]):  # what was left out before stays so, and comes back as it was
        begun(*plan)
    with pytest.raises(ExperimentError, match="variant b.* changed; choose another --out"):
        begun(a, other)


def test_a_variant_that_was_left_out_does_not_come_back_with_another_solver_of_that_name(begun, tmp_path):
    solver = tmp_path / "own.py"
    solver.write_text("def solve(task):\n    yield task.llm.ask(task.prompt())\n")
    a, b = variant("a", "refine"), variant("b", solver)
    begun(a, b, resume=False)
    begun(a)
    solver.write_text(solver.read_text() + "# another\n")
    with pytest.raises(ExperimentError, match="the solver of b changed; choose another --out"):
        begun(a, b)


@pytest.mark.parametrize("name", ["task.md", "own/more.md", "examples/fused_gelu/solution.py"])
def test_an_experiment_is_not_continued_with_other_prompts(begun, tmp_path, name):
    """Runs of a variant were of two texts of them."""
    (path := tmp_path / "prompts" / name).parent.mkdir(parents=True)
    path.write_text("Write a kernel.\n")
    (path.parent / "notes.txt").write_text("no prompt")
    a, b = variant("a", "refine"), variant("b", "refine", f'prompts = "{tmp_path / "prompts"}"')
    begun(a, b, resume=False)
    begun(a)
    (tmp_path / "prompts/notes.txt").write_text("changed")
    begun(a, b)
    path.write_text("Write a faster kernel.\n")
    with pytest.raises(ExperimentError, match="the prompts of b changed; choose another --out"):
        begun(a, b)


@pytest.mark.slow
def test_a_solver_is_found_from_where_the_command_runs_also_by_workers(kb, tmp_path, monkeypatch):
    """From 16 runs on they looked for it in the root of all folders."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "_WORTH_WORKERS", 2)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    (tmp_path / "own.py").write_text("def solve(task):\n    yield task.llm.ask(task.prompt())\n")
    done = kb(LANDSCAPE.replace('"best_of_n"', '"own.py"'))
    assert done.exit_code == 0 and len(finished(tmp_path / "out")) == 8, done.output


def test_a_look_at_what_an_empty_folder_has_cost_begins_no_logs(tmp_path):
    """A run that was killed between its folder and its configuration could then never be begun."""
    assert on_device.spent_in(tmp_path) == on_device.spent_in(tmp_path / "none") == dict.fromkeys(LIMITS, 0.0)
    assert not list(tmp_path.iterdir())


def test_what_a_program_says_that_its_attempts_cost_counts_before_its_run_is_finished(tmp_path):
    """Only calls of our own counted: 5 USD were 0."""
    made = run_directory(tmp_path / "run")
    journal = Journal(made.path)
    journal.add_attempt(Attempt("1/19", 1, None, 1, [], "", {"prompt": 10, "completion": 1}, 5.0, 0.0), "py", "")
    journal.add_attempt(Attempt("1/20", 1, None, 1, [], "", {"prompt": 7}, 1.0, 0.0), "py", "")
    journal.add_call(Call("1/20", 1, "", [], {}, "", None, {"prompt": 7}, 1.0, 0.0, 1))  # which its attempt has too
    journal.note_seconds(3.0)
    assert on_device.spent_in(made.path) == {"attempts": 2, "tokens": 18, "usd": 6.0, "seconds": 3.0}


def test_another_experiment_is_not_continued(kb):
    kb(LANDSCAPE)
    done = kb(LANDSCAPE.replace("budget = 4", "budget = 5"), "--resume")
    assert done.exit_code == 2 and "budget changed" in done.output


@pytest.mark.parametrize("key", ["solvers", "variant", "left_out"])
def test_an_experiment_with_a_null_in_the_place_of_what_it_may_lack_is_read(kb, tmp_path, key):
    kb(LANDSCAPE)
    definition = tmp_path / "out" / "experiment.json"
    definition.write_text(json.dumps(json.loads(definition.read_text()) | {key: None}))
    done = kb(LANDSCAPE, "--resume")
    assert done.exit_code == (2 if key == "variant" else 0) and "please report this" not in done.output


@pytest.mark.slow
@pytest.mark.parametrize("kind", NO_LOGS)
def test_an_experiment_of_others_that_holds_no_plain_files_is_refused_at_once(tmp_path, kind):
    assert finished(tmp_path) == {}
    for name, reads in (("cells.jsonl", finished), ("experiment.json", lambda folder: _read(folder / DEFINITION))):
        no_log(tmp_path / name, kind)
        with pytest.raises(ExperimentError, match=f"{name} .*(not a plain file|too large)"):
            reads(tmp_path)


def test_a_folder_that_nobody_named_is_not_made_behind_a_link(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "mine")
    (tmp_path / "experiment.toml").write_text(LANDSCAPE)
    done = CliRunner().invoke(main, ["experiment", "experiment.toml"])
    assert done.exit_code == 2 and "runs is a link; name the folder with -o" in done.output
    assert not list((tmp_path / "mine").iterdir())


def test_the_names_of_variants_are_text_in_a_report(kb, tmp_path):
    name = "<img src=x onerror=alert(1)> @admin $frac{$"
    compared = LANDSCAPE.replace("repeats = 2", f'repeats = 2\ncompare_with = "{name}"')
    assert kb(compared.replace('"refine"\n', f'"{name}"\n', 1)).exit_code == 0
    shown = (tmp_path / "out/report.md").read_text()
    assert "&#60;img" in shown and "<img" not in shown and "@admin" not in shown


def test_nothing_is_written_through_a_link_in_an_experiment_of_others(kb, tmp_path):
    kb(LANDSCAPE)
    mine = tmp_path / "mine"
    mine.mkdir()
    for name in ("report.html", "report.md", "report.json", "figures/pareto.svg"):
        link, target = tmp_path / "out" / name, mine / Path(name).name
        shutil.move(link, target)
        link.symlink_to(target)
    before = {path.name: path.read_bytes() for path in mine.iterdir()}
    more = LANDSCAPE.replace("[0, 1]", "[0, 1, 2]")
    assert kb(more, "--resume").exit_code == 0
    assert {path.name: path.read_bytes() for path in mine.iterdir()} == before
    assert not (tmp_path / "out/report.md").is_symlink()
    (tmp_path / "out/runs").mkdir()
    (tmp_path / "out/runs/refine").symlink_to(mine)
    done = kb(more, "--resume")
    assert done.exit_code == 2 and "runs/refine is a link: choose another --out" in done.output
    (tmp_path / "out/runs/refine").unlink()
    shutil.move(tmp_path / "out/experiment.json", mine / "experiment.json")
    (tmp_path / "out/experiment.json").symlink_to(mine / "experiment.json")
    done = kb(more, "--resume")
    assert done.exit_code == 2 and "it is not a plain file, but a link" in done.output
    (tmp_path / "out/experiment.json").unlink()
    shutil.move(mine / "experiment.json", tmp_path / "out/experiment.json")
    shutil.move(tmp_path / "out/figures", mine / "figures")
    (tmp_path / "out/figures").symlink_to(mine / "figures")
    done = kb(more, "--resume")
    assert done.exit_code == 2 and "figures is a link: choose another --out" in done.output


def test_no_run_is_made_behind_a_link_that_came_since_the_experiment_was_opened(tmp_path):
    store = SimpleNamespace(folder=tmp_path / "out")
    (tmp_path / "out/runs/a").mkdir(parents=True)
    assert Store.run_folder(store, Cell("a", 1, 0)) == tmp_path / "out/runs/a/s1_r0"
    (tmp_path / "out/runs/a").rename(tmp_path / "mine")
    (tmp_path / "out/runs/a").symlink_to(tmp_path / "mine")
    with pytest.raises(ExperimentError, match="a link leads to .*s1_r0: put the folder in its place"):
        Store.run_folder(store, Cell("a", 1, 0))


def test_a_ceiling_ends_it_and_what_is_finished_is_reported(kb, tmp_path):
    done = kb(LANDSCAPE + "[limits]\nattempts = 20\n")
    assert done.exit_code == 3 and "limit of attempts is reached" in done.output
    runs = finished(tmp_path / "out")
    assert 20 <= spent(list(runs.values()))["attempts"] < 20 + 8
    assert (tmp_path / "out/report.md").exists()
    assert kb(LANDSCAPE, "--resume").exit_code == 0


def test_a_dry_run_says_what_it_will_cost_and_runs_nothing(kb, tmp_path):
    done = kb(LANDSCAPE + "[estimate]\ntokens = 1000\nusd = 0.5\n", "--dry-run")
    assert done.exit_code == 0 and not (tmp_path / "out").exists()
    assert "32,000" in done.output and "16.00" in done.output and "estimate" in done.output
    kb(LANDSCAPE)
    with open(tmp_path / "out/cells.jsonl", "a") as log:
        log.write('{"half')  # another process writes it at this moment
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir() if path.is_file()}
    left = kb(LANDSCAPE.replace("[0, 1]", "[0, 1, 2]"), "--dry-run")
    assert "measured" in left.output and " 16 " in left.output
    assert before == {path: path.read_bytes() for path in (tmp_path / "out").iterdir() if path.is_file()}


@pytest.mark.parametrize(
    "change", [('name = "try"', f'name = "{"x" * 300}"'), ('solver = "refine"', f'solver = "{"x" * 5000}"')]
)
def test_what_no_file_system_takes_is_wrong_usage(kb, change):
    done = kb(LANDSCAPE.replace(*change), out="x" * 300 if "name = " in change[0] else "out")
    assert done.exit_code == 2 and "File name too long" in done.output, done.output


def test_a_mistake_in_the_file_is_wrong_usage(kb):
    done = kb(LANDSCAPE.replace('"best_of_n"', '"best"'))
    assert done.exit_code == 2 and "there is no solver best" in done.output


@pytest.mark.slow
def test_on_a_device_each_run_is_a_run_directory(kb, tmp_path):
    text = """
name = "device"
problems = "1/19"
budget = 2
[evaluation]
device = "cpu"
timeout = 20
[[variant]]
name = "template"
solver = "template"
"""
    done = kb(text)
    assert done.exit_code == 0, done.output
    folder = tmp_path / "out/runs/template/s0_r0"
    assert (folder / "results.jsonl").exists()
    (one,) = finished(tmp_path / "out").values()
    assert [trace.problem for trace in one.traces] == ["1/19"] and spent([one])["attempts"] == 2


FAILING = """
name = "failing"
problems = "1/19"
budget = 3
seeds = [0, 1, 2, 3]
[model]
name = "model"
base_url = "{address}"
price = [1.0, 1.0]
[evaluation]
device = "cpu"
timeout = 20
[limits]
attempts = 2
[[variant]]
name = "a"
solver = "refine"
"""


def attempts_in(folder):
    return sum(len(path.read_text().splitlines()) for path in folder.glob("runs/*/*/trajectory.jsonl"))


@pytest.mark.slow
def test_what_runs_that_failed_have_spent_counts_against_the_limits(kb, tmp_path, stand_in):
    """It did not: each run could spend as much as the whole experiment may, and again with each --resume."""
    refusal = stand_in.Fault(400, "no")
    with stand_in.StandIn(lambda request, number: refusal if number % 2 == 0 else "no code") as server:
        text = FAILING.format(address=server.base_url)
        done = kb(text)
        assert done.exit_code == 3 and "limit of 1 attempts is reached" in done.output, done.output
        assert "not finished: a" in done.output
        assert attempts_in(tmp_path / "out") == 2
        again = kb(text, "--resume")
        assert again.exit_code == 3 and "limit of 1 attempts is reached" in again.output, again.output
        assert attempts_in(tmp_path / "out") == 2


@pytest.mark.parametrize("place", ["left_out/s0_r0", "a/s9_r0"])
def test_what_runs_have_spent_that_are_not_in_the_plan_any_more_counts_against_limits(kb, tmp_path, stand_in, place):
    """A variant, or a seed, that was taken out after 40 of 50 USD left 50 for the others."""
    made = run_directory(tmp_path / "out/runs" / place)
    for sample in (1, 2):
        Journal(made.path).add_attempt(Attempt("1/19", sample, None, 1, [], "", {}, None, 0.0), "py", "")
    with stand_in.StandIn(lambda request, number: "no code") as server:
        done = kb(FAILING.format(address=server.base_url), "--resume")
        assert done.exit_code == 3 and "limit of attempts is reached" in done.output, done.output
        assert not server.requests


def test_a_run_that_is_finished_has_its_cost_in_its_line_only(tmp_path):
    for place in ("a/s0_r0", "a/s1_r0", "gone/s0_r0"):
        run_directory(tmp_path / "runs" / place)
    with contextlib.closing(Store(tmp_path, parse(UNPRICED), resume=True)) as store:
        store.add(run_of("a", 0, 0, [2.0]))
        store.add(run_of("gone", 0, 0, [2.0]))
        assert store.begun() == [tmp_path / "runs/a/s1_r0"]


@pytest.mark.slow
def test_the_time_of_a_run_is_that_of_all_its_lives(kb, tmp_path, stand_in):
    """It was that of the last, and a limit of seconds forgot the others."""
    refusal = stand_in.Fault(400, "no")
    with stand_in.StandIn(lambda request, number: refusal if number == 1 else "no code") as server:
        text = FAILING.format(address=server.base_url).replace("attempts = 2", "").replace(", 1, 2, 3]", "]")
        assert kb(text).exit_code == 3
        with open(tmp_path / "out/runs/a/s0_r0/schedule.jsonl", "a") as log:
            log.write(json.dumps({"problem": "", "unit": 0, "seconds": 1000.0}) + "\n")
        assert kb(text, "--resume").exit_code == 0
    (one,) = finished(tmp_path / "out").values()
    assert 1000 < one.seconds < 1500


@pytest.mark.slow
def test_a_run_directory_that_cannot_be_read_leaves_the_other_runs_alone(kb, tmp_path, stand_in):
    with stand_in.StandIn(lambda request, number: "no code") as server:
        text = FAILING.format(address=server.base_url).replace("attempts = 2", "").replace("budget = 3", "budget = 1")
        assert kb(text).exit_code == 0
        (tmp_path / "out/cells.jsonl").write_text("")
        (tmp_path / "out/runs/a/s1_r0/calls.jsonl").write_text("none\n")
        done = kb(text, "--resume")
        assert done.exit_code == 3 and "calls.jsonl is damaged" in done.output, done.output
        assert {cell.seed for cell in finished(tmp_path / "out")} == {0, 2, 3}
