"""Faults of the machine: nothing that a candidate did, so no result is stored for them."""

from __future__ import annotations

import os
import tempfile

_FULL_BYTES = 16 << 20  # less than what one small build writes
_TYPES = {"OutOfMemoryError", "MemoryError", "AcceleratorError"}
_TEXTS = ("can't allocate memory", "CUDA error", "CUDA driver error", "No space left on device")


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
