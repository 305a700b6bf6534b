"""A directory of solutions: results are of what it holds, and of the problems as they are."""

import errno
import os

import pytest
from logs import judged

from harness.compile.cache import Cache
from harness.result import Status
from harness.solution import private_copy
from harness.solution.includes import digest_of
from harness.solution.naming import RUN_FILES
from kernelbench.evaluation import confirmation, directory
from kernelbench.evaluation.chosen import Selection
from kernelbench.evaluation.directory import Watcher, evaluate_directory, evaluate_one
from kernelbench.evaluation.executor import Evaluated, Options
from kernelbench.gate import thresholds
from kernelbench.run import Run, RunError
from kernelbench.run_files import unevaluated

PROBLEM = """import torch
class Model(torch.nn.Module):
    def forward(self, x): return {}
def get_inputs(): return [torch.rand(64)]
def get_init_inputs(): return []
"""
SOLUTION = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return {}\n"


def evaluated(tmp_path, watcher=None, selector=None, **more):
    selection = Selection(tmp_path / "solutions", selector, problem_dir=tmp_path / "problems")
    options = Options(device="cpu", cv_target=0.5, track="open", jobs=1, **more)  # in order, as they are built
    return evaluate_directory(selection, options, out=tmp_path / "run", resume=True, watcher=watcher)


def write(tmp_path, problem="x + 1", **solutions):
    for folder in ("problems/level1", "solutions"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / "problems/level1/001_own.py").write_text(PROBLEM.format(problem))
    for name, answer in solutions.items():
        (tmp_path / f"solutions/{name}.py").write_text(SOLUTION.format(answer))


def statuses(outcome):
    return {result.solution["name"]: result.status for result in outcome.run.latest()}


def test_a_result_of_another_problem_is_none(tmp_path):
    write(tmp_path, **{"1_1_s0": "1 + x", "1_1_s1": "x + 1"})
    assert statuses(evaluated(tmp_path)) == {"1_1_s0.py": Status.OK, "1_1_s1.py": Status.OK}
    assert evaluated(tmp_path).resumed == 2
    write(tmp_path, problem="x + 2")
    (tmp_path / "solutions/1_1_s1.py").unlink()
    outcome = evaluated(tmp_path)
    assert outcome.resumed == 0 and statuses(outcome) == {"1_1_s0.py": Status.WRONG_VALUE}


@pytest.mark.slow
def test_a_result_of_another_problem_is_none_where_its_solution_is_left_out_or_skipped(tmp_path):
    """It counted beside results of the new problem."""
    claim = "# kb: problem=1/1 sample=7\n" + SOLUTION
    write(tmp_path, **{f"1_1_s{sample}": "1 + x" for sample in range(2)})
    for_a_gpu = tmp_path / "solutions/1_1_s1.py"
    (tmp_path / "solutions/claims.py").write_text(claim.format("x + 1"))
    assert len(statuses(evaluated(tmp_path))) == 3
    write(tmp_path, problem="1 + x")
    for_a_gpu.write_text("import triton\n" + for_a_gpu.read_text())
    (tmp_path / "solutions/claims_too.py").write_text(claim.format("x"))
    outcome = evaluated(tmp_path)
    assert statuses(outcome) == {"1_1_s0.py": Status.OK} and len(outcome.run.results) == 4


def test_a_result_of_a_problem_that_is_not_selected_stays_though_that_has_changed(tmp_path):
    write(tmp_path, **{"1_1_s0": "1 + x"})
    evaluated(tmp_path)
    write(tmp_path, problem="x + 2", **{"1_2_s0": "1 + x"})
    (tmp_path / "problems/level1/002_own.py").write_text(PROBLEM.format("x + 1"))
    assert statuses(evaluated(tmp_path, selector="1/2")) == {"1_1_s0.py": Status.OK, "1_2_s0.py": Status.OK}


def test_a_folder_that_nobody_named_is_not_made_behind_a_link(tmp_path, monkeypatch):
    write(tmp_path, **{"1_1_s0": "1 + x"})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "runs").symlink_to("mine")
    with pytest.raises(RunError, match="runs is a link; name the folder with -o"):
        evaluate_directory(Selection(tmp_path / "solutions", problem_dir=tmp_path / "problems"), Options(device="cpu"))
    assert not list((tmp_path / "mine").iterdir())


class Writing(Watcher):
    """Somebody who makes another file right as soon as one result is there."""

    def __init__(self, path, answer):
        self.path, self.answer = path, answer

    def ended(self, item):
        self.path.write_text(SOLUTION.format(self.answer))


@pytest.mark.slow
def test_a_file_that_is_written_during_the_run_has_no_result_until_it_rests(tmp_path):
    write(tmp_path, **{"1_1_s0": "x + 1", "1_1_s1": "x"})
    outcome = evaluated(tmp_path, Writing(tmp_path / "solutions/1_1_s1.py", "x + 1"))
    assert statuses(outcome) == {"1_1_s0.py": Status.OK}
    assert [item.reason for item in outcome.skipped] == [
        "one of its files changed during the run: continue with --resume when it is written"
    ]
    assert statuses(evaluated(tmp_path)) == {"1_1_s0.py": Status.OK, "1_1_s1.py": Status.OK}


class Replacing(Writing):
    """Somebody who makes the first file another one when the last has its result."""

    def ended(self, item):
        if item.solution.name != self.path.name:
            super().ended(item)


@pytest.mark.slow
def test_a_result_is_none_where_its_file_was_replaced_before_the_end(tmp_path):
    """A gate held on a file that nobody had evaluated."""
    write(tmp_path, **{"1_1_s0": "1 + x", "1_1_s1": "x + 1"})
    outcome = evaluated(tmp_path, Replacing(tmp_path / "solutions/1_1_s0.py", "x"))
    gone = [one.solution.name for one in outcome.skipped]
    assert gone == ["1_1_s0.py"] and "changed during the run" in outcome.skipped[0].reason
    assert [r.solution["name"] for r in thresholds.results_of(outcome)] == ["1_1_s1.py"]
    assert statuses(outcome) == {"1_1_s1.py": Status.OK}


class GivenResults:
    """An executor that finds all right, by the text that the problem's file has then."""

    device, devices, torch_version = {"type": "cpu", "name": "cpu"}, 1, "2.9"

    def evaluate(self, pairs, status, workload):
        for file, solution in pairs:
            found = judged(str(file.id), 2.0, name=solution.name, sample=solution.sample)
            found.solution["sha256"], found.problem_sha256 = solution.sha256, digest_of(file.path)
            yield Evaluated(solution, found)

    def close(self):
        pass


class Saving(Watcher):
    """Somebody who saves the problem when the first solution has its result."""

    def __init__(self, tmp_path):
        self.tmp_path = tmp_path

    def ended(self, item):
        write(self.tmp_path, problem="x + 2")


@pytest.mark.parametrize("samples", [1, 2])
def test_results_are_of_the_text_that_the_problem_has_at_the_end(tmp_path, monkeypatch, samples):
    """A leaderboard had results of two texts of one problem, and a gate held on the one that is gone."""
    for opens in (directory, confirmation):
        monkeypatch.setattr(opens, "open_executor", lambda *_, **__: GivenResults())
    write(tmp_path, **{f"1_1_s{sample}": "x + 1" for sample in range(samples)})
    outcome = evaluated(tmp_path, Saving(tmp_path))
    assert [one.solution.name for one in outcome.skipped] == ["1_1_s0.py"]
    assert "its problem changed during the run" in outcome.skipped[0].reason
    left = [f"1_1_s{sample}.py" for sample in range(1, samples)]
    assert [r.solution["name"] for r in thresholds.results_of(outcome)] == left
    assert [r.solution["name"] for r in Run.load(tmp_path / "run").latest()] == left
    assert len(statuses(evaluated(tmp_path))) == samples


def test_a_run_keeps_the_threads_that_its_baselines_ran_with(tmp_path, monkeypatch):
    device = GivenResults.device | {"threads": 3}
    monkeypatch.setattr(GivenResults, "device", device)
    monkeypatch.setattr(directory, "open_executor", lambda *_, **__: GivenResults())
    write(tmp_path, **{"1_1_s0": "x + 1"})
    assert evaluated(tmp_path).run.config["threads"] == Run.load(tmp_path / "run").config["threads"] == 3


class Swapping(Watcher):
    """Somebody who has another folder in the place of the solutions' while they are built and evaluated.

    Size, times and numbers of the files in either change by that no more than by looking at them.
    """

    def __init__(self, tmp_path):
        self.swaps = [(tmp_path / "solutions", tmp_path / "mine"), (tmp_path / "others", tmp_path / "solutions")]

    def started(self, outcome, todo):
        for old, new in self.swaps:
            old.rename(new)

    def status(self, what, text):
        if what == "judging" and not text:
            for old, new in reversed(self.swaps):
                new.rename(old)
            self.swaps = []


@pytest.mark.slow
def test_the_result_is_of_the_source_that_the_record_names(tmp_path):
    """A folder was another one for as long as its file was evaluated: the record named PyTorch's way, told at 44x."""
    write(tmp_path, **{"1_1_s0": "x + 2"})
    (tmp_path / "solutions").rename(tmp_path / "others")
    write(tmp_path, **{"1_1_s0": "x + 1"})
    run = evaluated(tmp_path, Swapping(tmp_path)).run
    assert [result.status for result in run.latest()] == [Status.OK]


ADDS = 'extern "C" void solution(const float* x, float* out) { for (int n = 64; n--;) out[n] = x[n] + 1; }\n'


class Clearing(Watcher):
    """Somebody who clears the cache of builds as soon as a judge tells what it does."""

    cleared = None

    def status(self, what, text):
        if what == "judging" and ": " in text and not self.cleared:
            self.cleared = Cache().clear()


@pytest.mark.slow
def test_a_candidate_whose_library_left_the_cache_meanwhile_is_built_again(tmp_path):
    """An honest candidate was told as crashed: the judge looked for its library three times in the same place."""
    write(tmp_path)
    (tmp_path / "solutions/1_1_s0.cpp").write_text(ADDS)
    watcher = Clearing()
    assert statuses(evaluated(tmp_path, watcher)) == {"1_1_s0.cpp": Status.OK}
    assert watcher.cleared


class ClearingAlways(Clearing):
    """Somebody who clears it whenever a judge tells anything."""

    def status(self, what, text):
        self.cleared = None
        super().status(what, text)


@pytest.mark.slow
def test_a_cache_that_is_cleared_again_and_again_is_no_candidates_fault(tmp_path):
    write(tmp_path)
    (tmp_path / "solutions/1_1_s0.cpp").write_text(ADDS)
    outcome = evaluated(tmp_path, ClearingAlways())
    assert statuses(outcome) in ({}, {"1_1_s0.cpp": Status.OK})
    assert bool(outcome.skipped) != bool(statuses(outcome))


WITH_TWO_SIZES = """import torch
WORKLOADS = {"small": dict(n=64), "ragged": dict(n=65)}
class Model(torch.nn.Module):
    def forward(self, x): return x + 1
def get_inputs(n=64, **sizes): return [torch.rand(n)]
def get_init_inputs(**sizes): return []
"""


class Touching(Watcher):
    def __init__(self, path):
        self.path = path

    def ended(self, item):
        self.path.touch()


@pytest.mark.slow
def test_nobody_withdraws_from_a_workload_by_touching_a_file(tmp_path):
    """A solution right at the first size only, touched before the end of the next, was ``ok`` as a whole."""
    write(tmp_path, **{"1_1_s0": "x + 1 if len(x) == 64 else x"})
    (tmp_path / "problems/level1/001_own.py").write_text(WITH_TWO_SIZES)
    watcher = Touching(tmp_path / "solutions/1_1_s0.py")
    outcome = evaluated(tmp_path, watcher, workload="small,ragged")
    assert [item.workload for item in outcome.skipped] == ["ragged"]
    assert outcome.run.latest() == Run.load(tmp_path / "run").latest() == []
    (solution,) = evaluated(tmp_path, workload="small,ragged").run.solutions()
    assert solution.status is Status.WRONG_VALUE


ANOTHER = {
    "needs a GPU": "import triton\n" + SOLUTION.format("x"),
    "has no problem": "# kb: problem=9/9\n" + SOLUTION.format("x"),
    "says too much": "# kb: problem=nonsense\n" + SOLUTION.format("x"),
}


@pytest.mark.slow
@pytest.mark.parametrize("text", ANOTHER.values(), ids=ANOTHER)
def test_a_result_of_a_content_that_is_gone_does_not_count(tmp_path, text):
    write(tmp_path, **{"1_1_s0": "x + 1", "1_1_s1": "1 + x"})
    evaluated(tmp_path)
    (tmp_path / "solutions/1_1_s0.py").write_text(text)
    outcome = evaluated(tmp_path)
    assert statuses(outcome) == {"1_1_s1.py": Status.OK} and len(outcome.run.results) == 2
    (told,) = Run.load(tmp_path / "run").solutions()
    assert told.solution["name"] == "1_1_s1.py"
    write(tmp_path, **{"1_1_s0": "x + 1"})
    assert statuses(evaluated(tmp_path)) == {"1_1_s0.py": Status.OK, "1_1_s1.py": Status.OK}


@pytest.mark.slow
def test_a_result_of_a_file_that_is_not_looked_at_any_more_counts_only_if_that_is_as_it_was(tmp_path):
    write(tmp_path, **{"1_1_s0": "x + 1"})
    for name in ("same", "rewritten", "removed"):
        (tmp_path / "solutions" / name).mkdir()
        (tmp_path / f"solutions/{name}/1_1_s{len(name)}.py").write_text(SOLUTION.format("1 + x"))
    assert len(statuses(evaluated(tmp_path))) == 4
    for name in ("same", "rewritten", "removed"):
        for file in RUN_FILES:
            (tmp_path / "solutions" / name / file).touch()
    (tmp_path / "solutions/rewritten/1_1_s9.py").write_text(SOLUTION.format("x"))
    (tmp_path / "solutions/removed/1_1_s7.py").unlink()
    assert set(statuses(evaluated(tmp_path))) == {"1_1_s0.py", "same/1_1_s4.py", "removed/1_1_s7.py"}


@pytest.mark.slow
def test_a_neighbour_that_claims_the_same_problem_takes_no_result_away(tmp_path):
    claim = "# kb: problem=1/1 sample=7\n" + SOLUTION
    write(tmp_path, **{"1_1_s1": "1 + x"})
    (tmp_path / "solutions/one.py").write_text(claim.format("x + 1"))
    evaluated(tmp_path)
    (tmp_path / "solutions/other.py").write_text(claim.format("x"))
    outcome = evaluated(tmp_path)
    assert len(outcome.unmapped) == 2 and statuses(outcome) == {"1_1_s1.py": Status.OK, "one.py": Status.OK}


@pytest.mark.slow
def test_a_file_that_is_written_while_it_alone_is_evaluated_has_no_result(tmp_path):
    write(tmp_path, **{"1_1_s0": "x"})
    path = tmp_path / "solutions/1_1_s0.py"

    def written(what, text):
        path.write_text(SOLUTION.format("x + 1"))

    options = Options(device="cpu", cv_target=0.5, track="open", jobs=1)  # in order, as they are built
    _, item = evaluate_one(path, options, problem_dir=tmp_path / "problems", status=written)
    assert item.reason == "one of its files changed meanwhile: evaluate it again when it is written"


@pytest.mark.slow
@pytest.mark.parametrize("left", ["a result", "a skipped line"])
def test_a_workload_that_a_solution_has_no_more_counts_for_nothing(tmp_path, left):
    """A result of a problem's former workload failed a gate, and a line of others kept a result from counting."""
    write(tmp_path, **{"1_1_s0": "x + 1 if len(x) == 64 else x"})
    module = tmp_path / "problems/level1/001_own.py"
    module.write_text(WITH_TWO_SIZES)
    run = evaluated(tmp_path, workload="all").run
    assert [r.status for r in run.latest()] == [Status.OK, Status.WRONG_VALUE]
    if left == "a skipped line":
        (tmp_path / "solutions/1_1_s0.py").write_text((tmp_path / "solutions/1_1_s0.py").read_text() + "# changed\n")
        line = {"kind": "skipped", "problem": "1/1", "problem_name": "own", "solution": "1_1_s0.py", "sample": 0}
        unevaluated.append(run.path, [], line | {"workload": "ragged", "reason": "", "after": 0})
    module.write_text(WITH_TWO_SIZES.replace(', "ragged": dict(n=65)', ""))
    run = evaluated(tmp_path, workload="all").run
    assert [(r.status, r.workload["name"]) for r in run.solutions()] == [(Status.OK, "small")]
    assert not unevaluated.pending(run.results, run.unevaluated)


class Interrupting(Watcher):
    """Somebody who ends the run at its first result."""

    def ended(self, item):
        raise KeyboardInterrupt


def test_what_an_interrupted_run_of_all_workloads_has_evaluated_on_one_does_not_count_yet(tmp_path):
    """The problem's folder is not there any more where a run is read elsewhere."""
    write(tmp_path, **{"1_1_s0": "1 + x"})
    (tmp_path / "problems/level1/001_own.py").write_text(WITH_TWO_SIZES)
    with pytest.raises(KeyboardInterrupt):
        evaluated(tmp_path, Interrupting(), workload="all")
    run = Run.load(tmp_path / "run")
    assert [one.workload["name"] for one in run.latest()] == ["small"] and run.solutions() == []
    assert len(evaluated(tmp_path, workload="all").run.solutions()) == 1


@pytest.mark.parametrize("large, lost", [(1000, []), (3000, ["1_1_s1.py"])])
def test_what_others_copies_leave_no_room_for_waits_until_they_are_gone(tmp_path, monkeypatch, large, lost):
    """Small files that named much took the room of all, and neighbours were not evaluated."""
    write(tmp_path, **{f"1_1_s{sample}": "x + 1" for sample in range(3)})
    for sample in range(2):
        (tmp_path / f"solutions/{sample}.txt").write_text(" " * (large if sample else 1000))
        with (tmp_path / f"solutions/1_1_s{sample}.py").open("a") as source:
            source.write(f"NAMED = '{sample}.txt'\n")
    copy, full = private_copy._copy, []

    def on_a_small_disk(path, to):
        scratch = to.parents[1]
        if sum(file.stat().st_size for file in {*scratch.rglob("*.*")}) + path.stat().st_size > 2000:
            full.append(path.name)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        copy(path, to)

    monkeypatch.setattr(private_copy, "_copy", on_a_small_disk)
    outcome = evaluated(tmp_path)
    assert full and [one.solution.name for one in outcome.skipped] == lost
    assert statuses(outcome) == {f"1_1_s{n}.py": Status.OK for n in range(3) if f"1_1_s{n}.py" not in lost}
    assert not lost or outcome.skipped[0].reason == "its files cannot be copied: No space left on device"
