"""Metrics against cases worked by hand."""

import pytest

from harness.result import Result, Status
from kernelbench.metrics import best_of_each_problem, fast_p, geometric_mean, percent_of_sol, sol_p


def result(problem, speedup, status=Status.OK):
    return Result(problem=problem, problem_name="", workload={}, solution={}, status=status, speedup=speedup)


@pytest.mark.parametrize(
    "p, expected", [(0, 4 / 6), (0.5, 3 / 6), (0.8, 3 / 6), (1, 2 / 6), (1.5, 1 / 6), (2, 0)]
)
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
