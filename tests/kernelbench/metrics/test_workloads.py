"""Several workloads of a solution: each has its record, and together they are right or wrong, and one speedup."""

import json
import math
import re
import subprocess

import pytest
from logs import result, run
from warm_kb import KB

from harness.problem.module import ProblemError
from harness.result import Result, Status
from kernelbench import suite
from kernelbench.gate import thresholds
from kernelbench.metrics import fast_p, settled, workloads
from kernelbench.metrics.intervals import speedup_interval
from kernelbench.metrics.outcomes import sol_limits
from kernelbench.metrics.scheduling import sol_ms_of
from kernelbench.metrics.scores import scores
from kernelbench.report.overview import overview
from kernelbench.report.records import row
from kernelbench.run import Run
from kernelbench.views import comparison, leaderboard, ranking

PROBLEM = """
import torch
WORKLOADS = {"small": dict(n=1 << 14), "ragged": dict(n=1000)}
class Model(torch.nn.Module):
    def forward(self, x): return torch.relu(x)
def get_inputs(n=1 << 14): return [torch.rand(n)]
def get_init_inputs(**sizes): return []
"""
SOLUTION = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x): return x.clamp(min=0) if len(x) > 1000 else x * 0
"""


def on(workload, *arguments, **more):
    made = result(*arguments, **more)
    made.workload = {"name": workload}
    return made


@pytest.fixture
def two(tmp_path):
    """One solution right on both workloads, one on the short one only."""
    return run(
        tmp_path / "run",
        on("full", "1/1", 10.0, baseline_ms=20.0), on("llm", "1/1", 1.0, baseline_ms=0.5, seed=0),
        on("full", "1/2", status=Status.WRONG_VALUE, message="off"), on("llm", "1/2", 1.0, baseline_ms=9.0),
    )  # fmt: skip


def test_the_speedup_over_workloads_is_the_ratio_of_total_runtimes(two):
    right, wrong = two.solutions()
    assert right.correct and right.speedup == pytest.approx(20.5 / 11, rel=0.01)
    assert workloads.geometric_mean(right) == pytest.approx(1.0, rel=0.02)
    assert right.timing["median_ms"] == pytest.approx(11, rel=0.01)
    assert right.baselines["eager"]["median_ms"] == pytest.approx(20.5, rel=0.01)
    assert [part.workload["name"] for part in right.parts] == ["full", "llm"]


def test_wrong_on_one_workload_is_wrong(two):
    _, wrong = two.solutions()
    assert wrong.status is Status.WRONG_VALUE and wrong.message == "full: off"
    assert wrong.speedup is None and workloads.geometric_mean(wrong) is None
    assert fast_p.share(scores(two.solutions(), ["1/1", "1/2"]).beats(1.0)) == 0.5


def test_the_bounds_of_several_workloads_are_their_sums(tmp_path):
    """Without the bound under FP16 a policy's eps stopped nothing, and figures had no curve of the speed of light."""
    parts = on("full", "1/1", 10.0, baseline_ms=20.0), on("llm", "1/1", 1.0, baseline_ms=2.0)
    for part, bound_ms in zip(parts, (4.0, 0.5)):
        part.timing["median_ms"], part.baselines["eager"]["median_ms"] = 10 * bound_ms, 20 * bound_ms
        part.sol = {"t_sol_ms": bound_ms, "t_sol_fp16_ms": bound_ms / 2}
    made = run(tmp_path, *parts)
    (both,) = made.solutions()
    assert both.sol == {"t_sol_ms": 4.5, "t_sol_fp16_ms": 2.25, "percent_of_sol": pytest.approx(10.0)}
    assert sol_ms_of([both]) == 2.25 and sol_limits([both], ["1/1"]) == pytest.approx([40.0])
    del parts[1].sol["t_sol_fp16_ms"]
    assert sol_ms_of(made.solutions()) is None


def test_the_seconds_of_each_stage_are_those_of_all_workloads(tmp_path):
    """`kb lineage` had the time of the model's calls only."""
    parts = on("full", "1/1", 10.0), on("llm", "1/1", 1.0), on("ragged", "1/1")
    parts[2].workload |= {"timed": False}
    for part, stages in zip(parts, ({"check": 1.0, "time": 2.0}, {"check": 0.5, "time": 4.0}, {"check": 0.25})):
        part.stages_s, part.seconds = stages, sum(stages.values())
    (whole,) = run(tmp_path, *parts).solutions()
    assert whole.stages_s == {"check": 1.75, "time": 6.0} and whole.seconds == 7.75


def test_a_solution_on_one_workload_is_its_own_result(tmp_path):
    made = run(tmp_path, on("full", "1/1", 1.0), on("full", "1/1", 2.0, sample=1))
    assert made.solutions() == made.latest()


def test_the_interval_of_several_workloads_comes_from_the_samples_of_all(two):
    right, _ = two.solutions()
    low, high = speedup_interval(right)
    assert low < right.speedup < high
    longest = speedup_interval(right.parts[0])
    assert (high - low) / right.speedup == pytest.approx((longest.high - longest.low) / 2.0, rel=0.5)
    assert [d.change for d in comparison.compare(two, two)] == ["tie", "unsolved"]


def test_the_interval_of_several_workloads_needs_no_medians(tmp_path):
    """Files of KernelBench have means, deviations and counts."""
    told = {"std_ms": 0.1, "samples": 10}
    parts = [on("full", "1/1", 10.0, baseline_ms=20.0), on("llm", "1/1", 1.0, baseline_ms=2.0)]
    for part in parts:
        part.timing = {"mean_ms": part.timing["median_ms"], **told}
        part.baselines = {"eager": {"mean_ms": part.baselines["eager"]["median_ms"], "speedup": 2.0, **told}}
    (both,) = run(tmp_path / "run", *parts).solutions()
    low, high = speedup_interval(both)
    assert low < 2.0 < high


def test_the_interval_of_several_workloads_keeps_to_what_paired_rounds_gave(two):
    right, _ = two.solutions()
    for part, (low, high) in zip(right.parts, [(1.9, 2.1), (0.4, 0.6)]):
        part.baselines["eager"]["interval"] = [low, high]
    shares = [(10 / 11 + 20 / 20.5) / 2, (1 / 11 + 0.5 / 20.5) / 2]
    spread = math.hypot(shares[0] * math.log(2.1 / 1.9), shares[1] * math.log(0.6 / 0.4))
    low, high = speedup_interval(right)
    assert math.log(high / low) == pytest.approx(spread, rel=0.02)


def test_a_stall_on_one_of_several_workloads_makes_no_tie_of_what_is_slower(tmp_path):
    """One round in five of 3 s widened the interval to either side, over 1: a kernel of 0.2 times counted as 1."""
    parts = [on("full", "1/1", 10.0, baseline_ms=2.0), on("llm", "1/1", 1.0, baseline_ms=0.3)]
    for part, interval in zip(parts, [[0.01, 0.35], [0.28, 0.32]]):
        part.baselines["eager"] |= {"interval": interval, "verdict": "slower"}
    (both,) = run(tmp_path / "run", *parts).solutions()
    low, high = speedup_interval(both)
    assert low < 0.02 and high < 0.4 and settled.verdict(both) == settled.SLOWER


def test_results_of_another_content_of_the_file_do_not_count_any_more(tmp_path):
    made = run(tmp_path, on("full", "1/1", 1.0), on("llm", "1/1", 1.0), on("full", "1/2", 2.0))
    assert len(made.latest()) == 3
    made.append(on("full", "1/1", 3.0, seed=2))
    assert [(r.problem, r.workload["name"]) for r in made.latest()] == [("1/1", "full"), ("1/2", "full")]


def test_tables_have_a_row_a_shape_and_one_for_all(two):
    text = leaderboard.result_table(two.latest())
    full, llm, together = text.splitlines()[2:5]
    assert re.match(r"1/1 own +full .* 2\.\d\dx +\[", full) and re.match(r"1/1 own +llm .* 0\.\d\dx +\[", llm), text
    assert re.match(r"1/1 own +all 2 .* 1\.\d\dx +\[.*\] +\d\.\d\dx", together), text
    data = leaderboard.summary(two, ["1/1", "1/2"])
    assert data["problems"] == 2 and data["solved"] == 1 and data["fast_p"]["1"] == 0.5
    assert [row["workload"] for row in data["results"]] == ["full", "llm", "full", "llm"]
    assert [row["workload"] for row in data["over_workloads"]] == ["full, llm", "full, llm"]
    one = leaderboard.result_table([on("full", "1/1", 1.0)])
    assert "workload" not in one and "geo. mean" not in one


def test_a_leaderboard_has_each_workload_by_itself_too(two):
    groups = ranking.standings([two])["groups"]
    assert set(groups) >= {"all", "workload full", "workload llm"}
    assert groups["all"][0]["solved"] == groups["workload full"][0]["solved"] == 1
    assert groups["workload llm"][0]["solved"] == 2
    assert groups["all"][0]["total_runtime"]["value"] == pytest.approx(20.5 / 11, rel=0.01)


def test_the_page_knows_each_shape_and_all_of_them(two):
    (told,) = overview([two])["runs"]
    assert told["solved"] == 1 and told["results"] == 2
    right, wrong = told["over_workloads"].values()
    assert right["workloads"] == ["full", "llm"] and right["speedup"] == pytest.approx(20.5 / 11, rel=0.01)
    assert "speedup" not in wrong
    assert row(two.latest()[0], 0, 0)["workload"] == "full"


def test_a_gate_compares_a_shape_with_the_same_shape(two):
    full, llm = two.latest()[:2]
    limits = thresholds.Limits(max_regression=0.05)
    assert not thresholds.check_result(llm, limits, two).broken
    assert not thresholds.check_result(full, limits, two).broken


def test_named_workloads_and_all_of_them():
    (file,) = suite.find("1/19")
    assert workloads.workloads_of(file, None, "cuda") == ["full"]
    assert workloads.workloads_of(file, None, "cpu") == ["small"]
    assert workloads.workloads_of(file, "llm, full", "cpu") == ["llm", "full"]
    assert workloads.workloads_of(file, "all", "cpu") == file.workload_names()
    with pytest.raises(ProblemError, match="1/19 has no workload 'none'; it has: full, small, llm"):
        workloads.workloads_of(file, "full,none", "cpu")


@pytest.fixture
def folder(tmp_path):
    for name, text in (("problems/level1/001_own.py", PROBLEM), ("s/level1/1.py", SOLUTION)):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def kb_eval(folder, *more):
    command = [*KB, "eval", "--solutions", "s", "--problem-dir", "problems"]
    command += ["--device", "cpu", "--out", "run", *more]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


def test_a_solution_is_evaluated_on_every_workload_and_resumed_on_what_is_missing(folder):
    done = kb_eval(folder, "--workload", "all")
    assert done.returncode == 0, done.stderr
    results = Run.load(folder / "run").latest()
    assert [(r.workload["name"], r.status) for r in results] == [
        ("small", Status.OK), ("ragged", Status.WRONG_VALUE),
    ]  # fmt: skip
    assert json.loads((folder / "run" / "leaderboard.json").read_text())["solved"] == 0
    log = folder / "run" / "results.jsonl"
    log.write_text(log.read_text().splitlines(keepends=True)[0])
    again = kb_eval(folder, "--workload", "all", "--resume")
    assert "1 result(s) are in run already" in again.stderr, again.stderr
    assert [Result.from_json(json.loads(line)).workload["name"] for line in log.read_text().splitlines()] == [
        "small", "ragged",
    ]  # fmt: skip


def test_a_workload_that_a_neighbours_problem_lacks_puts_the_neighbour_aside(folder):
    """It ended the run of all: whoever adds a solution of another problem kept the others from being evaluated."""
    (folder / "problems" / "level1" / "002_other.py").write_text(PROBLEM.replace('"ragged"', '"uneven"'))
    (folder / "s" / "level1" / "2.py").write_text(SOLUTION)
    done = kb_eval(folder, "--workload", "ragged")
    assert done.returncode == 3, done.stderr
    assert [r.problem for r in Run.load(folder / "run").latest()] == ["1/1"]
    assert "1/2 level1/2.py: problem 1/2 has no workload 'ragged'; it has: small, uneven" in done.stdout
    assert json.loads((folder / "run" / "leaderboard.json").read_text())["problems"] == 1


def test_a_workload_that_a_problem_lacks_ends_the_run_before_anything_runs(folder):
    done = kb_eval(folder, "--workload", "small,llm")
    assert done.returncode == 2 and "problem 1/1 has no workload 'llm'; it has: small, ragged" in done.stderr
    assert not (folder / "run").exists()


def timed(workload, **speedups):
    """A result of 2 ms on a workload, with its speedup over each baseline; None is one that failed."""
    made = on(workload, "1/1")
    made.timing, made.baselines = {"median_ms": 2.0}, {}
    for name, speedup in speedups.items():
        interval = speedup and [speedup * 0.9, speedup * 1.1]
        facts = {"median_ms": 2.0 * speedup, "speedup": speedup, "interval": interval} if speedup else {"error": "no"}
        made.baselines[name] = facts
    made.speedup = next(filter(None, speedups.values()), None)
    return made


def test_a_speedup_over_workloads_is_over_one_baseline(tmp_path):
    """10 over eager and 2 over compile, as eager failed on one of them, were told as 6 over compile."""
    parts = timed("full", eager=10.0, compile=2.0), timed("llm", eager=None, compile=2.0)
    (both,) = run(tmp_path, *parts).solutions()
    assert fast_p.baseline_of(both)[0] == "compile" and both.speedup == pytest.approx(2.0)
    assert workloads.geometric_mean(both) == pytest.approx(2.0)
    for interval in (settled.interval(both), settled.interval(both, "compile")):
        assert interval.low == pytest.approx(2.0 * 0.9 ** 0.5**0.5) and interval.high < 2.2
    assert "2.00x" in leaderboard.result_table(both.parts).splitlines()[-1]


def test_the_verdict_over_workloads_is_that_over_the_baseline_of_the_speedup(tmp_path):
    parts = timed("full", eager=10.0, compile=2.0), timed("llm", eager=None, compile=2.0)
    parts[0].baselines["compile"]["verdict"] = "unstable"
    (both,) = run(tmp_path, *parts).solutions()
    assert settled.verdict(both) == "unstable" and settled.settled_speedup(both) is None
    assert workloads.geometric_mean(both) is None


def test_without_a_baseline_on_all_workloads_there_is_no_speedup_over_them(tmp_path):
    parts = timed("full", eager=10.0, compile=None), timed("llm", eager=None, compile=2.0)
    (both,) = run(tmp_path, *parts).solutions()
    assert both.correct and both.speedup is None and workloads.geometric_mean(both) is None
    assert settled.verdict(both) is None and settled.why_no_speedup(both)


def test_a_result_can_be_led_by_another_of_its_baselines(tmp_path):
    one = timed("full", eager=4.0, compile=2.0)
    (both,) = run(tmp_path, one, timed("llm", eager=4.0, compile=2.0)).solutions()
    assert workloads.led_by(one, "eager") is one and workloads.led_by(both, "eager") is both
    for led in (workloads.led_by(one, "compile"), workloads.led_by(both, "compile")):
        assert list(led.baselines) == ["compile", "eager"] and led.speedup == settled.settled_speedup(led) == 2.0
        assert settled.interval(led).high < 2.3
