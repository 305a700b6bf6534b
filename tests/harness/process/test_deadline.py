"""Deadlines that another process sees, and locks that are not waited for without end."""

import fcntl
import math
import time

import pytest

from harness.faults import MachineFault
from harness.process import deadline
from harness.process.deadline import Page, take_lock, within


@pytest.fixture
def page(monkeypatch):
    page = Page()
    monkeypatch.setattr(deadline._Watched, "page", Page(page.fd))
    return page


def test_a_step_that_takes_too_long_is_named_with_its_limit(page):
    assert page.missed() is None
    with within("the reference", 0.05):
        assert page.missed() is None
        time.sleep(0.1)
        assert page.missed() == ("the reference", 0.05)
    assert page.missed() is None


def test_an_outer_deadline_begins_anew_after_each_step(page):
    with within("the judge", 0.2):
        for _ in range(3):
            with within("a step", math.inf):
                time.sleep(0.1)
            assert page.missed() is None
        time.sleep(0.25)
        assert page.missed() == ("the judge", 0.2)


def test_a_lock_that_another_holds_is_given_up_after_a_while_and_taken_when_free(tmp_path):
    path = tmp_path / "lock"
    path.touch()
    with open(path) as theirs, open(path) as ours:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        with pytest.raises(MachineFault, match="another process has held the key for 0.1 s"):
            take_lock(ours.fileno(), "the key", limit_s=0.1)
    with open(path) as theirs, open(path) as ours:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        theirs.close()
        take_lock(ours.fileno(), "the key", limit_s=10)
