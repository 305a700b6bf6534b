"""Intervals: against cases worked by hand, and how often they hold the truth."""

import math
import random
from functools import partial
from statistics import NormalDist

import numpy as np
import pytest

from harness.result import Result, Status
from kernelbench.metrics import at_k, fast_p
from kernelbench.metrics.intervals import (
    RESAMPLES,
    _fewer_than,
    bootstrap,
    log_mean_variance,
    log_median_variance,
    ratio_interval,
    speedup_interval,
)


def timed(baseline, ours):
    middle = [sorted(samples)[len(samples) // 2] for samples in (baseline, ours)]
    return Result(
        "1/1", "", {}, {}, Status.OK,
        timing={"samples_ms": ours}, baselines={"eager": {"samples_ms": baseline}}, speedup=middle[0] / middle[1],
    )  # fmt: skip


def noisy(median, seed, count=101, spread=0.05):
    draw = random.Random(seed)
    return [median * math.exp(draw.gauss(0, spread)) for _ in range(count)]


def test_a_mean_of_which_nothing_is_known_has_an_interval_without_an_end():
    """Numbers of a record of others: their square is no number."""
    assert log_mean_variance({"mean_ms": 1e-100, "std_ms": 1e100, "samples": 10}) > 1e100


def test_bootstrap_of_two_problems_reaches_from_the_worst_to_the_best_draw():
    # both solved with 1/4, so (0.95 level) the draws of two failures and of two solutions are inside
    assert bootstrap(partial(fast_p.fast_p, p=1), np.array([2.0, np.nan])) == (0.0, 1.0)


def test_bootstrap_of_equal_problems_has_no_width():
    low, high = bootstrap(fast_p.geometric_mean, [2.0] * 9)
    assert low == pytest.approx(2.0) and high == pytest.approx(2.0)


def test_bootstrap_is_the_same_each_time_and_wider_at_a_higher_level():
    speedups = np.array([0.5, 1.0, 1.5, 2.0, 4.0, np.nan])
    statistic = partial(fast_p.fast_p, p=1.0)
    first = bootstrap(statistic, speedups)
    assert first == bootstrap(statistic, speedups)
    narrow = bootstrap(statistic, speedups, level=0.5)
    assert first.low <= narrow.low <= statistic(speedups) <= narrow.high <= first.high


def test_bootstrap_keeps_two_runs_paired():
    # the second run is better by exactly 1 everywhere, however the problems are drawn
    ours, others = [1.0, 5.0, 9.0], [2.0, 6.0, 10.0]
    low, high = bootstrap(fast_p.signed_area, ours, others)
    assert low == pytest.approx(-1.0) and high == pytest.approx(-1.0)
    with pytest.raises(ValueError, match="3, 2 problems"):
        bootstrap(fast_p.signed_area, ours, others[:2])


def test_bootstrap_serves_every_figure():
    intervals = [
        bootstrap(fast_p.median, fast_p.fallback([0.5, 3.0, None])),
        bootstrap(partial(fast_p.sol_p, p=50), np.array([10.0, 60.0, np.nan])),
        bootstrap(fast_p.ratio_of_total_runtimes, [2.0, 4.0], [1.0, 8.0]),
        bootstrap(fast_p.share, at_k.chances_at_k([(2, 1), (2, 1), (2, 0)], 2)),
    ]
    assert all(interval.low <= interval.high for interval in intervals)


def test_bootstrap_where_there_is_nothing_to_say():
    assert bootstrap(fast_p.share, []) is None
    assert bootstrap(fast_p.median, [np.nan, np.nan]) is None


def test_values_that_differ_from_draw_to_draw_widen_the_interval():
    speedups = np.array([2.0, 3.0, 4.0])
    noisy = speedups * np.exp(0.3 * np.random.default_rng(5).standard_normal((RESAMPLES, 3)))
    still, moved = (bootstrap(fast_p.geometric_mean, values) for values in (speedups, noisy))
    assert moved.high - moved.low > still.high - still.low


def test_variance_of_a_median_by_hand():
    # n = 9: c = round(5 - 3) = 2, P(Binomial(9, 1/2) < 2) = 10/512, z = 2.0635
    samples = [math.exp(i) for i in range(1, 10)]
    assert log_median_variance(samples) == pytest.approx(((8 - 2) / (2 * 2.0635)) ** 2, rel=1e-3)
    assert log_median_variance([1.0]) == math.inf


def test_the_variance_of_many_samples_is_soon_known_and_that_of_some_more():
    """Binomials of as many bits as samples took minutes for one record of 100 kB."""
    draw = np.random.default_rng(3)
    exact, normal = (log_median_variance(draw.lognormal(0, 0.1, n).tolist()) for n in (1000, 20_000))
    assert exact == pytest.approx(20 * normal, rel=0.3)
    assert _fewer_than(470, 1000) == pytest.approx(NormalDist(500, math.sqrt(250)).cdf(469.5), rel=1e-2)


def test_the_interval_of_a_speedup_holds_the_truth_about_as_often_as_it_says():
    held = 0
    for seed in range(200):
        low, high = speedup_interval(timed(noisy(3.0, 2 * seed), noisy(2.0, 2 * seed + 1)))
        held += low <= 1.5 <= high
    assert 180 <= held <= 199


def test_the_ratio_of_two_speedups_tells_a_tenth_from_noise():
    before, same, slower = (timed(noisy(2.0, s), noisy(t, s + 50)) for s, t in ((1, 1.0), (2, 1.0), (3, 1.1)))
    assert ratio_interval(same, before).low < 1 < ratio_interval(same, before).high
    assert ratio_interval(slower, before).high < 1


def test_no_interval_without_samples():
    without = Result("1/1", "", {}, {}, Status.OK, speedup=2.0)
    assert speedup_interval(without) is None
    assert ratio_interval(without, timed([2.0] * 5, [1.0] * 5)) is None
    assert speedup_interval(timed([2.0] * 5, [1.0] * 5)) == (2.0, 2.0)


@pytest.mark.parametrize("interval", [[-0.5, 2.0], [0.0, 2.0], [2.0, 1.0], [math.nan, 2.0]])
def test_an_interval_of_an_old_record_that_is_none_says_that_nothing_is_known(interval):
    found = timed([2.0] * 5, [1.0] * 5)
    found.baselines["eager"]["interval"] = interval
    low, high = speedup_interval(found)
    assert 0 < low < 1e-100 and high > 1e100
    assert ratio_interval(found, timed([2.0] * 5, [1.0] * 5)).low < 1e-100


def test_the_interval_is_over_the_baseline_that_the_speedup_is_over():
    found = timed([2.0] * 5, [1.0] * 5)
    found.baselines = {"compile": {"error": "no compiler"}, **found.baselines, "other": {"samples_ms": [9.0] * 4}}
    assert speedup_interval(found) == (2.0, 2.0)
    found.baselines = {"compile": found.baselines["eager"]}
    assert speedup_interval(found) == (2.0, 2.0)


def test_the_interval_of_paired_rounds_is_what_two_runs_are_compared_by():
    rounds = [1.0, 1.001, 0.999] * 10
    narrow, wide = (
        Result(
            "1/1", "p", {"name": "full"}, {"name": "a.py", "sample": 0}, Status.OK, speedup=1.0,
            timing={"samples_ms": rounds},
            baselines={"eager": {"samples_ms": rounds, "speedup": 1.0, "interval": [1 - half, 1 + half]}},
        )
        for half in (0.005, 0.05)
    )  # fmt: skip
    low, high = ratio_interval(wide, narrow)
    assert low == pytest.approx(1 - 0.05, abs=0.002) and high == pytest.approx(1 + 0.05, abs=0.003)
    assert ratio_interval(narrow, narrow)[1] < 1.01


def test_a_mean_without_samples_has_the_variance_of_the_delta_method():
    draws = np.random.default_rng(0).normal(2.0, 0.1, size=(4000, 25))
    statistics = {"mean_ms": 2.0, "std_ms": 0.1, "samples": 25}
    assert log_mean_variance(statistics) == pytest.approx((0.1 / 2.0) ** 2 / 25)
    assert log_mean_variance(statistics) == pytest.approx(np.log(draws.mean(axis=1)).var(), rel=0.1)


@pytest.mark.parametrize("wrong", [{"std_ms": None}, {"samples": 1}, {"mean_ms": 0.0}, {"mean_ms": None}])
def test_a_mean_of_unknown_spread_has_no_variance(wrong):
    assert log_mean_variance({"mean_ms": 2.0, "std_ms": 0.1, "samples": 25} | wrong) is None


def test_clusters_are_drawn_whole():
    """Four values that always agree are one draw: the interval is that of ten values, not of forty."""
    mean = lambda values, weights: (values * weights).sum(-1) / weights.sum(-1)  # noqa: E731
    values = np.arange(10.0)
    alone = bootstrap(mean, values)
    assert bootstrap(mean, np.repeat(values, 4), clusters=np.repeat(np.arange(10), 4)) == alone
    assert bootstrap(mean, np.repeat(values, 4)).high < alone.high
