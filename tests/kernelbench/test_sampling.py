"""Figures over several samples a problem, against cases worked by hand."""

import itertools

import pytest

from harness.result import Result, Status
from kernelbench.metrics import fast_p
from kernelbench.sampling import attempt_fast_p, fast_p_at_k, pass_at_k, samples_of_each_problem


def test_pass_at_k_by_hand():
    # 4 samples, 1 right: of the 6 pairs 3 hold it; a problem without a sample counts 0
    assert pass_at_k([(4, 1)], 2) == pytest.approx(0.5)
    assert pass_at_k([(4, 1), (0, 0)], 2) == pytest.approx(0.25)
    assert pass_at_k([(4, 3)], 2) == 1.0 and pass_at_k([], 1) == 0.0


@pytest.mark.parametrize("n, c, k", [(5, 2, 1), (6, 2, 3), (7, 1, 7), (4, 0, 2)])
def test_pass_at_k_is_the_share_of_draws_that_hold_a_right_one(n, c, k):
    draws = list(itertools.combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k([(n, c)], k) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_fast_p_at_k_thresholds_the_samples():
    samples = [[0.9, 1.2, None, 2.0], []]
    # above 1: 2 of 4, so a pair misses with 1/6; above 2: none
    assert fast_p_at_k(samples, 1.0, 2) == pytest.approx((1 - 1 / 6) / 2)
    assert fast_p_at_k(samples, 2.0, 2) == 0.0


def test_fast_p_at_1_of_single_samples_is_fast_p():
    speedups = [0.5, 1.5, None, 3.0]
    assert fast_p_at_k([[s] for s in speedups], 1.0, 1) == fast_p(speedups, 1.0)


@pytest.mark.parametrize(
    "counts, k, message", [([(2, 1)], 3, "k = 3"), ([(2, 1)], 0, "at least 1"), ([(2, 3)], 1, "3 of 2 samples")]
)
def test_what_has_no_estimate_is_an_error(counts, k, message):
    with pytest.raises(ValueError, match=message):
        pass_at_k(counts, k)


def test_attempt_fast_p_follows_the_best_so_far():
    samples = [[None, 2.5, 0.5], [3.0], [1.0, 1.5, 2.0], []]
    assert attempt_fast_p(samples, 2.0) == [0.25, 0.5, 0.5]
    assert attempt_fast_p(samples, 1.0) == [0.25, 0.75, 0.75]
    assert attempt_fast_p([[], []], 1.0) == [] and attempt_fast_p([], 1.0) == []


def test_samples_come_in_order_of_their_number_and_every_problem_counts():
    def result(sample, status, speedup):
        return Result("1/1", "", {}, {"sample": sample}, status, speedup=speedup)

    results = [result(2, Status.OK, 2.0), result(0, Status.CRASHED, None), result(1, Status.REJECTED, 5.0)]
    assert samples_of_each_problem(results, ["1/1", "1/2"]) == {"1/1": [None, None, 2.0], "1/2": []}
    assert samples_of_each_problem(results, ["1/1"], unfiltered=True) == {"1/1": [None, 5.0, 2.0]}
