"""The evaluator from outside: its process, and who asks hears of each job as soon as it has ended."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from kernelbench.evaluator import client
from kernelbench.evaluator.client import (
    Conditions,
    EvaluationError,
    EvaluatorProcess,
    EvaluatorUnavailable,
    Job,
    evaluate_all,
)
from kernelbench.rl import job_of


@pytest.mark.slow
def test_one_that_is_closed_while_it_evaluates_starts_no_other(monkeypatch):
    """A service that was told to end started another evaluator, for the second try of what had run."""
    start, started, starts = client.start_server, Event(), []

    def counted(*arguments, **named):
        starts.append(start(*arguments, **named))
        started.set()
        return starts[-1]

    monkeypatch.setattr(client, "start_server", counted)
    process, conditions = EvaluatorProcess(), Conditions("cpu")
    job = job_of("1/19", "class ModelNew: pass", "py", conditions)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(evaluate_all, [job], conditions, process)
        assert started.wait(60)
        process.close()
        (outcome,) = call.result(60)
    (later,) = evaluate_all([job], conditions, process)
    assert isinstance(outcome, EvaluatorUnavailable) and isinstance(later, EvaluatorUnavailable)
    assert "it was closed" in str(later)
    assert len(starts) == 1 and starts[0].poll() is not None


class Dying:
    """An evaluator that answers one job a call, and then is gone; ``heard`` has what was told before each."""

    def __init__(self, told):
        self.told, self.heard = told, []

    def ask(self, jobs, conditions, answers):
        self.heard.append(list(self.told))
        answers[jobs[-1][0]] = {"unevaluated": "no room"}
        raise OSError("gone")


def test_each_job_is_told_as_it_ends_and_those_that_nobody_answers_at_last():
    told = []
    evaluator = Dying(told)
    jobs = [Job(None), Job(None), Job(None)]
    answers = evaluate_all(jobs, Conditions(), evaluator, told=lambda place, answer: told.append((place, answer)))
    assert [len(before) for before in evaluator.heard] == [0, 1]
    assert [place for place, _ in told] == [2, 1, 0]
    assert [type(answer) for answer in answers] == [EvaluatorUnavailable, EvaluationError, EvaluationError]
    assert [str(answers[place]) for place, _ in told] == [str(answer) for _, answer in told]
