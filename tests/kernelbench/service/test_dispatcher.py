"""From the queue to the evaluator and back, whatever becomes of the disk in between."""

import sqlite3
import threading
from types import SimpleNamespace

import pytest

pytest.importorskip("prometheus_client", reason="pip install 'kernelbench[serve]'")

from kernelbench.service import dispatcher
from kernelbench.service.metrics import Metrics
from kernelbench.service.submission import BadSubmission


class FullDisk:
    """A store of one submission, on a disk that has room only after some tries of each step."""

    def __init__(self, tries):
        self.answered = threading.Event()
        self._left = {step: tries for step in ("take", "answer", "forget_old")}
        self._waiting = iter([(1, {"name": "only"}, 0.5)])

    def _try(self, step):
        self._left[step] -= 1
        if self._left[step] >= 0:
            raise sqlite3.OperationalError("database or disk is full")

    def take(self):
        self._try("take")
        return next(self._waiting, None)

    def answer(self, seq, answer):
        self._try("answer")
        self.said = answer
        self.answered.set()
        return "client", "id"

    def forget_old(self):
        self._try("forget_old")


def test_a_disk_that_was_full_delays_answers_and_loses_none(monkeypatch):
    """One moment without room ended all threads: submissions were accepted and never answered."""
    monkeypatch.setattr(dispatcher, "_FULL_S", 0.01)

    def job(stored):
        raise BadSubmission("no_problem", "there is no such problem")

    store, evaluator = FullDisk(3), SimpleNamespace(close=lambda: None)
    metrics = Metrics(lambda: dict.fromkeys(("queued", "running"), 0))
    made = dispatcher.Dispatcher(store, SimpleNamespace(job=job), evaluator, metrics, {"devices": 1, "builds": 1})
    made.start()
    try:
        assert store.answered.wait(30) and "no such problem" in store.said["unevaluated"]
    finally:
        made.close()
