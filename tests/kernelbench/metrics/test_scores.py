"""The best solution of each problem, and what choosing it does to its figures."""

import dataclasses
import random
from pathlib import Path

import numpy as np
import pytest
from logs import judged, result

from harness.result import Status
from kernelbench.metrics import fast_p, winners
from kernelbench.metrics.scores import best_of_each_problem, scores
from kernelbench.run import Run

REFERENCES = Path(__file__).parents[3] / "results" / "h100" / "references"


def test_the_best_of_a_problem_is_its_fastest_correct_sample():
    results = [
        judged("1/1", 1.5), judged("1/1", 9.0, status=Status.REJECTED), judged("1/1", 2.0, sample=1),
        result("1/2", status=Status.WRONG_VALUE),
    ]  # fmt: skip
    best = best_of_each_problem(results)
    assert best["1/1"].result.speedup == 2.0 and best["1/2"] is None


def test_a_rejected_result_counts_only_unfiltered_and_only_if_it_was_timed():
    results = [
        judged("1/1", 1.5), judged("1/1", 9.0, status=Status.REJECTED),
        result("1/2", status=Status.REJECTED), judged("1/3", 3.0, status=Status.WRONG_VALUE),
    ]  # fmt: skip
    best = best_of_each_problem(results, unfiltered=True)
    assert best["1/1"].result.speedup == 9.0 and best["1/2"] is None and best["1/3"] is None


def test_what_is_settled_is_better_than_what_is_unstable_or_was_not_timed():
    slow, unstable, untimed = judged("1/1", 0.5), judged("1/1", 9.0, verdict="unstable"), result("1/1")
    assert best_of_each_problem([untimed, unstable, slow])["1/1"].result is slow
    assert best_of_each_problem([untimed, unstable])["1/1"].result is unstable


def test_the_best_over_a_second_baseline_is_the_one_that_is_settled_over_it():
    """One that was unstable over compile ranked by its speedup over eager, and left the problem without a figure."""
    unstable, good, untimed = judged("1/1", 5.0), judged("1/1", 3.0, sample=1), judged("1/1", 9.0, sample=2)
    unstable.baselines["compile"] = {**unstable.baselines["eager"], "speedup": 1.5, "verdict": "unstable"}
    good.baselines["compile"] = judged("1/1", 1.4).baselines["eager"]
    found = scores([untimed, unstable, good], ["1/1"], baseline="compile")
    assert found.settled == [1.4] and found.beats(1).all()
    (best,) = best_of_each_problem([untimed, unstable], baseline="compile").values()
    assert best.result is unstable


def test_correct_without_a_speedup_is_solved_and_counts_in_fast_0_only():
    untimed = result("1/1")
    untimed.baselines = {"compile": {"error": "no compiler"}}
    found = scores([untimed], ["1/1", "1/2"])
    assert fast_p.share(found.beats(0)) == fast_p.share(found.raw_beats(0)) == 0.5
    assert not found.beats(0.5).any() and not found.raw_beats(0.5).any()


def test_the_best_of_several_has_an_interval_that_holds_for_all_of_them_unless_it_was_confirmed():
    one, other = judged("1/1", 1.011), judged("1/1", 1.0, sample=1)
    assert best_of_each_problem([one])["1/1"].verdict == "faster"
    assert best_of_each_problem([one, other])["1/1"].verdict == "tie"
    one.confirms = {"speedup": 1.02}
    assert best_of_each_problem([one, other])["1/1"].verdict == "faster"


def test_the_noise_of_timing_is_in_the_drawn_speedups_and_a_tie_has_none():
    found = scores([judged("1/1", 2.0, half=0.1), judged("1/2", 1.01, half=0.1)], ["1/1", "1/2", "1/3"])
    assert found.drawn_settled[:, 0].std() == pytest.approx(2.0 * 0.1 / 1.96, rel=0.15)
    assert set(found.drawn_settled[:, 1]) == {1.0} and np.isnan(found.drawn_settled[:, 2]).all()


def test_a_choice_among_equals_does_not_raise_what_is_drawn():
    # ten solutions that are all 1.5 times as fast: the choice of the highest adds nothing to what counts
    equals = [judged("1/1", 1.5, half=0.05, sample=n) for n in range(10)]
    drawn = scores(equals, ["1/1"]).drawn_settled[:, 0]
    assert drawn.mean() == pytest.approx(1.5, rel=0.01) and fast_p.median(drawn) == pytest.approx(1.5, rel=0.01)


def test_references_against_themselves_are_not_faster_than_themselves():
    run = Run.load(REFERENCES)
    found = scores(run.solutions(), sorted({r.problem for r in run.results}))
    assert fast_p.share(found.beats(1.0)) == 0.004 and fast_p.fast_p(found.raw, 1.0) == 0.532
    assert fast_p.geometric_mean(found.settled) == pytest.approx(1.0, abs=0.002)


def test_the_best_of_several_second_measurements_has_an_interval_that_holds_for_those():
    """Twenty copies of one kernel were measured again until one was lucky twice, and that one was called confirmed."""
    copies = [judged("1/1", 1.5, half=0.1, sample=n) for n in range(20)]
    lone = copies[0].confirms = {"speedup": 1.6}
    (once,) = best_of_each_problem(copies[:1]).values()
    for copy in copies[:5]:
        copy.confirms = lone
    (often,) = best_of_each_problem(copies).values()
    assert once.interval.low == pytest.approx(1.35) and often.interval.low < 1.31


def test_the_best_of_ten_that_change_nothing_is_not_faster_once_it_is_confirmed():
    """1,000 problems with ten samples each, drawn from the noise that 250 references were recorded with on an H100."""
    recorded = [r for r in Run.load(REFERENCES).latest() if r.speedup]
    draw = random.Random(7)

    def sample_of(problem, number, confirms=None):
        solution = {**recorded[0].solution, "name": f"{problem} {number}", "sample": number}
        return dataclasses.replace(draw.choice(recorded), problem=problem, solution=solution, confirms=confirms)

    problems = [f"1/{n}" for n in range(1, 1001)]
    results = {(p, number): sample_of(p, number) for p in problems for number in range(10)}
    chosen = scores(results.values(), problems)
    while again := winners.unconfirmed(results.values()):
        for best in again:
            key = best.problem, best.solution["sample"]
            results[key] = sample_of(*key, confirms=winners.first_measurement(best))
    confirmed = scores(results.values(), problems)
    assert fast_p.share(chosen.raw_beats(1.0)) > 0.9 and fast_p.share(confirmed.beats(1.0)) <= 0.02
    assert fast_p.geometric_mean(confirmed.settled) == pytest.approx(1.0, abs=0.002)
    assert winners.bias(results.values())["bias"] > 1


def test_an_interval_that_no_double_holds_ends_where_doubles_end():
    """A record of others, whose interval was wide and widened for a choice among a hundred, ended every table."""
    odd = judged("1/1", 1e-100)
    odd.baselines["eager"]["interval"] = [0.0, 1e300]
    others = [judged("1/1", 1e-101, sample=number) for number in range(1, 100)]
    best = best_of_each_problem([odd, *others])["1/1"]
    assert best.result is odd and best.verdict == "tie"
    assert best.interval.low == 0 and 1e300 < best.interval.high < float("inf")


def test_an_interval_that_is_widened_holds_the_speedup_however_low_that_is():
    """Both ends were taken for at least 1e-9, and so the lower one of a speedup of 1e-12 was above it."""
    best = best_of_each_problem([judged("1/1", 1e-12, sample=number) for number in range(10)])["1/1"]
    assert 0.9e-12 < best.interval.low < 1e-12 < best.interval.high < 1.1e-12 and best.verdict == "slower"


def test_an_interval_that_is_not_widened_is_the_one_of_the_record():
    (best,) = best_of_each_problem([judged("1/1", 1.5, half=0.1)]).values()
    assert tuple(best.interval) == pytest.approx((1.35, 1.65))
