"""The evaluator's process, from outside."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from kernelbench.evaluator import client
from kernelbench.evaluator.client import Conditions, EvaluatorProcess, EvaluatorUnavailable, evaluate_all
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
