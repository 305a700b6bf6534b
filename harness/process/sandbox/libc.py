"""Calls into libc that Python has no function for; each raises OSError where it fails."""

from __future__ import annotations

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)
# options of prctl, from linux/prctl.h
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38


def prctl(option: int, value: int, pointer: bytes | int = 0) -> None:
    """Set one attribute of this process."""
    call("prctl", option, ctypes.c_ulong(value), pointer, 0, 0)


def syscall(number: int, *arguments: object) -> int:
    """Make a system call by its number."""
    return call("syscall", ctypes.c_long(number), *arguments)


def call(function: str, *arguments: object) -> int:
    """Call a function of libc and return its result."""
    result = getattr(_libc, function)(*arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{function}: {os.strerror(code)}")
    return result
