"""Calls without a candidate: the crowd that stands in for the candidate's threads and processes."""

import os
from pathlib import Path

import pytest

from harness.worker.rehearsal import Rehearsal


@pytest.fixture
def rehearsal():
    made = Rehearsal([])
    yield made
    made.hold(1, 1)


def children():
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_a_crowd_that_grew_says_so(rehearsal):
    """Calls right after it paid for its start, and all of that counted as overhead of the candidate's calls."""
    grown = [rehearsal.hold(*crowd)["grew"] for crowd in [(1, 1), (1, 3), (1, 3), (4, 3), (2, 2), (2, 3)]]
    assert grown == [False, True, False, True, False, True]


def test_members_of_a_crowd_wait_before_the_next_call(rehearsal):
    before = children()
    rehearsal.hold(1, 4)
    new = children() - before
    assert len(new) == 3
    for child in new:  # what it inherited is closed: the last that it does before it waits
        assert len(os.listdir(f"/proc/{child}/fd")) <= 5
    rehearsal.hold(1, 1)
    assert not children() & new
