"""Writing waits for room on a disk that a candidate may fill meanwhile."""

import errno
import threading
import time

import pytest

from harness import faults
from harness.faults import with_disk_room
from kernelbench.run import WriteError


def full():
    return OSError(errno.ENOSPC, "No space left on device")


def of_a_run():
    error = WriteError("cannot write")
    error.__cause__ = full()
    return error


@pytest.mark.parametrize("failure", [full, of_a_run])
def test_a_full_disk_is_waited_for(failure, monkeypatch):
    monkeypatch.setattr(faults, "_WAIT_S", 0.01)
    freed = threading.Event()
    threading.Timer(0.03, freed.set).start()

    def write():
        if not freed.is_set():
            raise failure()
        return "written"

    assert with_disk_room(write) == "written"


@pytest.mark.parametrize("failure", [full, of_a_run])
def test_one_that_stays_full_is_the_same_error(failure, monkeypatch):
    monkeypatch.setattr(faults, "_WAIT_S", 0.0)
    tries = []

    def write():
        tries.append(1)
        raise failure()

    with pytest.raises(type(failure())):
        with_disk_room(write)
    assert len(tries) == 10


def test_other_errors_are_not_waited_for():
    def write():
        raise OSError(errno.EACCES, "Permission denied")

    begin = time.monotonic()
    with pytest.raises(PermissionError):
        with_disk_room(write)
    assert time.monotonic() - begin < 0.5
