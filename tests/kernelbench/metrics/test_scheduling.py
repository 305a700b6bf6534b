"""Budget scheduling, against cases that were worked by hand."""

import math

import numpy as np
import pytest

from kernelbench.metrics import fast_p
from kernelbench.metrics import scheduling as s

NAN = float("nan")
BASELINE_MS = 4.0


def attempt(ms=None, sd=0.0):
    """An attempt that took ``ms`` against a baseline of 4 ms; a failure without."""
    if ms is None:
        return s.Attempt()
    return s.Attempt(ms, BASELINE_MS / ms, BASELINE_MS / ms, sd**2)


def trace(*times, sol_ms=1.0, per_unit=1, tokens=100.0, usd=0.01, problem="1/1"):
    attempts = [attempt(ms) for ms in times]
    units = [tuple(attempts[i : i + per_unit]) for i in range(0, len(attempts), per_unit)]
    return s.Trace(problem, sol_ms, tuple(s.Unit(of, tokens, usd) for of in units))


def replay(traces, policy):
    return s.replay([s.course(one) for one in traces], policy)


# -- eligibility: section 4.3, page 8 -------------------------------------------------------------------------------


def test_a_problem_behind_the_baseline_is_never_stopped():
    near_and_idle = s.progress([attempt(4.1), *[attempt()] * 50])
    assert not s.Policy(10.0, 4).stops(near_and_idle, sol_ms=4.0)


def test_a_tie_with_the_baseline_is_not_ahead():
    assert not s.Policy(10.0, 1).stops(s.progress([attempt(4.0), attempt()]), sol_ms=4.0)


@pytest.mark.parametrize("ms, stopped", [(2.01, False), (2.0, True), (1.5, True)])
def test_the_headroom_rule_stops_at_one_plus_eps_times_t_sol(ms, stopped):
    assert s.Policy(eps=1.0).stops(s.progress([attempt(ms)]), sol_ms=1.0) is stopped


def test_eps_of_zero_still_stops_at_t_sol_and_off_does_not():
    at_sol = s.progress([attempt(1.0)])
    assert s.Policy(eps=0.0).stops(at_sol, sol_ms=1.0)
    assert not s.Policy(eps=None).stops(at_sol, sol_ms=1.0)


def test_without_a_bound_the_headroom_rule_never_stops():
    assert not s.Policy(eps=3.0).stops(s.progress([attempt(0.1)]), sol_ms=None)


def test_a_speedup_of_which_no_time_is_known_is_near_no_bound():
    """A record of others may say so."""
    assert not s.Policy(eps=3.0).stops(s.progress([s.Attempt(None, 2.0, 2.0)]), sol_ms=1.0)


def test_the_window_counts_attempts_in_a_row_that_brought_nothing():
    idle = [attempt(2.0), attempt(), attempt(3.0), attempt(2.0)]  # a failure, a slower one, the same again
    assert s.progress(idle).idle == 3
    assert s.Policy(window=3).stops(s.progress(idle), None)
    assert not s.Policy(window=4).stops(s.progress(idle), None)
    assert s.progress([*idle, attempt(1.9)]).idle == 0
    assert not s.Policy(window=0).stops(s.progress([attempt(2.0), *[attempt()] * 100]), None)


def test_an_improvement_within_the_noise_is_none():
    """1.96 sqrt(2 * 0.01^2) = 0.0277: a ratio up to exp(0.0277) = 1.028 may be chance."""
    assert s.progress([attempt(2.0, sd=0.01), attempt(2.0 / 1.027, sd=0.01)]).idle == 1
    assert s.progress([attempt(2.0, sd=0.01), attempt(2.0 / 1.029, sd=0.01)]).idle == 0


def test_small_steps_count_once_they_add_up():
    steps = [attempt(2.0 / 1.02**i, sd=0.01) for i in range(3)]
    assert s.progress(steps[:2]).idle == 1
    assert s.progress(steps).idle == 0  # 1.02^2 = 1.0404 over the first
    assert s.progress(steps[:2]).best is steps[1]  # the time that the headroom rule reads is the best one's


# -- replay: section 5.7, page 11 -----------------------------------------------------------------------------------


def test_a_policy_is_asked_after_every_unit_of_work():
    attempts = trace(None, 5.0, 2.0, 1.8, 1.7, 1.6)
    assert s.course(attempts).units_done(s.Policy(eps=1.0)) == 3
    iterations = trace(None, 5.0, 2.0, 1.8, 1.7, 1.6, per_unit=4)
    assert s.course(iterations).units_done(s.Policy(eps=1.0)) == 1  # the iteration that is begun is ended


def test_the_fixed_policy_does_everything():
    traces = [trace(2.0, 1.0, 0.5), trace(None, None, problem="1/2")]
    whole = replay(traces, s.FIXED)
    np.testing.assert_array_equal(whole.settled, [8.0, NAN])
    np.testing.assert_array_equal(whole.attempts, [3, 2])
    np.testing.assert_array_equal(whole.tokens, [300, 200])
    np.testing.assert_allclose(whole.usd, [0.03, 0.02])


def test_a_replay_keeps_the_best_of_what_was_done_and_its_cost():
    """The first problem is stopped after 3 of 6 attempts at 2 ms, the second never: 3 + 2 of 8 attempts."""
    traces = [trace(None, 5.0, 2.0, 1.8, 1.7, 1.6), trace(8.0, 5.0, problem="1/2")]
    cut = replay(traces, s.Policy(eps=1.0))
    np.testing.assert_allclose(cut.settled, [2.0, 0.8])
    np.testing.assert_array_equal(cut.attempts, [3, 2])
    assert s.savings(cut.attempts, replay(traces, s.FIXED).attempts) == pytest.approx(3 / 8)


def test_cost_that_is_not_known_of_one_unit_is_not_known():
    assert replay([trace(2.0, tokens=None)], s.FIXED).tokens is None


def test_the_grid_is_that_of_the_paper():
    """Section 6.2.2: 48 policies for each variant."""
    assert len(s.grid()) == 48


# -- retention, savings, gain: section 5.6, page 11 -------------------------------------------------------------------


def test_retention_is_the_ratio_of_means():
    """Geometric means 2 and 4; medians 2.5 and 5."""
    assert s.retention(np.array([1.0, 4.0]), np.array([2.0, 8.0])) == pytest.approx(0.5)
    assert s.retention(np.array([1.0, 4.0]), np.array([2.0, 8.0]), mean=fast_p.median) == pytest.approx(0.5)


def test_unsolved_problems_are_skipped_or_count_as_one():
    speedups = np.array([4.0, NAN])
    assert fast_p.geometric_mean(s.counted(speedups)) == pytest.approx(4.0)
    assert fast_p.geometric_mean(s.counted(speedups, s.ONE)) == pytest.approx(2.0)


@pytest.mark.parametrize(
    "saved, kept, gain",
    [(0.43, 0.96, 1.68), (0.34, 0.964, 1.46), (0.0, 1.0, 1.0), (0.5, 0.5, 1.0)],
    ids=["section 6.2.3, GPT-5", "section 6.2.3, GPT-5.2", "nothing saved", "as much lost as saved"],
)
def test_gain_is_speedup_for_each_token(saved, kept, gain):
    found = s.efficiency_gain(np.array([2.0 * kept]), np.array([2.0]), np.array([100 * (1 - saved)]), np.array([100.0]))
    assert found == pytest.approx(gain, abs=0.005)


def test_a_run_without_cost_saves_nothing():
    assert s.savings(np.zeros(2), np.zeros(2)) == 0.0


def test_figures_take_draws_of_problems():
    """Weights are how often each problem was drawn: with the first alone, and with both."""
    weights = np.array([[2.0, 0.0], [1.0, 1.0]])
    kept = s.retention(np.array([1.0, 4.0]), np.array([2.0, 4.0]), weights)
    np.testing.assert_allclose(kept, [0.5, math.sqrt(0.5)])
    gains = s.efficiency_gain(
        np.array([1.0, 4.0]), np.array([2.0, 4.0]), np.array([10.0, 40.0]), np.array([40.0, 40.0]), weights
    )
    np.testing.assert_allclose(gains, [0.5 * 4, math.sqrt(0.5) * 80 / 50])


def test_the_best_policy_gains_most_among_those_that_retain_enough():
    assert s.best_policy([1.0, 1.9, 1.5], [1.0, 0.90, 0.95]) == 2
    assert s.best_policy([1.9], [0.5]) is None


# -- Pareto: section 6.2.2 --------------------------------------------------------------------------------------------


def test_the_upper_hull_drops_what_lies_below_a_line_between_two_others():
    """(2, 2) lies on the line from (1, 1) to (3, 3), (4, 2.5) is dearer and slower than (3, 3)."""
    points = [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (4.0, 2.5), (2.5, 1.0)]
    assert s.upper_hull(points) == [(1.0, 1.0), (3.0, 3.0)]
    assert s.upper_hull([(1.0, 1.0), (2.0, 2.5), (3.0, 3.0)]) == [(1.0, 1.0), (2.0, 2.5), (3.0, 3.0)]
    assert s.upper_hull([(1.0, 1.0), (1.0, 2.0)]) == [(1.0, 2.0)]
    assert s.upper_hull([]) == []
