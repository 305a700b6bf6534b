"""Call a function in a process that may die of it: merely to parse what candidates wrote can take hours and all memory.

The process holds no candidate's code and runs none. It is started when it is first needed, and again after
an end. Arguments and values are JSON.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import os
import resource
import signal
import socket
import subprocess
import threading
import time
import traceback
import warnings
from typing import Any

from harness.faults import MachineFault
from harness.process import protocol
from harness.process.procfs import end_with_parent, set_limit
from harness.process.spawn import start_server

MEMORY_BYTES = 1 << 30  # of addresses: the syntax tree of the largest source that anybody writes takes a tenth
CPU_SECONDS = 20  # of one call; honest ones take a tenth of a second
_WALL_S = 300.0  # where others have the cores
_WORN_BYTES = 256 << 20  # a process that needed so much keeps most of it, so it is replaced


class TooMuch(Exception):
    """The function ended by a limit, which the message names."""


class ApartError(Exception):
    """The function raised; the message is the traceback."""


def apart(function: str, *arguments: Any) -> Any:
    """Return the value of ``function``, written ``module:name``.

    Raises TooMuch or ApartError, and MachineFault where the process does not start.
    """
    return _other(os.getpid()).call(function, arguments)


@functools.cache
def _other(process: int) -> _Other:
    """The process of ``process``: one that was forked from another must not share its own."""
    other = _Other()
    atexit.register(other.close, process)
    return other


class _Other:
    """The process, from outside."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen | None = None

    def call(self, function: str, arguments: tuple) -> Any:
        with self._lock:
            for last in (False, True):
                answer = self._ask({"function": function, "arguments": arguments, "cpu_s": CPU_SECONDS})
                if answer is not None:
                    break
                code = self._end()
                if code == -signal.SIGPROF:
                    raise TooMuch(f"more than {CPU_SECONDS} s of processor time")
                if last:  # the first time somebody else may have ended it
                    raise TooMuch(f"more than {MEMORY_BYTES >> 30} GiB of memory")
        if answer.get("worn"):
            self._end()
        if "too_much" in answer:  # Python 3.11 and older say so too where its parser nests too deep
            raise TooMuch(f"more than {MEMORY_BYTES >> 30} GiB of memory, or deeper nesting than Python parses")
        if "raised" in answer:
            raise ApartError(answer["raised"])
        return answer["value"]

    def _ask(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """The answer; None where the process ended, or had to be."""
        began = time.monotonic()
        try:
            if self._process is None:
                self._start()
            protocol.send(self._connection, request)
            return protocol.receive(self._connection)
        except (protocol.Closed, protocol.Garbled, ConnectionError):
            return None
        except BaseException as error:  # also a signal's, whose call goes on: its answer would be that of the next one
            self._end()
            if isinstance(error, TimeoutError) and time.monotonic() - began >= _WALL_S:
                raise TooMuch(f"more than {_WALL_S:g} s") from None
            raise

    def _start(self) -> None:
        """Start the process. Raises MachineFault where it ends before it has a call, which is not to blame then."""
        for _ in range(2):  # the first time somebody else may have ended it
            self._connection, theirs = socket.socketpair()
            self._connection.settimeout(_WALL_S)
            self._process = start_server("harness.isolated_call", theirs)
            try:
                protocol.receive(self._connection)
                return
            except (protocol.Closed, protocol.Garbled, ConnectionError):
                code = self._end()
        raise MachineFault(f"the process that reads sources does not start (status {code}); it has printed why")

    def _end(self) -> int:
        """Kill the process; its exit status."""
        if self._process is None:
            return 0
        process, self._process = self._process, None
        self._connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):  # it ends by itself, and its status says why
            process.wait(1.0)
        process.kill()
        return process.wait()

    def close(self, process: int) -> None:
        if os.getpid() == process:  # a fork inherits what is registered
            self._end()


def serve(fd: int) -> None:
    """Answer calls until the other end closes the socket."""
    end_with_parent()
    warnings.simplefilter("ignore")  # they quote sources and their names where a log of CI may read them
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    set_limit(resource.RLIMIT_AS, MEMORY_BYTES)
    set_limit(resource.RLIMIT_CORE, 1)  # as in the sandbox
    connection = socket.socket(fileno=fd)
    protocol.send(connection, {"started": True})
    answer: dict[str, Any] = {}
    while not answer.get("worn"):
        try:
            request = protocol.receive(connection)
        except (protocol.Closed, protocol.Garbled, OSError):
            return
        answer = _answer(request)
        answer["worn"] = _resident_bytes() > _WORN_BYTES
        protocol.send(connection, answer)


def _resident_bytes() -> int:
    """Return what this process holds now; the system's peak may be that of its parent."""
    with open("/proc/self/statm", encoding="utf-8") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    module, _, name = request["function"].partition(":")
    signal.setitimer(signal.ITIMER_PROF, request["cpu_s"])
    try:
        return {"value": getattr(importlib.import_module(module), name)(*request["arguments"])}
    except MemoryError:
        return {"too_much": "memory"}
    except Exception:
        return {"raised": traceback.format_exc(limit=-5)}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
