"""Deadlines that a process sets for itself and that another process enforces.

They are written into a page of shared memory. A message for each step would wake the
process that watches, on the cores where a candidate is timed; a page wakes nobody, and it can
be read while the process hangs in a driver.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import mmap
import os
import struct
import threading
import time
from collections.abc import Iterator

from harness.faults import MachineFault

_TIMES = struct.Struct("dd")  # the deadline on the monotonic clock of the host, and the limit in seconds
_TEXT_BYTES = 256
_SIZE = _TIMES.size + _TEXT_BYTES
_TORN_S = 0.01  # a page that is being written is read again after so long

_BUILD_LOCK_S = 3600.0  # another build holds its key; with default limits none takes an hour


class Page:
    """The page; the process that watches makes it, the watched one opens it by ``fd``."""

    def __init__(self, fd: int | None = None):
        self.fd = os.memfd_create("kb-deadline") if fd is None else fd
        if fd is None:
            os.truncate(self.fd, _SIZE)
        self._memory = mmap.mmap(self.fd, _SIZE)
        if fd is None:
            self.write("", math.inf)

    def write(self, what: str, limit_s: float) -> None:
        self._memory[: _TIMES.size] = _TIMES.pack(math.inf, math.inf)
        self._memory[_TIMES.size :] = what.encode()[:_TEXT_BYTES].ljust(_TEXT_BYTES, b"\0")
        self._memory[: _TIMES.size] = _TIMES.pack(time.monotonic() + limit_s, limit_s)

    def missed(self) -> tuple[str, float] | None:
        """Return what should have ended by now and its limit in seconds; None while there is time."""
        seen = self._memory[:]
        if _TIMES.unpack_from(seen)[0] > time.monotonic():
            return None
        time.sleep(_TORN_S)
        if seen != self._memory[:]:
            return None
        text = seen[_TIMES.size :].rstrip(b"\0").decode(errors="replace")
        return text, _TIMES.unpack_from(seen)[1]

    def close(self) -> None:
        self._memory.close()
        os.close(self.fd)


class _Watched:
    """The deadlines of this process; without a page nobody watches them."""

    page: Page | None = None
    now: tuple[str, float] = ("", math.inf)


def watched_by(page: Page) -> None:
    """Have the deadlines of this process written to ``page``."""
    _Watched.page = page


@contextlib.contextmanager
def within(what: str, limit_s: float) -> Iterator[None]:
    """End within ``limit_s``, or the watching process kills this one. An outer deadline begins anew afterwards."""
    outer, _Watched.now = _Watched.now, (what, limit_s)
    _write()
    try:
        yield
    finally:
        _Watched.now = outer
        _write()


def _write() -> None:
    if _Watched.page:
        _Watched.page.write(*_Watched.now)


def take_lock(descriptor: int, what: str, limit_s: float | None = _BUILD_LOCK_S) -> None:
    """Lock an open file; raise MachineFault where another process holds it for longer than ``limit_s``, if that is one.

    A thread waits, because a waiting system call is woken in turn; polling would come too late again and again.
    """
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    errors: list[OSError] = []

    def lock() -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            errors.append(error)

    waiting = threading.Thread(target=lock, daemon=True)
    waiting.start()
    waiting.join(limit_s)
    if waiting.is_alive():
        raise MachineFault(f"another process has held {what} for {limit_s:g} s; end it, or wait, and run again")
    if errors:
        raise errors[0]
