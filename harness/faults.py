"""Faults of the machine: nothing that a candidate did, so no result is stored for them."""

from __future__ import annotations

import errno
import os
import tempfile
import time
from collections.abc import Callable
from typing import TypeVar

_FULL_BYTES = 16 << 20  # less than what one small build writes
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_TRIES, _WAIT_S = 10, 1.0  # a candidate that takes too much of the disk is ended within seconds
_TYPES = {"OutOfMemoryError", "MemoryError", "AcceleratorError"}
_TEXTS = (
    "can't allocate memory", "Cannot allocate memory", "Resource temporarily unavailable", "No space left on device",
    "Disk quota exceeded", "CUDA error", "CUDA driver error", "cuDNN error", "unable to find an engine",
    "valid cuDNN algorithm", "can't start new thread",
)  # fmt: skip

T = TypeVar("T")


class MachineFault(Exception):
    """The machine failed: a process was killed, memory or disk is full, a device is lost or hangs.

    Tried again once in fresh processes; then the candidate is reported as not evaluated.
    """


class NoRoom(MachineFault):
    """The problem needs more memory than is free; it is not tried again."""


def is_of_machine(error: BaseException) -> bool:
    """Return whether an error of the judge's own work means a lack of memory or disk, or a broken device."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & _TYPES) or any(text in str(error) for text in _TEXTS)


def check_disk() -> None:
    """Raise MachineFault if the disk of temporary files is full: a failure seen then may be due to it."""
    folder = tempfile.gettempdir()
    try:
        disk = os.statvfs(folder)
    except OSError as error:
        raise MachineFault(f"the folder of temporary files {folder} cannot be used: {error.strerror}") from error
    free = disk.f_bavail * disk.f_frsize
    if free < _FULL_BYTES:
        raise MachineFault(f"no room in {folder}: {free / 1e6:.0f} MB are free; make room, or set TMPDIR")
    if disk.f_files and not disk.f_favail:
        raise MachineFault(f"no room in {folder}: no inode is free; remove files, or set TMPDIR")


def with_disk_room(write: Callable[[], T]) -> T:
    """Return ``write()``, which leaves nothing behind where it fails; where the disk is full, wait for room.

    A candidate that is evaluated meanwhile may fill it. Raises what ``write`` raises the last time: OSError, or an
    error that has one as its cause.
    """
    for _ in range(_TRIES - 1):
        try:
            return write()
        except Exception as error:
            reason = error if isinstance(error, OSError) else error.__cause__
            if getattr(reason, "errno", None) not in _NO_ROOM:
                raise
            time.sleep(_WAIT_S)
    return write()
