"""GFLOP/s of a result: over the median, and the mean of its samples' rates after Tensara."""

from pathlib import Path

import pytest
from logs import result, run

from harness.result import Status
from kernelbench.formats import exchange
from kernelbench.metrics.throughput import gflops_mean
from kernelbench.metrics.workloads import together
from kernelbench.run import Run
from kernelbench.views import leaderboard

H100 = Path(__file__).parents[3] / "results" / "h100" / "examples"


def timed(samples_ms, flops=4e6, name="small", calls=1):
    made = result("1/1", 1.0)
    made.workload = {"name": name, "sizes": {}, "flops": flops, "bytes": None}
    made.timing |= {"samples_ms": samples_ms, "calls_a_round": calls, "median_ms": sorted(samples_ms)[1]}
    return made


def test_the_rate_of_each_sample_is_taken_before_the_mean():
    assert gflops_mean(timed([1.0, 2.0, 4.0])) == pytest.approx((4 + 2 + 1) / 3)  # not 4 / mean time = 12/7


def test_several_workloads_weigh_alike():
    small, full = timed([1.0, 2.0, 4.0]), timed([10.0, 10.0, 10.0], flops=5e8, name="full")
    (both,) = together([small, full])
    assert gflops_mean(both) == pytest.approx((7 / 3 + 50) / 2)
    assert both.gflops == pytest.approx((4e6 + 5e8) / 12.0 / 1e6)


def test_a_call_that_does_the_work_of_a_round_gains_nothing():
    hoards, honest = timed([3.8, 0.1, 0.1] * 3, calls=3), timed([4 / 3] * 9, calls=3)
    assert gflops_mean(hoards) == pytest.approx(gflops_mean(honest))


def test_single_times_near_zero_gain_nothing():
    """Only the median is held against the judge's clock."""
    forged, honest = timed([1e-6, 1e-6, *[1.0] * 8]), timed([1.0] * 10)
    assert gflops_mean(forged) == pytest.approx(gflops_mean(honest))
    few = timed([1e-6, 1.0, 1000.0])
    few.timing["stability"] = "noisy"
    assert gflops_mean(few) is None


@pytest.mark.parametrize("lacking", ["flops", "samples", "timing", "clock"])
def test_without_operations_or_samples_there_is_none(lacking):
    made = timed([1.0, 2.0, 4.0], flops=None if lacking == "flops" else 4e6)
    if lacking == "samples":
        del made.timing["samples_ms"]
    if lacking == "clock":
        made.speedup, made.timing["cross_check"] = None, "not read: no memory"
    made.timing = None if lacking == "timing" else made.timing
    assert gflops_mean(made) is None and gflops_mean(together([made, timed([1.0, 2.0, 3.0], name="full")])[0]) is None


def test_it_stands_beside_the_median_based_figure_in_rows_and_exports(tmp_path):
    rows = [leaderboard.row(r) for r in Run.load(H100).latest()]
    assert all(row["gflops_mean"] == pytest.approx(row["gflops"], rel=0.05) for row in rows if row["gflops"])
    assert leaderboard.row(result("1/1", status=Status.CRASHED))["gflops_mean"] is None
    exchange.export([run(tmp_path / "run", timed([1.0, 2.0, 4.0]))], "csv", tmp_path / "r.csv")
    header = (tmp_path / "r.csv").read_text().splitlines()[0].split(",")
    assert header.index("gflops_mean") == header.index("gflops") + 1
