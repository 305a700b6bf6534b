"""From the queue to the evaluator and back: as many at once as keep builds and devices busy."""

from __future__ import annotations

import functools
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any

from harness.process.protocol import Closed
from harness.result import Result
from kernelbench.evaluation.executor import EnvironmentUnfit
from kernelbench.evaluator.client import Conditions, EvaluatorProcess, EvaluatorUnavailable, evaluate_all
from kernelbench.service.metrics import Metrics
from kernelbench.service.store import Store
from kernelbench.service.submission import BadSubmission, Intake

_AHEAD = 2  # built candidates that wait for each device, so that none is idle between two
_FORGET_EVERY_S = 600.0
_FULL_S = 2.0  # until the queue is written again where its disk was full
_LATER_S = 10.0  # until a submission is tried again for which there was no evaluator: a device may come back


def describe(conditions: Conditions, evaluator: EvaluatorProcess) -> dict[str, Any]:
    """Return what the evaluator evaluates on: device, how many, builds at once. Raises EnvironmentUnfit."""
    answers: dict[int | None, dict[str, Any]] = {}
    try:
        evaluator.ask([], conditions, answers)
    except (Closed, OSError) as error:
        raise EnvironmentUnfit(f"the evaluator does not start: {error}; `kb doctor` says what is missing") from error
    answer = answers[None]
    if "bench" not in answer:
        raise EnvironmentUnfit(answer["unevaluated"])
    return answer["bench"]


class Dispatcher:
    """Evaluates what the store holds, ``at_once`` side by side; ``ended`` is told client and id of each answer."""

    def __init__(
        self, store: Store, intake: Intake, evaluator: EvaluatorProcess, metrics: Metrics, bench: dict[str, Any]
    ):
        self._store, self._intake, self._evaluator, self._metrics = store, intake, evaluator, metrics
        self._changed = threading.Condition()
        self._closed = False
        self.devices: int = bench["devices"]
        self.ended: Callable[[str, str], None] = lambda client, name: None
        at_once = bench["builds"] + _AHEAD * bench["devices"]
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(at_once)]
        self._threads.append(threading.Thread(target=self._forget, daemon=True))

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """Look at the queue: there is something new."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Take nothing more; what runs is evaluated again by the next service."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._evaluator.close()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._closed and (taken := self._stored(self._store.take)) is None:
                    self._changed.wait()
                if self._closed:
                    return
            seq, stored, waited_s = taken
            self._metrics.waited.observe(waited_s)
            answer = self._evaluated(stored)
            if self._closed:
                return
            if answer is None and self._later(seq):
                continue
            answer = answer or {"unevaluated": "there was no evaluator whenever this was tried"}
            told = self._stored(functools.partial(self._store.answer, seq, answer))
            if told is None:
                return
            self.ended(*told)
            self.wake()

    def _stored(self, step: Callable[[], Any]) -> Any:
        """Return what a step on the store returns, tried until its disk has room; None once the service is closed."""
        while not self._closed:
            try:
                return step()
            except sqlite3.OperationalError as error:
                logging.getLogger(__name__).warning("cannot write the queue, trying again: %s", error)
                with self._changed:
                    self._changed.wait_for(lambda: self._closed, timeout=_FULL_S)
        return None

    def _later(self, seq: int) -> bool:
        """Put a submission back after a while; return False where that has been done often enough."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed, timeout=_LATER_S)
        return self._closed or self._stored(functools.partial(self._store.put_back, seq)) is not False

    def _evaluated(self, stored: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to one submission, never an exception; None where there is no evaluator now."""
        begin = time.monotonic()
        try:
            job, conditions = self._intake.job(stored)
            (outcome,) = evaluate_all([job], conditions, self._evaluator)
        except BadSubmission as error:  # it was accepted with other problems than there are now
            outcome = error
        except Exception as error:  # whatever it was about this one, the others go on
            outcome = RuntimeError(f"the service failed, please report this: {type(error).__name__}: {error}")
        if isinstance(outcome, EvaluatorUnavailable):
            return None
        self._metrics.took.observe(time.monotonic() - begin)
        if not isinstance(outcome, Result):
            self._metrics.answers.labels("unevaluated").inc()
            return {"unevaluated": str(outcome)}
        self._metrics.answers.labels(outcome.status.value).inc()
        self._metrics.evaluated(outcome)
        return {"result": outcome.to_json()}

    def _forget(self) -> None:
        while True:
            self._stored(self._store.forget_old)
            with self._changed:
                if self._changed.wait_for(lambda: self._closed, timeout=_FORGET_EVERY_S):
                    return
