"""A process's memory, read by another that it gave the way to before anything else ran in it.

Opened by the process itself, ``/proc/self/mem`` needs no right to trace, which many systems give to parents only.
"""

from __future__ import annotations

import contextlib
import os
import socket


class ProcessMemory:
    """Reads what a process has in memory now; takes over ``fd``."""

    def __init__(self, fd: int):
        self._fd = fd

    def read(self, address: int, size: int) -> bytearray:
        """Raises OSError where the process has no such memory, or has ended."""
        data = bytearray(size)
        view, done = memoryview(data), 0
        while done < size:
            took = os.preadv(self._fd, [view[done:]], address + done)
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
    """What the peer gives; None where it cannot. Blocks. Raises OSError where it takes longer than the timeout."""
    _, fds, _, _ = socket.recv_fds(channel, 1, 1)
    return ProcessMemory(fds[0]) if fds else None
