"""A schedule that stops problems: live it does what a replay of the full run says."""

import pytest
from candidates import STRATEGIES

from kernelbench.metrics.scheduling import FIXED, Policy, course, grid, replay
from kernelbench.scheduling.traces import traces
from kernelbench.solvers.landscape.simulation import Landscape, simulate
from kernelbench.solvers.schedule.order import UnknownSchedule, schedule_of
from kernelbench.solvers.script import Script

LANDSCAPE = Landscape(5, tuple(f"1/{n}" for n in range(1, 9)), "strong")


def courses_of(run):
    lines = (map(vars, log.values()) for log in (run.journal.attempts, run.journal.calls))
    return [course(trace) for trace in traces(run.results, *lines, run.landscape.problems)]


@pytest.fixture(scope="module")
def whole():
    return simulate(Script(STRATEGIES / "refine.py"), LANDSCAPE)


def test_without_rules_a_replay_reproduces_the_run(whole):
    recorded = courses_of(whole)
    off = replay(recorded, Policy(eps=None, window=0))
    assert off.attempts.tolist() == [40] * 8
    assert off.tokens.sum() == sum(sum(call.tokens.values()) for call in whole.journal.calls.values())
    assert off.usd.sum() == pytest.approx(sum(call.cost_usd for call in whole.journal.calls.values()))


@pytest.mark.parametrize("eps, window", [("100%", 0), ("off", 4), ("50%", 8), ("off", 0), ("300%", 4)])
def test_a_live_run_equals_the_replay_of_the_full_run(whole, eps, window):
    live = simulate(
        Script(STRATEGIES / "refine.py"), LANDSCAPE, schedule=f"policy:eps={eps},window={window}"
    )
    policy = Policy(None if eps == "off" else float(eps[:-1]) / 100, window)
    expected, found = replay(courses_of(whole), policy), replay(courses_of(live), FIXED)
    for name in ("settled", "raw", "attempts", "tokens"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name
    done = {(result.problem, result.solution["sample"]) for result in live.results}
    kept = [result for result in whole.results if (result.problem, result.solution["sample"]) in done]
    assert live.results == kept


def test_the_grid_has_policies_that_stop_some_problems_and_not_all(whole):
    recorded = courses_of(whole)
    shares = {sum(trace.units_done(policy) < 40 for trace in recorded) for policy in grid()}
    assert len(shares) > 2 and max(shares) > 0


@pytest.mark.parametrize(
    "text, message",
    [("policy:eps=1", "percentage"), ("policy:window=-1", "number of attempts"), ("policy:w=3", "no option w")],
)
def test_a_wrong_option_is_refused(text, message):
    with pytest.raises(UnknownSchedule, match=message):
        schedule_of(text)
