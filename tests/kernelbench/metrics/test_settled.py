"""Claims of a speedup: its verdict, the speedup that counts, and why there may be none."""

import pytest
from logs import judged, result

from harness.result import Result, Status
from kernelbench.metrics import settled
from kernelbench.metrics.workloads import together


@pytest.mark.parametrize(
    "speedup, verdict, counted, shown",
    [(1.31, None, 1.31, "1.31x"), (0.5, None, 0.5, "0.50x"), (1.004, None, 1.0, "1.00x (tie)"),
     (3.0, "unstable", None, "unstable")],
)  # fmt: skip
def test_a_speedup_counts_as_its_verdict(speedup, verdict, counted, shown):
    found = judged("1/1", speedup, verdict=verdict)
    assert settled.settled_speedup(found) == counted and settled.speedup_text(found) == shown


def test_a_log_without_verdicts_has_those_of_its_samples():
    assert [settled.verdict(result("1/1", ms)) for ms in (0.5, 1.0, 2.0)] == ["faster", "tie", "slower"]


def test_a_speedup_of_unknown_spread_is_unstable():
    bare = Result("1/1", "", {}, {}, Status.OK, speedup=2.0, timing={"mean_ms": 1.0}, baselines={"b": {"mean_ms": 2.0}})
    assert settled.verdict(bare) == "unstable" and settled.settled_speedup(bare) is None


def test_over_several_workloads_one_that_is_unstable_makes_all_unstable():
    def on(workload, verdict=None):
        made = judged("1/1", 2.0, verdict=verdict)
        made.workload = {"name": workload}
        return made

    (stable,), (unstable,) = together([on("small"), on("full")]), together([on("small"), on("full", "unstable")])
    assert settled.verdict(stable) == "faster" and settled.settled_speedup(stable) == pytest.approx(2.0, rel=0.05)
    assert settled.verdict(unstable) == "unstable"


def test_a_correct_result_without_a_speedup_says_why():
    untimed = result("1/1")
    untimed.baselines = {"compile": {"error": "InductorError: no C++ compiler\nat line 7"}}
    assert settled.why_no_speedup(untimed) == (
        "no baseline could be timed: compile: InductorError: no C++ compiler"
    )
    assert settled.verdict(untimed) is None and settled.beats(untimed, 0) and not settled.beats(untimed, 0.5)
    assert settled.to_json(untimed)["no_speedup"] and settled.to_json(judged("1/1", 2.0))["no_speedup"] is None


def test_a_time_that_the_judge_could_not_confirm_is_no_speedup_and_says_why():
    unread = judged("1/1", 9.0)
    unread.speedup, unread.timing["cross_check"] = None, "not read: no memory"
    reason = "the judge's own clock could not confirm its time: not read: no memory"
    assert settled.why_no_speedup(unread) == settled.to_json(unread)["no_speedup"] == reason
    assert settled.interval(unread) is None and settled.verdict(unread) is None
    assert unread.correct and not settled.beats(unread, 0.5)
    other = judged("1/1", 2.0)
    unread.workload, other.workload = {"name": "small"}, {"name": "full"}
    (both,) = together([unread, other])
    assert settled.why_no_speedup(both) == reason
    assert all("speedup" not in baseline for baseline in both.baselines.values())


def test_results_rank_by_what_they_may_claim():
    untimed, failed = result("1/1"), result("1/1", status=Status.CRASHED)
    ranked = [judged("1/1", 1.2), judged("1/1", 1.004), judged("1/1", 0.5), judged("1/1", 9.0, verdict="unstable")]
    ranks = [settled.rank(one) for one in (*ranked, untimed, failed)]
    assert ranks == sorted(ranks, reverse=True) and len(set(ranks)) == 6


def test_each_baseline_has_a_verdict_of_its_own():
    found = judged("1/1", 2.0)
    found.baselines["compile"] = {**found.baselines["eager"], "speedup": 0.5, "interval": [0.49, 0.51],
                                  "verdict": "slower"}  # fmt: skip
    assert settled.settled_speedup(found, "compile") == 0.5 and settled.settled_speedup(found, "eager") == 2.0
    assert settled.settled_speedup(found, "tensorrt") is None
    found.baselines["compile"] |= {"interval": None, "verdict": None}  # from samples, around its own ratio
    low, high = settled.interval(found, "compile")
    assert low < 0.5 < high < 1
