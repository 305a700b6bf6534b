"""Figures over several samples a problem, against cases worked by hand."""

import itertools

import pytest
from logs import judged, result

from harness.result import Status
from kernelbench.metrics.at_k import attempt_fast_p, pass_at_k, passes, samples_of_each_problem


def samples(*speedups):
    """One problem's samples from 0 on; None is a failure."""
    return [
        judged("1/1", speedup, sample=number) if speedup else result("1/1", status=Status.CRASHED, sample=number)
        for number, speedup in enumerate(speedups)
    ]


def test_pass_at_k_by_hand():
    # 4 samples, 1 right: of the 6 pairs 3 hold it; a problem without a sample counts 0
    assert pass_at_k([(4, 1)], 2) == pytest.approx(0.5)
    assert pass_at_k([(4, 1), (0, 0)], 2) == pytest.approx(0.25)
    assert pass_at_k([(4, 3)], 2) == 1.0 and pass_at_k([], 1) == 0.0


@pytest.mark.parametrize("n, c, k", [(5, 2, 1), (6, 2, 3), (7, 1, 7), (4, 0, 2)])
def test_pass_at_k_is_the_share_of_draws_that_hold_a_right_one(n, c, k):
    draws = list(itertools.combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k([(n, c)], k) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_a_sample_passes_a_threshold_only_beyond_doubt():
    found = [samples(0.9, 1.2, None, 2.0), []]
    assert passes(found, 1.0) == [(4, 2), (0, 0)] and passes(found, 0.0) == [(4, 3), (0, 0)]
    # 1.2 +- 1 % is not above 1.195; a tie and an unstable one are above nothing but 0
    assert passes(found, 1.195) == [(4, 1), (0, 0)]
    ties = [[judged("1/1", 1.3, half=0.4), judged("1/1", 3.0, verdict="unstable", sample=1)]]
    assert passes(ties, 1.0) == [(2, 0)] and passes(ties, 0.0) == [(2, 2)]


def test_a_correct_sample_without_a_speedup_passes_as_correct():
    untimed = result("1/1")
    untimed.baselines = {"compile": {"error": "no compiler"}}
    assert passes([[untimed]], 0.0) == [(1, 1)] and passes([[untimed]], 1.0) == [(1, 0)]


@pytest.mark.parametrize(
    "counts, k, message", [([(2, 1)], 3, "k = 3"), ([(2, 1)], 0, "at least 1"), ([(2, 3)], 1, "3 of 2 samples")]
)
def test_what_has_no_estimate_is_an_error(counts, k, message):
    with pytest.raises(ValueError, match=message):
        pass_at_k(counts, k)


def test_attempt_fast_p_counts_what_is_at_least_as_fast_as_the_best_so_far():
    found = [samples(None, 2.5, 0.5), samples(3.0), samples(0.9, 1.5, 2.0), []]
    assert attempt_fast_p(found, 2.0) == [(1, 0.25), (2, 0.5), (3, 0.75)]
    assert attempt_fast_p([[], []], 1.0) == [] and attempt_fast_p([], 1.0) == []


def test_a_tie_is_at_least_as_fast_as_the_baseline():
    tie = judged("1/1", 0.98, verdict="tie")
    assert attempt_fast_p([[tie]], 1.0) == [(1, 1.0)] and attempt_fast_p([[tie]], 1.5) == [(1, 0.0)]


def test_attempts_count_by_their_number_and_missing_ones_as_failed():
    late = [judged("1/1", 2.0, sample=4)]
    first = [judged("1/2", 2.0, sample=1)]
    assert attempt_fast_p([late, first], 1.0) == [(1, 0.5), (4, 1.0)]
    # numbers from 0, as KernelBench has them: sample 4 is the fifth attempt
    assert attempt_fast_p([late, samples(2.0)], 1.0) == [(1, 0.5), (5, 1.0)]


def test_samples_come_in_order_of_their_number_and_every_problem_counts():
    results = [result("1/1", 2.0, sample=2), result("1/1", sample=0), result("1/1", 5.0, sample=1)]
    found = samples_of_each_problem(results, ["1/1", "1/2"])
    assert [one.solution["sample"] for one in found["1/1"]] == [0, 1, 2] and found["1/2"] == []
