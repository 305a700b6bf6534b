"""Start a process that serves on a socket: in an interpreter of its own, or as a fork of this one."""

from __future__ import annotations

import contextlib
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def start_server(module: str, connection: socket.socket) -> subprocess.Popen:
    """Run ``module.serve`` on ``connection`` in an interpreter and a session of its own; closes our copy of it."""
    # -I and an explicit path: neither environment nor working directory decides what is imported
    path = [str(ROOT), *filter(None, sys.path)]
    # tearing PyTorch down takes a second and frees nothing that the end of a process does not
    start = (
        f"import os, sys; sys.path[:] = {path!r}\nfrom {module} import serve; serve({connection.fileno()})\n"
        "sys.stdout.flush(); sys.stderr.flush(); os._exit(0)"
    )
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", start],
        # threads of PyTorch that have nothing to do must not spin while the other side is timed
        env={**os.environ, "OMP_WAIT_POLICY": "PASSIVE"},
        pass_fds=[connection.fileno()],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    connection.close()
    return process


def split_off(module: str, connection: socket.socket, ours: socket.socket) -> Forked:
    """As ``start_server``, in a fork of this process, which saves the imports that it has made.

    Only for a process that holds nothing yet that a candidate may not see, and no device. ``ours`` is the
    other end of ``connection``.
    """
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            ours.close()  # what the end of this process is told by
            fd = connection.detach()
            close_all_but([fd])
            importlib.import_module(module).serve(fd)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    connection.close()
    return Forked(pid)


def close_all_but(kept: list[int]) -> None:
    """Close what a fork has inherited, except standard streams and ``kept``."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in kept:
            with contextlib.suppress(OSError):  # the listing's own descriptor
                os.close(int(name))


class Forked:
    """A forked process, as far as it is used like a ``subprocess.Popen``."""

    def __init__(self, pid: int):
        self.pid = pid
        self._ended = os.pidfd_open(pid)

    def wait(self, timeout: float | None = None) -> None:
        if not select.select([self._ended], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("fork", timeout)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
