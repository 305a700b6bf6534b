"""The warm server of ``kb try``: an evaluator behind a private socket, which ends when nobody has called for a while.

The first call starts it. It serves calls of one user side by side, with the builds and judges of ``kb eval``. A
caller gives a token first, compared in constant time: a candidate could connect, but knows none.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import signal
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

from harness.process import owned_folders, protocol
from harness.result import Result
from harness.solution.discover import SolutionError
from kernelbench.attempt.judge import judge_file
from kernelbench.attempt.request import Request
from kernelbench.attempt.warm_place import CALLERS, IDLE_S, TOKEN_CHARACTERS, Place
from kernelbench.evaluator.bench import Benches
from kernelbench.evaluator.call import Call
from kernelbench.evaluator.client import Conditions, EvaluationError, Job, outcome_of

_LOOK_S = 1.0  # how often to look whether it is to end
_GREETING_S = 5.0  # for a token; who has one sends it at once
_MAX_STRANGERS = 64  # connections without a token at one time
_SEND_S = 60.0
_PEER = struct.Struct("3i")  # struct ucred: pid, uid, gid


def serve(fd: int) -> None:
    """Serve on this listening socket until nobody has called for as long as the last caller said."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # those of the terminal that the first call came from
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.chdir("/")  # the caller's folder may go
    owned_folders.sweep()
    with owned_folders.scratch() as folder:
        server = _WarmServer(socket.socket(fileno=fd), folder)
        try:
            server.serve()
        finally:
            server.close()


class _WarmServer:
    def __init__(self, listener: socket.socket, folder: Path):
        self._listener, self._folder = listener, folder
        self._place = Place.of_socket(listener.getsockname())
        self._token = self._place.token.read_bytes()
        self._benches = Benches()
        self._lock = threading.Lock()
        self._calls = 0
        self._strangers = threading.BoundedSemaphore(_MAX_STRANGERS)
        self._idle_s, self._last = IDLE_S, time.monotonic()

    def serve(self) -> None:
        self._listener.listen(CALLERS)  # once more, so that callers see this process at the other end
        self._listener.settimeout(_LOOK_S)
        while True:
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                if self._is_idle() and self._leave():
                    return
                continue
            self._start(connection)

    def _start(self, connection: socket.socket) -> None:
        if _is_candidate(connection) or not self._strangers.acquire(blocking=False):
            connection.close()
            return
        threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """Serve one connection: a file to judge, or nothing but a wish about when to end."""
        try:
            known = self._knows(connection)
        finally:
            self._strangers.release()
        if not known:
            connection.close()
            return
        with self._lock:
            self._calls += 1
        try:
            connection.settimeout(_SEND_S)
            with contextlib.suppress(protocol.Closed, protocol.Garbled, OSError):
                request = protocol.receive(connection)
                self._idle_s = float(request.pop("idle_s"))
                if request:
                    self._try(Request(**request), connection)
        finally:
            connection.close()
            with self._lock:
                self._calls -= 1
                self._last = time.monotonic()

    def _try(self, request: Request, connection: socket.socket) -> None:
        """Judge one file; raises Closed where the caller hangs up meanwhile."""

        def ask(job: Job, conditions: Conditions) -> Result | EvaluationError | SolutionError:
            answers: list[dict[str, Any]] = []
            call = Call(connection, self._benches, self._folder)
            call.answer([{"index": 0, **job.to_json()}], conditions.to_json(), answers.append)
            return outcome_of(answers[0])

        attempt, result = judge_file(request, ask)
        protocol.send(connection, {"attempt": attempt, "record": result and result.to_json()})

    def _knows(self, connection: socket.socket) -> bool:
        """Return whether the other end is this user's and has the token."""
        connection.settimeout(_GREETING_S)
        try:
            given = connection.recv(TOKEN_CHARACTERS, socket.MSG_WAITALL)
        except OSError:
            return False
        return _peer(connection)[1] == os.getuid() and hmac.compare_digest(given, self._token)

    def _is_idle(self) -> bool:
        with self._lock:
            waited = time.monotonic() - self._last > self._idle_s or not self._place.socket.exists()
            return waited and not self._calls

    def _leave(self) -> bool:
        """Take the socket away so that the next caller starts another server; False where one has just called."""
        with self._place.locked():
            self._listener.settimeout(0)
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                if not self._is_replaced():
                    self._place.remove()
                self._listener.close()
                return True
            self._listener.settimeout(_LOOK_S)
            self._start(connection)
            return False

    def _is_replaced(self) -> bool:
        """Return whether another server has this place, with a token of its own."""
        try:
            return self._place.token.read_bytes() != self._token
        except FileNotFoundError:
            return False

    def close(self) -> None:
        self._benches.kill()


def _peer(connection: socket.socket) -> tuple[int, int]:
    """Return the process at the other end, and its user."""
    pid, uid, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return pid, uid


def _is_candidate(connection: socket.socket) -> bool:
    """Return whether the other end has a network namespace of its own, as candidates have where the kernel allows one.

    Such a flood of connections takes no place of those who have a token.
    """
    try:
        return os.readlink(f"/proc/{_peer(connection)[0]}/ns/net") != os.readlink("/proc/self/ns/net")
    except OSError:  # it has ended, or hides: its token decides
        return False
