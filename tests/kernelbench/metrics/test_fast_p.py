"""Figures against cases worked by hand."""

import math

import numpy as np
import pytest

from harness.result import Result, Status
from kernelbench.metrics.fast_p import (
    fallback,
    fast_p,
    fast_p_curve,
    geometric_mean,
    median,
    percent_of_sol,
    ratio_of_total_runtimes,
    share,
    signed_area,
    sol_p,
)


def result(problem, speedup, status=Status.OK):
    return Result(problem=problem, problem_name="", workload={}, solution={}, status=status, speedup=speedup)


@pytest.mark.parametrize("p, expected", [(0, 4 / 6), (0.5, 3 / 6), (0.8, 3 / 6), (1, 2 / 6), (1.5, 1 / 6), (2, 0)])
def test_fast_p_is_strict_and_counts_problems_without_a_solution(p, expected):
    assert fast_p([0.5, 1.0, 1.2, 2.0, None, None], p) == pytest.approx(expected)


def test_fast_p_never_rises_with_p():
    speedups = [0.3, 0.9, 1.1, 1.7, 2.5, None]
    values = [fast_p(speedups, p / 10) for p in range(40)]
    assert values == sorted(values, reverse=True)


def test_fast_p_of_nothing_is_zero():
    assert fast_p([], 0) == 0.0 and share([]) == 0.0


def test_sol_p_thresholds_on_percent_of_the_speed_of_light():
    percents = [12.0, 50.0, 91.0, None]
    assert [sol_p(percents, p) for p in (10, 50, 90, 95)] == [3 / 4, 1 / 4, 1 / 4, 0]


def test_percent_of_sol_is_none_without_a_bound():
    bounded, unbounded = result("1/1", 1.0), result("1/1", 1.0)
    bounded.sol, unbounded.sol = {"percent_of_sol": 40.0}, {"unavailable": "no limits are known for a toaster"}
    assert [percent_of_sol(r) for r in (bounded, unbounded, result("1/1", 1.0), None)] == [40.0, None, None, None]


def test_standard_mode_leaves_out_failures_and_fallback_mode_counts_them_and_regressions_as_one():
    speedups = [4.0, 0.25, None]
    assert fallback(speedups).tolist() == [4.0, 1.0, 1.0]
    assert geometric_mean(speedups) == pytest.approx(1.0)
    assert geometric_mean(fallback(speedups)) == pytest.approx(4 ** (1 / 3))
    assert median(speedups) == pytest.approx(2.125) and median(fallback(speedups)) == 1.0
    assert geometric_mean([0.5, 2.0, 8.0]) == pytest.approx(2.0)


def test_a_mean_of_nothing_is_not_a_number():
    assert all(math.isnan(of([])) and math.isnan(of([None])) for of in (geometric_mean, median))
    assert geometric_mean(fallback([None])) == 1.0


@pytest.mark.parametrize("statistic", [geometric_mean, median, lambda s, w: fast_p(s, 1.0, w)])
def test_weights_count_a_problem_as_often_as_it_was_drawn(statistic):
    speedups = np.array([0.5, np.nan, 4.0, 1.5])
    weights = np.array([[2, 1, 0, 1], [0, 0, 3, 1], [1, 1, 1, 1]])
    repeated = [np.repeat(speedups, counts) for counts in weights]
    expected = [statistic(values, np.ones(len(values))) for values in repeated]
    assert statistic(speedups, weights) == pytest.approx(expected)


def test_the_curve_has_a_step_at_every_speedup():
    # of four problems three are beyond 0, two beyond 0.5, none beyond 2
    assert fast_p_curve([2.0, 0.5, 2.0, None]) == [(0.0, 0.75), (0.5, 0.5), (2.0, 0.0)]
    assert fast_p_curve([]) == [(0.0, 0.0)]


def test_the_signed_area_between_two_curves():
    # by hand: F_A is 1 to 1, then 1/2 to 3: area 2; F_B is 1/2 to 2: area 1
    assert signed_area([1.0, 3.0], [2.0, None]) == pytest.approx(1.0)
    assert signed_area([2.0, None], [1.0, 3.0]) == pytest.approx(-1.0)


def test_ratio_of_total_runtimes():
    assert ratio_of_total_runtimes([10.0, 2.0, 3.0], [5.0, 1.0, 4.0]) == 1.5
    assert ratio_of_total_runtimes([10.0, 2.0], [5.0, None]) == 2.0
    assert math.isnan(ratio_of_total_runtimes([], []))
