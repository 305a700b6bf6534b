"""Metrics against cases worked by hand."""

from pathlib import Path

import pytest

from harness.result import Result, Status
from kernelbench.metrics import (
    best_of_each_problem,
    fallback,
    fast_p,
    fast_p_curve,
    geometric_mean,
    median,
    percent_of_sol,
    ratio_of_total_runtimes,
    signed_area,
    sol_p,
    standard,
)
from kernelbench.run import Run

H100 = Path(__file__).parents[2] / "results" / "h100"


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
    assert fast_p([], 0) == 0.0


def test_sol_p_thresholds_on_percent_of_the_speed_of_light():
    percents = [12.0, 50.0, 91.0, None]
    assert [sol_p(percents, p) for p in (10, 50, 90, 95)] == [3 / 4, 1 / 4, 1 / 4, 0]


def test_percent_of_sol_is_none_without_a_bound():
    bounded, unbounded = result("1/1", 1.0), result("1/1", 1.0)
    bounded.sol, unbounded.sol = {"percent_of_sol": 40.0}, {"unavailable": "no limits are known for a toaster"}
    assert [percent_of_sol(r) for r in (bounded, unbounded, result("1/1", 1.0), None)] == [40.0, None, None, None]


def test_geometric_mean():
    assert geometric_mean([0.5, 2.0, 8.0]) == pytest.approx(2.0)
    assert geometric_mean([]) is None


def test_the_best_of_a_problem_is_its_fastest_correct_sample():
    results = [
        result("1/1", 1.5),
        result("1/1", 9.0, Status.REJECTED),
        result("1/1", 2.0),
        result("1/2", None, Status.WRONG_VALUE),
    ]
    best = best_of_each_problem(results)
    assert best["1/1"].speedup == 2.0 and best["1/2"] is None


def test_a_rejected_result_counts_only_unfiltered_and_only_if_it_was_timed():
    results = [
        result("1/1", 1.5),
        result("1/1", 9.0, Status.REJECTED),
        result("1/2", None, Status.REJECTED),
        result("1/3", 3.0, Status.WRONG_VALUE),
    ]
    best = best_of_each_problem(results, unfiltered=True)
    assert best["1/1"].speedup == 9.0 and best["1/2"] is None and best["1/3"] is None


def test_a_correct_result_without_a_speedup_comes_last():
    best = best_of_each_problem([result("1/1", None), result("1/1", 0.5), result("1/1", None)])
    assert best["1/1"].speedup == 0.5


def test_standard_mode_leaves_out_failures_and_fallback_mode_counts_them_and_regressions_as_one():
    speedups = [4.0, 0.25, None]
    assert standard(speedups) == [4.0, 0.25] and fallback(speedups) == [4.0, 1.0, 1.0]
    assert geometric_mean(standard(speedups)) == pytest.approx(1.0)
    assert geometric_mean(fallback(speedups)) == pytest.approx(4 ** (1 / 3))
    assert median(standard(speedups)) == pytest.approx(2.125) and median(fallback(speedups)) == 1.0
    assert median([]) is None and geometric_mean(fallback([None])) == 1.0


def test_the_curve_has_a_step_at_every_speedup():
    # of four problems three are above 0, two above 0.5, none above 2
    assert fast_p_curve([2.0, 0.5, 2.0, None]) == [(0.0, 0.75), (0.5, 0.5), (2.0, 0.0)]
    assert fast_p_curve([]) == [(0.0, 0.0)]


def test_the_signed_area_between_two_curves():
    # by hand: F_A is 1 to 1, then 1/2 to 3: area 2; F_B is 1/2 to 2: area 1
    assert signed_area([1.0, 3.0], [2.0, None]) == pytest.approx(1.0)
    assert signed_area([2.0, None], [1.0, 3.0]) == pytest.approx(-1.0)


def test_ratio_of_total_runtimes():
    assert ratio_of_total_runtimes([(10.0, 5.0), (2.0, 1.0), (3.0, 4.0)]) == 1.5
    assert ratio_of_total_runtimes([(10.0, 5.0), (2.0, None)]) is None
    assert ratio_of_total_runtimes([]) is None


@pytest.mark.parametrize("name", ["examples", "references"])
def test_relations_between_the_figures_on_real_logs(name):
    best = best_of_each_problem(Run.load(H100 / name).latest())
    speedups = [r.speedup if r else None for r in best.values()]
    arithmetic = sum(s or 0 for s in speedups) / len(speedups)
    assert signed_area(speedups, [None] * len(speedups)) == pytest.approx(arithmetic)
    assert fast_p(speedups, 0) == sum(r is not None for r in best.values()) / len(best)
    curve = [share for _, share in fast_p_curve(speedups)]
    assert curve == sorted(curve, reverse=True) and curve[-1] == 0
