"""Traces of a run: attempts in units, with what their calls cost."""

import pytest
from logs import NO_LOGS, judged, no_log, result, run

from harness.result import Status
from kernelbench.metrics.scheduling import FIXED, course, replay
from kernelbench.run import RunError
from kernelbench.scheduling.traces import calls_of, traces


def attempt(sample, tokens=100, **tags):
    return {
        "problem": "1/19", "sample": sample, "tokens": {"prompt": tokens, "completion": 0}, "cost_usd": tokens / 1e4,
        "tags": tags,
    }  # fmt: skip


def call(tokens=100, **tags):
    return {"problem": "1/19", "tokens": {"prompt": tokens, "completion": 0}, "cost_usd": tokens / 1e4, "tags": tags}


def shape(trace):
    return [len(unit.attempts) for unit in trace.units]


RESULTS = [
    judged("1/19", 2.0, sample=1, sol={"t_sol_fp16_ms": 0.1}),
    result("1/19", status=Status.BUILD_ERROR, sample=2),
    judged("1/19", 1.0, sample=3, verdict="unstable"),
    judged("1/19", 4.0, sample=4),
]


def test_each_attempt_is_a_unit_with_what_it_is_known_to_be():
    (trace,) = traces(RESULTS, map(attempt, [1, 2, 3, 4]), [], ["1/19"])
    assert shape(trace) == [1, 1, 1, 1] and trace.sol_ms == 0.1
    assert [unit.attempts[0].speedup for unit in trace.units] == [2.0, None, None, 4.0]
    assert [unit.attempts[0].raw for unit in trace.units] == [2.0, None, 1.0, 4.0]
    assert [unit.tokens for unit in trace.units] == [100] * 4


def test_a_confirmation_is_no_attempt():
    again = judged("1/19", 1.5, sample=4, confirms={"speedup": 4.0})
    (trace,) = traces([*RESULTS, again], map(attempt, [1, 2, 3, 4]), [], ["1/19"])
    assert trace.units[-1].attempts[0].speedup == 4.0


def test_iterations_are_units_and_calls_count_in_their_own():
    tried = [attempt(1, iteration=1), attempt(2, iteration=1), attempt(3, iteration=2), attempt(4, iteration=2)]
    asked = [call(50, iteration=1), call(7, iteration=1), call(30, iteration=2), call(9, iteration=3)]
    (trace,) = traces(RESULTS, tried, asked, ["1/19"])
    assert shape(trace) == [2, 2]
    assert [unit.tokens for unit in trace.units] == [57, 39]  # the third iteration made no attempt


def test_what_the_schedule_granted_wins_over_iterations():
    tried = [attempt(s, iteration=1, unit=unit) for s, unit in ((1, 1), (2, 1), (3, 1), (4, 2))]
    (trace,) = traces(RESULTS, tried, [call(unit=1), call(unit=2)], ["1/19"])
    assert shape(trace) == [3, 1]


def test_calls_before_the_first_grant_count_in_the_first_unit():
    asked = [call(5, unit=0), call(unit=1), call(unit=2)]
    (trace,) = traces(RESULTS[:2], [attempt(1, unit=1), attempt(2, unit=2)], asked, ["1/19"])
    assert [unit.tokens for unit in trace.units] == [105, 100]


def test_calls_after_the_last_attempt_count():
    (trace,) = traces(RESULTS, map(attempt, [1, 2, 3, 4]), [call()] * 4 + [call(25)], ["1/19"])
    assert [unit.tokens for unit in trace.units] == [100, 100, 100, 125]
    assert trace.units[-1].usd == pytest.approx(0.0125)


def test_unknown_tokens_stay_unknown():
    unknown = {**attempt(1), "tokens": {"prompt": None, "completion": 3}}
    (trace,) = traces(RESULTS[:1], [unknown], [], ["1/19"])
    assert trace.units[0].tokens is None


def test_samples_of_a_directory_are_attempts_without_cost():
    (trace,) = traces(RESULTS, [], [], ["1/19"])
    assert shape(trace) == [1, 1, 1, 1] and trace.units[0].tokens is None


def test_a_problem_without_attempts_is_empty():
    (trace,) = traces([], [], [], ["1/20"])
    assert trace.units == ()
    assert replay([course(trace)], FIXED).attempts.tolist() == [0]


def test_calls_of_a_problem_without_an_attempt_count():
    """Answers without a solution were free once their run was finished."""
    (trace,) = traces([], [], [call(30), call(5, unit=2)], ["1/19"])
    assert [(unit.attempts, unit.tokens) for unit in trace.units] == [((), 35)]
    assert trace.units[0].usd == pytest.approx(0.0035)
    assert replay([course(trace)], FIXED).attempts.tolist() == [0]


def test_calls_of_results_without_a_trajectory_count_beside_them():
    (trace,) = traces(RESULTS, [], [call(30)], ["1/19"])
    assert shape(trace) == [4] and trace.units[0].tokens == 30


@pytest.mark.parametrize("kind", NO_LOGS)
def test_calls_that_are_no_plain_file_are_refused_at_once(tmp_path, kind):
    made = run(tmp_path / "r")
    assert calls_of(made) == []
    no_log(made.path / "calls.jsonl", kind)
    with pytest.raises(RunError, match="calls.jsonl cannot be read: it is (not a plain file|too large)"):
        calls_of(made)
