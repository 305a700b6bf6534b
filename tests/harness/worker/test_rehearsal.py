"""Calls without a candidate, and the threads that stand in for the candidate's."""

import threading
import time

import pytest

from harness.worker.rehearsal import Rehearsal


@pytest.fixture
def rehearsal():
    made = Rehearsal([])
    yield made
    made.hold(1)


def test_it_has_as_many_threads_as_it_is_told(rehearsal):
    before = threading.active_count()
    rehearsal.hold(4)
    assert threading.active_count() == before + 3
    rehearsal.hold(2)
    deadline = time.monotonic() + 5
    while threading.active_count() > before + 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before + 1


def test_what_python_took_counts_from_when_the_request_arrived(rehearsal):
    rehearsal.begin()
    time.sleep(0.02)
    answer = rehearsal.rehearse([1])
    assert answer["wall_ms"] > 20 > answer["cpu_ms"] > 0
