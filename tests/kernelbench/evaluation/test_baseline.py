"""Baselines that are kept: measured whatever a reference does, measured once, refused where they do not hold."""

import dataclasses
import json
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from warm_kb import KB

from harness.problem.math_modes import MATH_MODES
from harness.result import Status
from kernelbench import suite
from kernelbench.evaluation import measure_baselines
from kernelbench.evaluation.chosen import Selection
from kernelbench.evaluation.directory import evaluate_directory
from kernelbench.evaluation.executor import Options
from kernelbench.evaluation.measure_baselines import Watcher, measure_selection, table
from kernelbench.evaluation.stored_baselines import (
    BaselineError,
    BaselineFile,
    BaselineKey,
    Stored,
    StoredBaselines,
    compared,
    default_file,
    parse,
)
from kernelbench.run import WriteError

PROBLEM = """
import torch
WORKLOADS = {{"small": dict(n=1 << 14), "ragged": dict(n=1000)}}
class Model(torch.nn.Module):
    def forward(self, x):
        {body}
        return torch.relu(x)
def get_inputs(n=1 << 14): return [torch.rand(n)]
def get_init_inputs(**sizes): return []
def get_flops(n=1 << 14): return n
"""
GOOD = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.clamp(min=0)\n"
OPTIONS = Options(device="cpu")


class Seen(Watcher):
    def __init__(self):
        self.cases = []

    def ended(self, case, record):
        self.cases.append(str(case))


def write(folder, **bodies):
    for name, body in bodies.items():
        (folder / "level1").mkdir(parents=True, exist_ok=True)
        (folder / "level1" / f"{name.removeprefix('p')}_own.py").write_text(PROBLEM.format(body=body))
    return folder


def measure(folder, out, selector="all", configurations=("eager",), options=OPTIONS, timeout_s=100, **more):
    watcher = Seen()
    measured = measure_selection(
        suite.find(selector, folder), configurations, options, timeout_s=timeout_s, out=out, watcher=watcher, **more
    )
    return measured.records, watcher.cases


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Two problems, measured: their folder and the file."""
    folder = tmp_path_factory.mktemp("kept")
    problems = write(folder / "problems", p001="pass", p002="pass")
    measure(problems, folder / "b.jsonl")
    return problems, folder / "b.jsonl"


def present(file, **different):
    record = json.loads(file.read_text().splitlines()[0])
    return dataclasses.replace(BaselineKey.here(record["device"], record["versions"]["torch"], "fp32"), **different)


def test_a_record_can_be_read_alone(kept):
    record = json.loads(kept[1].read_text().splitlines()[0])
    assert (record["problem"], record["configuration"], record["precision"]) == ("1/1", "eager", "fp32")
    assert record["workload"] == {"name": "small", "sizes": {"n": 1 << 14}}
    assert record["device"]["type"] == "cpu" and record["versions"]["torch"] and record["started"]
    assert record["conditions"].items() >= MATH_MODES.items() and not record["error"]
    timing = record["timing"]
    assert len(timing["samples_ms"]) == timing["samples"] >= 20 and timing["median_ms"] > 0 and timing["stopped"]


def test_what_holds_is_not_measured_again_and_what_changed_is(kept, tmp_path):
    problems, file = kept
    copy, out = write(tmp_path / "problems", p001="pass", p002="pass"), tmp_path / "b.jsonl"
    out.write_bytes(file.read_bytes() + b'{"torn": ')
    write(copy, p002="x = x + 0")
    records, cases = measure(copy, out)
    assert cases == ["1/2 small eager"] and [record["problem"] for record in records] == ["1/1", "1/2"]
    assert len(out.read_text().splitlines()) == 3
    assert measure(copy, out, "1/1", again=True)[1] == ["1/1 small eager"]


@pytest.mark.slow
def test_a_reference_that_fails_in_any_way_is_a_record_with_the_reason(tmp_path):
    problems = write(
        tmp_path,
        p001="raise ValueError('no')",
        p002="__import__('os').kill(__import__('os').getpid(), 9)",
        p003="pass",
        p004="__import__('time').sleep(100)",
    )
    records, cases = measure(problems, tmp_path / "b.jsonl", timeout_s=12)
    assert len(cases) == 4
    raised, killed, good, hung = records
    assert raised["error"] == "ValueError: no" and raised["timing"] is None
    assert "died (exit status -9)" in killed["error"] and killed["device"] and killed["sha256"]
    assert good["timing"]["median_ms"] > 0
    assert hung["error"] == "not done within 12 s" and hung["timeout_s"] == 12 and killed["again"]
    assert "error" in table(records)


class Failing:
    """A judge whose first answers are given; then it writes records with the error that it is told."""

    lost = None

    def __init__(self, file, answers):
        self.record, self.answers = json.loads(file.read_text().splitlines()[0]), iter(answers)
        self.device, self.torch_version = self.record["device"], self.record["versions"]["torch"]

    def ask(self, job, phase, timeout_s=None):
        if "error" in job:
            return {"measured": self.record | {"timing": None, "error": job["error"]}}
        return next(self.answers)

    def close(self):
        pass


LATE = {"unevaluated": "not done within 5 s", "again": True, "broken": True, "late": True}
DIED = {"unevaluated": "the judge's process died (exit status -9) in this evaluation", "again": True, "broken": True}


@pytest.mark.parametrize(
    ("answer", "held"),
    [(LATE, [True, False]), (DIED, [False, False]), ("no memory", [False, False]), ("no graph", [True, True])],
    ids=["late", "died", "no memory", "no graph"],
)
def test_an_error_holds_unless_more_time_or_memory_may_end_it(kept, tmp_path, monkeypatch, answer, held):
    """A judge that was killed once, or a short --timeout, left a problem without a baseline for good."""
    problems, file = kept
    record = json.loads(file.read_text().splitlines()[0])
    if isinstance(answer, str):
        again = {"again": True} if answer == "no memory" else {}
        answer = {"measured": record | {"timing": None, "error": answer} | again}
    answers = iter([answer, {"measured": record}])
    monkeypatch.setattr(measure_baselines, "open_judges", lambda *_: [Failing(file, answers)])
    (failed,), _ = measure(problems, tmp_path / "failed.jsonl", "1/1", timeout_s=5)
    assert failed["error"]
    for timeout_s, holds in zip((5, 6), held):
        answers = iter([{"measured": record}])
        out = Path(shutil.copy(tmp_path / "failed.jsonl", tmp_path / f"{timeout_s}.jsonl"))
        (after,), cases = measure(problems, out, "1/1", timeout_s=timeout_s)
        assert bool(cases) is not holds and after == (failed if holds else record)


def test_an_error_does_not_take_the_place_of_a_timing_that_holds(kept, tmp_path, monkeypatch):
    problems, file = kept
    (tmp_path / "b.jsonl").write_bytes(file.read_bytes())
    monkeypatch.setattr(measure_baselines, "open_judges", lambda *_: [Failing(file, [DIED])])
    (record,), cases = measure(problems, tmp_path / "b.jsonl", "1/1", again=True)
    assert cases and record["timing"]
    (problem,) = suite.find("1/1", problems)
    assert BaselineFile(tmp_path / "b.jsonl").find(problem, "small", "eager", present(file)) == record


@pytest.mark.slow
def test_what_does_not_compile_is_a_record_and_the_rest_is_measured(tmp_path):
    problems = write(tmp_path, p001="x = x @ torch.ones(3) if torch.compiler.is_compiling() else x")
    eager, compiled = measure(problems, tmp_path / "b.jsonl", configurations=("eager", "compile"))[0]
    assert eager["timing"] and not eager["error"]
    assert compiled["timing"] is None and compiled["error"]


def test_a_precision_that_cannot_hold_the_reference_is_said_so(tmp_path):
    problems = write(tmp_path, p001="x = (x + 1) * 300 * 300")
    (record,) = measure(problems, tmp_path / "b.jsonl", options=Options(device="cpu", precision="fp16"))[0]
    assert "not finite in" in record["error"] and "fp16" in record["error"]


@pytest.mark.parametrize(
    ("different", "why"),
    [
        ({"device": "NVIDIA H100"}, "device was .* and is NVIDIA H100"),
        ({"threads": 1000}, r"the number of threads was \d+ and is 1000"),
        ({"torch": "1.0"}, "PyTorch was .* and is 1.0"),
        ({"precision": "fp16"}, "has no baseline of 1/1 .small, fp16, eager."),
    ],
)
def test_a_foreign_baseline_is_refused_with_the_reason(kept, different, why):
    problems, file = kept
    (problem,) = suite.find("1/1", problems)
    assert BaselineFile(file).find(problem, "small", "eager", present(file))["problem"] == "1/1"
    with pytest.raises(BaselineError, match=why):
        BaselineFile(file).find(problem, "small", "eager", present(file, **different))


def test_a_baseline_of_other_math_or_of_another_text_is_refused(kept, tmp_path):
    problems, file = kept
    record = json.loads(file.read_text().splitlines()[0])
    record["conditions"]["matmul_fp32"] = "tf32"
    (tmp_path / "b.jsonl").write_text(json.dumps(record) + "\n")
    with pytest.raises(BaselineError, match="matmul_fp32 was tf32 and is ieee"):
        BaselineFile(tmp_path / "b.jsonl").find(suite.find("1/1", problems)[0], "small", "eager", present(file))
    (other,) = suite.find("1/1", write(tmp_path / "problems", p001="x = x + 0"))
    with pytest.raises(BaselineError, match="the problem has changed since 20"):
        BaselineFile(file).find(other, "small", "eager", present(file))


def test_what_has_no_stored_baseline_is_put_aside_and_the_others_are_evaluated(kept, tmp_path):
    problems, (_, file) = write(tmp_path / "problems", p001="pass", p003="pass"), kept
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "1_1.py").write_text(GOOD)
    (tmp_path / "s" / "1_3.py").write_text(GOOD)
    options = Options(device="cpu", baselines=(Stored(file),))
    outcome = evaluate_directory(Selection(tmp_path / "s", problem_dir=problems), options, out=tmp_path / "run")
    assert [result.problem for result in outcome.run.latest()] == ["1/1"] and outcome.problems == ["1/1", "1/3"]
    (aside,) = outcome.skipped
    assert aside.solution.name == "1_3.py" and "has no baseline of 1/3 (small, fp32, eager)" in aside.reason
    with pytest.raises(BaselineError, match="are missing or stale; `kb baseline` measures them:\n.*baseline of 1/3"):
        only = Selection(tmp_path / "s" / "1_3.py", problem_dir=problems)
        evaluate_directory(only, options, out=tmp_path / "other")


def test_a_stored_comparison_is_marked_and_stands_beside_a_paired_one(kept, tmp_path):
    problems, file = kept
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "1_1.py").write_text(GOOD)
    options = Options(device="cpu", baselines=(Stored(file), "eager"))
    outcome = evaluate_directory(Selection(tmp_path / "s", problem_dir=problems), options, out=tmp_path / "run")
    (result,) = outcome.run.latest()
    assert result.status is Status.OK and list(result.baselines) == ["stored eager", "eager"]
    stored, paired = result.baselines.values()
    assert stored["paired"] is False and stored["file"] == str(file) and stored["measured"].startswith("20")
    assert paired["paired"] is True and result.speedup == stored["speedup"]
    low, high = stored["interval"]
    between = stored["run_to_run_rel"]
    assert low <= stored["speedup"] * (1 - 2 * between) < stored["speedup"] * (1 + 2 * between) <= high
    assert "(stored eager)" in (tmp_path / "run" / "leaderboard.md").read_text()
    # what failed while it was timed has samples of what its process said, and no rates
    failed = dataclasses.replace(result, status=Status.WRONG_VALUE, gbps=None, baselines={}, speedup=None)
    StoredBaselines((Stored(file),)).into(failed, suite.find("1/1", problems)[0])
    assert failed.baselines == {} and failed.speedup is None
    # against itself, as a run of its own: a stored one that did not compile has its reason, and no speedup
    failed = compared(result, json.loads(file.read_text().splitlines()[0]) | {"error": "no graph"}, file)
    assert failed["error"] == "no graph" and "speedup" not in failed


def test_stored_baselines_that_are_missing_end_the_run_before_anything_runs(kept, tmp_path):
    problems, file = kept
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "1_1.py").write_text(GOOD)
    (tmp_path / "other.jsonl").write_text("{}\n")
    command = [*KB, "eval", "--solutions", tmp_path / "s", "--problem-dir", problems, "--device", "cpu", "--baseline"]
    for name, reason in {
        f"{file}:compile": "has no baseline of 1/1 (small, fp32, compile)",
        "none": "there is no baseline 'none'",
        f"{tmp_path}/none.jsonl": "none.jsonl; `kb baseline` makes it",
        f"{tmp_path}/other.jsonl": "line 1, is no measured baseline",
    }.items():
        done = subprocess.run([*map(str, command), name], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 2 and reason in done.stderr, done.stderr
        assert " ok " not in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("text", ["a line\nand another", "one alone"])
def test_a_file_that_holds_something_else_is_refused_as_it_was(tmp_path, text):
    """Its last line, which had no end, was cut off before anybody looked at the first."""
    (tmp_path / "notes").write_text(text)
    command = [*KB, "baseline", "1/19", "--configs", "eager", "--device", "cpu", "-o", "notes"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 2 and "notes" in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert (tmp_path / "notes").read_text() == text


@pytest.mark.parametrize(
    "change",
    [{"timing": 5}, {"timing": {}}, {"device": 5}, {"conditions": []}, {"workload": 5}, {"error": {}}, {"started": 5},
     *({"timing.samples_ms": samples} for samples in ([], [-1, 0], "x")), {"timing.calls_a_round": 0}],
    ids=str,
)  # fmt: skip
def test_a_file_of_others_with_values_of_other_types_is_refused_before_anything_runs(kept, tmp_path, change):
    """It ended a run after the evaluation, or in a log that no view could read."""
    _, file = kept
    record = json.loads(file.read_text().splitlines()[0])
    for path, value in change.items():
        *above, name = path.split(".")
        (record[above[0]] if above else record)[name] = value
    (tmp_path / "b.jsonl").write_text(json.dumps(record) + "\n")
    with pytest.raises(BaselineError, match="line 1, is no measured baseline"):
        BaselineFile(tmp_path / "b.jsonl")


def test_names_files_and_both_together():
    assert parse("compile,eager") == ("compile", "eager")
    file = Path("b.jsonl")
    assert parse(f"{file}, eager,{file}:compile") == (Stored(file), "eager", Stored(file, "compile"))
    with pytest.raises(BaselineError, match="there is no baseline 'fast'.*there are: eager, compile"):
        parse("fast")
    with pytest.raises(BaselineError, match="two stored baselines"):
        parse("b.jsonl,results/b.jsonl")


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA GeForce RTX 4090", "nvidia-geforce-rtx-4090"),
    ],
)
def test_records_lie_in_a_folder_of_their_gpu(name, folder):
    assert default_file(name, "cuda") == Path("results", folder, "baselines.jsonl")


def test_interrupted_it_keeps_what_is_done(tmp_path, request):
    problems = write(tmp_path / "problems", p001="pass", p002="__import__('time').sleep(100)")
    out = tmp_path / "b.jsonl"
    command = [*KB, "baseline", "all", "--configs", "eager", "--device", "cpu", "--problem-dir", problems, "-o", out]
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
    request.addfinalizer(process.kill)
    deadline = time.monotonic() + 100
    while not (out.exists() and out.read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert "interrupted; what was measured is kept" in process.communicate(timeout=30)[1]
    assert process.returncode == 130 and json.loads(out.read_text())["problem"] == "1/1"


def test_a_link_that_a_person_names_as_the_file_is_appended_through(tmp_path):
    (tmp_path / "real.jsonl").touch()
    (tmp_path / "b.jsonl").symlink_to(tmp_path / "real.jsonl")
    file = BaselineFile(tmp_path / "b.jsonl")
    file._keep = lambda record: None
    file.append({"format": 2})
    assert (tmp_path / "real.jsonl").read_text() == '{"format": 2}\n'


@pytest.mark.parametrize("link", ["results", "results/cpu", "results/cpu/baselines.jsonl"])
def test_a_file_that_nobody_named_is_not_written_through_a_link(tmp_path, link):
    """It lies where the command runs, in a checkout of others perhaps."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / link).symlink_to(tmp_path / "elsewhere")
    command = [*KB, "baseline", "1/19", "--configs", "eager", "--device", "cpu", "--workload", "small"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode != 0 and f"{link} is a link; name the file with -o" in done.stderr, done.stderr
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("made", [True, False])
def test_a_file_in_a_run_of_others_is_not_written_through_a_link(tmp_path, made):
    """`kb baseline -o theirs/b.jsonl` wrote into the file of ours that this led to, or made it."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours.jsonl"
    theirs.mkdir()
    for name in ("config.json", "results.jsonl"):
        (theirs / name).touch()
    if made:
        ours.touch()
    (theirs / "b.jsonl").symlink_to(ours)
    with pytest.raises(WriteError, match="b.jsonl: a link in a run leads there; choose another file with -o"):
        measure(write(tmp_path / "problems", p001="pass"), theirs / "b.jsonl")
    assert ours.exists() == made and not (made and ours.read_text())
    BaselineFile(theirs / "own.jsonl").create()
    assert (theirs / "own.jsonl").exists()
