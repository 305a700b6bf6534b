"""A process's memory, read by another that it gave the way to before anything else ran in it.

Opened by the process itself, ``/proc/self/mem`` needs no right to trace, which many systems give to parents only.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time

_CHUNK_BYTES = 1 << 16  # of a process that changes its mappings all the time, a page takes long
_TIMEOUT_S = 20


class ProcessMemory:
    """Reads what a process has in memory now; takes over ``fd``."""

    def __init__(self, fd: int):
        self._fd = fd

    def read(self, address: int, size: int) -> bytearray:
        """Raises OSError where the process has no such memory, has ended, or holds its memory for itself."""
        data = bytearray(size)
        view, done, deadline = memoryview(data), 0, time.monotonic() + _TIMEOUT_S
        while done < size:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{size} bytes took longer than {_TIMEOUT_S} s")
            took = os.preadv(self._fd, [view[done : done + _CHUNK_BYTES]], address + done)
            if not took:
                raise OSError("the process has ended")
            done += took
        return data

    def close(self) -> None:
        os.close(self._fd)


def give(channel: socket.socket) -> None:
    """Let the peer read this process's memory, if the system lets the process itself."""
    fds = []
    with contextlib.suppress(OSError):
        fds.append(os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC))
    socket.send_fds(channel, [b"\0"], fds)
    for fd in fds:
        os.close(fd)


def take(channel: socket.socket) -> ProcessMemory | None:
    """Return the peer's memory, or None if it gives none. Blocks; raises OSError after the timeout."""
    _, fds, _, _ = socket.recv_fds(channel, 1, 1)
    return ProcessMemory(fds[0]) if fds else None
