"""The warm process that forks workers: a start in milliseconds, where importing PyTorch takes seconds."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.faults import MachineFault
from harness.process import memory_cgroup
from harness.process.spawn import Forked, split_off, start_server
from harness.process.worker_process import GONE_S, Builder, Worker, WorkerOptions

_ANSWER_S = 300.0  # of the fork server; the first answer waits for an import of PyTorch, from a slow disk at worst


class ForkServer:
    """A warm parent of workers, started when it is told to, or with the first of them.

    It is a process of its own, or with ``split`` a fork of this one. ``fork`` may be called from several threads.
    If it dies, its workers die with it, and the next ``fork`` starts another; with ``split`` there is no other.
    """

    def __init__(self, split: bool = False) -> None:
        self._split = split
        self._process: subprocess.Popen | Forked | None = None
        self._closed = self._died = False
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the process that the first worker would start otherwise; return before it is warm."""
        with self._lock:
            self._start()

    def _start(self) -> None:
        if self._closed:
            raise RuntimeError("the fork server is closed")
        if self._died and self._split:  # this process holds a device by now, which no fork may
            raise MachineFault("the process that forks workers died")
        if self._process is None:
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._control.settimeout(_ANSWER_S)
            module = "harness.worker.forkserver"
            self._process = split_off(module, theirs, self._control) if self._split else start_server(module, theirs)

    def fork(
        self,
        env: dict[str, str],
        memory_bytes: int,
        inherit: list[int] = (),
        build: Builder | None = None,
        readable: Iterable[Path] = (),
        writable: Iterable[Path] = (),
        background: bool = False,
        devices: bool = False,
    ) -> Worker:
        """A new worker with ``env`` on top of the scrubbed environment, in a fresh temporary directory.

        ``build(request, scratch)`` answers what the worker asks to have built.
        Of files it sees the system's, ``readable`` and ``writable`` ones, and its own; GPUs only with
        ``devices``. In the ``background`` it has the cores that others leave it.
        """
        options = WorkerOptions(env, memory_bytes, list(inherit), build, readable, writable, background, devices)
        return Worker(self._start_worker, options)

    @functools.cached_property
    def isolation(self) -> dict[str, str]:
        """Return how workers are confined on this machine: layer of ``harness.process.sandbox`` -> how it is done."""
        memory = {"memory": "control group"} if memory_cgroup.usable_parent() else {}
        return self._exchange({}, []) | memory

    def _start_worker(self, request: dict[str, Any], fds: list[int]) -> int:
        return self._exchange(request, fds)["pid"]

    def _exchange(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        with self._lock:
            self._start()
            try:
                # in a file: what a candidate may read can be longer than a message
                with os.fdopen(os.memfd_create("request"), "wb") as file:
                    file.write(json.dumps(request).encode())
                    file.flush()
                    socket.send_fds(self._control, [b"?"], [file.fileno(), *fds])
                data = self._control.recv(4096)
            except OSError:  # it is gone, or does not answer
                data = b""
            if not data:
                self._end()
                self._died = True
                raise MachineFault("the process that forks workers died; `kb doctor` says whether PyTorch loads")
        answer = json.loads(data)
        if "error" in answer:
            raise MachineFault(f"no process can be started: {answer['error']}")
        return answer

    def close(self) -> None:
        self._closed = True
        self._end()

    def _end(self) -> None:
        if self._process is None:
            return
        self._control.close()
        process, self._process = self._process, None
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):  # one that a driver holds stays behind
                process.wait(timeout=GONE_S)

    def __enter__(self) -> ForkServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def fork_server() -> ForkServer:
    """One for the life of this process, because starting it costs an import of torch."""
    return _fork_server(os.getpid())


@functools.cache
def _fork_server(process: int) -> ForkServer:
    """Return the fork server of ``process``: a fork must not share its parent's."""
    server = ForkServer()
    atexit.register(_close, server, process)
    return server


def _close(server: ForkServer, process: int) -> None:
    if os.getpid() == process:  # a fork inherits what is registered
        server.close()
