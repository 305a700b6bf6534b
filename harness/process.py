"""Start worker processes and talk to them, whatever they do.

``ForkServer`` is a warm process that forks workers; ``Worker`` is one of them,
seen from outside: requests with a deadline, limits on memory, processes and
disk, its output, how it ended and what it left. Everything that goes wrong is
the candidate's failure.

A worker runs only while it owes an answer: at all other times its process group
is stopped, so that nothing it has started goes on beside the judge's own work.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from harness import process_memory, wire
from harness.host import at_rest, cpu_times_ns, descendants, disk_use, nameless_bytes, remove_tree, usage
from harness.integrity import runs_unasked
from harness.result import CandidateFailure, Status
from harness.server import Forked, split_off, start_server

_OUTPUT_BYTES = 64 << 10
_DEATH_LINES = 10
_POLL_S = 0.1
_MAX_DISK_BYTES = 8 << 30  # in one file, and in all of a worker's files
_MAX_FILES = 100_000
_MAX_TASKS = 1024 + 16 * (os.cpu_count() or 1)  # processes and threads; a compiler or OpenMP takes a few a core
_DISK_EVERY_S = 1.0
_SETTLED_S = 1e-4  # what a thread had since the last tick is counted when it has left its core, after it is stopped
_REST_S = 2.0  # a system call that takes longer is no candidate's business
_ANSWER_STATUSES = {s.value: s for s in Status if s is not Status.OK}

Builder = Callable[[dict[str, Any], Path], dict[str, Any]]  # of what a worker asks for, into its scratch folder

# What a worker may see of our environment; everything else is dropped.
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ", "CC", "CXX", "CUDA_HOME", "CUDA_PATH",
              "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES",
              "NVIDIA_DRIVER_CAPABILITIES", "OMP_NUM_THREADS", "MKL_NUM_THREADS")  # fmt: skip


class ForkServer:
    """A warm parent of workers, started when it is told to, or with the first of them.

    It is a process of its own, or with ``split`` a fork of this one. ``fork`` may be called from several threads.
    """

    def __init__(self, split: bool = False) -> None:
        self._split = split
        self._process: subprocess.Popen | Forked | None = None
        self._closed = False
        self._lock = threading.Lock()

    def start(self) -> None:
        """What the first worker would do otherwise; returns before it is warm."""
        with self._lock:
            self._start()

    def _start(self) -> None:
        if self._closed:
            raise RuntimeError("the fork server is closed")
        if self._process is None:
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
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
    ) -> Worker:
        """A new worker with ``env`` on top of the scrubbed environment, in a fresh temporary directory.

        ``build(request, scratch)`` answers what the worker asks to have built.
        Of files it sees the system's, ``readable`` and ``writable`` ones, and its own. In the
        ``background`` it has the cores that others leave it.
        """
        return Worker(self, env, memory_bytes, list(inherit), build, readable, writable, background)

    @functools.cached_property
    def isolation(self) -> dict[str, str]:
        """How workers are confined on this machine: layer of ``harness.worker.sandbox`` -> how it is done."""
        return self._exchange({}, [])

    def request(self, request: dict[str, Any], fds: list[int]) -> int:
        return self._exchange(request, fds)["pid"]

    def _exchange(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        with self._lock:
            self._start()
            socket.send_fds(self._control, [json.dumps(request).encode()], fds)
            answer = self._control.recv(4096)
        if not answer:
            raise RuntimeError("the fork server died; run `kb doctor` to see whether torch loads")
        return json.loads(answer)

    def close(self) -> None:
        self._closed = True
        if self._process is None:
            return
        self._control.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> ForkServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Worker:
    """One worker process, from outside."""

    def __init__(self, server: ForkServer, env: dict[str, str], memory_bytes: int, inherit: list[int], build=None,
                 readable: Iterable[Path] = (), writable: Iterable[Path] = (), background: bool = False):  # fmt: skip
        self.output = bytearray()  # the end of what it printed
        self.left: dict[str, int] = {}  # processes, files and bytes that it left behind and that were removed
        self.memory: process_memory.ProcessMemory | None = None  # from the first request on, if the system allows it
        self._memory_bytes = memory_bytes
        self._given = {(file.st_dev, file.st_ino) for file in map(os.fstat, inherit)}
        self._build = build
        self._exit_code: int | None = None
        self._met = False
        self._resting: dict[int, int] | None = None  # CPU times at the last ``rest``
        self._reader = wire.Reader()
        self._checked = self._disk_checked = time.monotonic()
        self.scratch = Path(tempfile.mkdtemp(prefix="kb-"))  # its temporary directory, where it is started too
        self._channel, channel = socket.socketpair()
        self._output_fd, output_fd = os.pipe()
        self._status_fd, status_fd = os.pipe()
        request = {
            "env": scrubbed_environment(str(self.scratch)) | env,
            "cwd": str(self.scratch),
            "background": background,
            "confinement": {
                "readable": list(map(str, readable)),
                "writable": [str(self.scratch), *map(str, writable)],
                "max_file_bytes": _MAX_DISK_BYTES,
            },
        }
        try:
            self._pid = server.request(request, [channel.fileno(), output_fd, status_fd, *inherit])
        except BaseException:
            self.scratch.rmdir()
            raise
        finally:
            channel.close()
            os.close(output_fd)
            os.close(status_fd)
        self._selector = selectors.DefaultSelector()
        for fd in (self._channel.fileno(), self._output_fd, self._status_fd):
            self._selector.register(fd, selectors.EVENT_READ)

    def request(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send ``message`` and return the worker's answer.

        Raises CandidateFailure with the status that says what happened instead:
        the failure that the worker reports, its death, a timeout, too much
        memory, or an answer that is none.
        """
        self.check_rest()
        self._signal(signal.SIGCONT)
        try:
            return self._exchange(message, timeout_s)
        finally:
            self._signal(signal.SIGSTOP)

    def _exchange(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        deadline = time.monotonic() + timeout_s
        if not self._met:
            self._meet(timeout_s)
        self._send(message, timeout_s)
        while True:
            if (answer := self._wait_for_message(deadline)) is not None:
                if self._build is None or "build" not in answer:
                    break
                deadline += self._serve(answer["build"], timeout_s)
            if self._exit_code is not None:
                raise CandidateFailure(Status.CRASHED, self._death(), self._text())
            if time.monotonic() > deadline:
                self._kill()
                message = f"no answer within {timeout_s:g} s: it hangs, or needs a larger time limit"
                raise CandidateFailure(Status.TIMEOUT, message, self._text())
            self._check_limits()
        if "error" in answer:
            raise self._reported(answer["error"])
        return answer

    def _meet(self, timeout_s: float) -> None:
        """Take what it gives before it runs anything that is not ours."""
        self._met = True
        self._channel.settimeout(timeout_s)
        with contextlib.suppress(OSError):  # dead already: who waits for its answer finds out
            self.memory = process_memory.take(self._channel)

    def rest(self) -> float:
        """Wait until nothing of it runs: who is told to stop in the middle of a system call ends that first.

        Returns the moment (``perf_counter``) at which that was known of all; ``check_rest`` finds out if it lasted.
        Raises CandidateFailure where it takes long.
        """
        self.check_rest()
        deadline = time.perf_counter() + _REST_S
        while self._exit_code is None:
            family = descendants(self._pid)  # it cannot grow: nobody forks who has been told to stop
            if at_rest(family):
                times = cpu_times_ns(family)
                time.sleep(_SETTLED_S)
                if cpu_times_ns(family) == times:
                    self._resting = times
                    break  # the moment is after that: what ran until then has taken its time
            if time.perf_counter() > deadline:
                self._stop(Status.CRASHED, f"{_REST_S:g} s after its answer something that it started still runs")
            time.sleep(1e-4)
        return time.perf_counter()

    def check_rest(self) -> None:
        """Raises CandidateFailure where something of it has run since ``rest``."""
        then, self._resting = self._resting, None
        if then is None or self._has_ended():
            return
        try:
            runs_unasked.check(then, cpu_times_ns(descendants(self._pid)))
        except CandidateFailure:
            self._kill()
            raise

    def _has_ended(self) -> bool:
        """Whether it was killed, as by a system that is short of memory; its next answer tells how."""
        return self._exit_code is not None or any(key.fd == self._status_fd for key, _ in self._selector.select(0))

    def end(self) -> None:
        """Kill the worker and everything in its group; what it left in ``scratch`` stays until ``close``."""
        self._kill()

    def close(self) -> None:
        """Kill the worker and everything in its group, and delete its temporary directory."""
        self._kill()
        self._selector.close()
        self._channel.close()
        if self.memory:
            self.memory.close()
        os.close(self._output_fd)
        os.close(self._status_fd)
        files, size = disk_use(self.scratch, most=_MAX_FILES)
        self.left |= {"files": files, "bytes": size}
        remove_tree(self.scratch)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, message: dict[str, Any], timeout_s: float) -> None:
        self._channel.settimeout(timeout_s)
        try:
            wire.send(self._channel, message)
        except OSError:
            pass  # dead already, or it does not read: who waits for its answer finds out

    def _signal(self, number: int) -> None:
        """To everything in the worker's group, if it is still there."""
        if self._exit_code is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._pid, number)

    def _serve(self, request: Any, timeout_s: float) -> float:
        """Have built what the worker asks for; the seconds that took, which are not the worker's."""
        begin = time.monotonic()
        with ThreadPoolExecutor(1) as pool:
            building = pool.submit(self._build, request if isinstance(request, dict) else {}, self.scratch)
            while not wait([building], _POLL_S).done:
                self._check_limits()
        took = time.monotonic() - begin
        self._send(building.result(), timeout_s)
        return took

    def _check_limits(self) -> None:
        """Of memory, processes and, less often because it takes longer, disk; raises CandidateFailure."""
        now = time.monotonic()
        if now - self._checked < _POLL_S:
            return
        self._checked = now
        used, tasks = usage(self._pid)
        if used > self._memory_bytes:
            limit = f"the limit is {self._memory_bytes / 1e9:.1f} GB"
            self._stop(Status.OUT_OF_MEMORY, f"the process took {used / 1e9:.1f} GB of host memory; {limit}")
        if tasks > _MAX_TASKS:
            self._stop(Status.CRASHED, f"it started {tasks} processes and threads; the limit is {_MAX_TASKS}")
        if now - self._disk_checked > _DISK_EVERY_S:
            files, size = disk_use(self.scratch, most=_MAX_FILES)
            in_memory, on_disk = nameless_bytes(descendants(self._pid), self._given)
            size += on_disk
            self._disk_checked = time.monotonic()
            if in_memory > self._memory_bytes:
                self._stop(Status.OUT_OF_MEMORY, f"files in memory that it has open take {in_memory / 1e9:.1f} GB")
            if files > _MAX_FILES or size > _MAX_DISK_BYTES:
                limit = f"the limit is {_MAX_FILES} and {_MAX_DISK_BYTES / 1e9:.1f} GB"
                self._stop(Status.CRASHED, f"it wrote {files} files of {size / 1e9:.1f} GB together; {limit}")

    def _stop(self, status: Status, message: str) -> None:
        self._kill()
        raise CandidateFailure(status, message, self._text())

    def _wait_for_message(self, deadline: float) -> dict[str, Any] | None:
        """Take in what arrives within a moment; the whole message if it is there."""
        wait = max(0.0, min(_POLL_S, deadline - time.monotonic()))
        ready = {key.fd for key, _ in self._selector.select(wait)}
        if self._output_fd in ready:
            self._take_output()
        if self._channel.fileno() in ready:
            try:
                for _ in range(2):  # its length and the rest, at once: checking limits in between would take time
                    self._reader.feed(self._channel.recv(self._reader.wanted()))
                    if (message := self._reader.message()) is not None or not self._arrives():
                        return message
            except (wire.Closed, ConnectionError):
                self._selector.unregister(self._channel.fileno())
            except wire.Garbled as error:
                self._kill()
                raise CandidateFailure(Status.CRASHED, f"the worker sent garbage: {error}", self._text()) from None
        elif self._status_fd in ready:
            self._exit_code = self._read_exit_code()
        return None

    def _arrives(self) -> bool:
        """Whether more can be read without waiting."""
        return any(key.fd == self._channel.fileno() for key, _ in self._selector.select(0))

    def _take_output(self) -> None:
        data = os.read(self._output_fd, _OUTPUT_BYTES)
        if not data:
            self._selector.unregister(self._output_fd)
        self.output += data
        del self.output[:-_OUTPUT_BYTES]

    def _read_exit_code(self) -> int:
        self._selector.unregister(self._status_fd)
        data = os.read(self._status_fd, 64)
        while self._output_fd in self._selector.get_map() and any(
            key.fd == self._output_fd for key, _ in self._selector.select(0)
        ):
            self._take_output()
        return int(data) if data else -signal.SIGKILL

    def _kill(self) -> None:
        """Kill the group and wait until it is gone, so that its memory and device are free again."""
        if self._exit_code is not None:
            return
        self.left["processes"] = max(0, len(descendants(self._pid)) - 1)
        try:
            os.killpg(self._pid, signal.SIGKILL)
        except ProcessLookupError:
            try:  # it has no group of its own yet
                os.kill(self._pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        while self._exit_code is None:
            ready = {key.fd for key, _ in self._selector.select()}
            if self._output_fd in ready:
                self._take_output()
            if self._status_fd in ready:
                self._exit_code = self._read_exit_code()
            elif self._channel.fileno() in ready:
                self._selector.unregister(self._channel.fileno())

    def _text(self) -> str:
        return self.output.decode(errors="replace")

    def _death(self) -> str:
        code = self._exit_code
        if code < 0:
            try:
                how = f"was killed by {signal.Signals(-code).name}"
            except ValueError:
                how = f"was killed by signal {-code}"
        else:
            how = f"exited with code {code}"
        lines = self._text().strip().splitlines()
        fatal = next((i for i, line in enumerate(lines) if line.startswith("Fatal Python error")), None)
        if fatal is None:
            told = lines[-_DEATH_LINES:]
        else:  # faulthandler's stack, innermost call first
            told = [line for line in lines[fatal:] if line.strip() and "thread 0x" not in line][:_DEATH_LINES]
        return "\n".join([f"the process {how} before it answered", *told])

    def _reported(self, error: Any) -> CandidateFailure:
        """The failure that the worker reports about its candidate; it may report nothing better than a failure."""
        if not isinstance(error, dict):
            error = {}
        status = _ANSWER_STATUSES.get(str(error.get("status")), Status.RUNTIME_ERROR)
        message = str(error.get("message", "the worker gave no reason"))[:20_000]
        return CandidateFailure(status, message, str(error.get("log", ""))[-_OUTPUT_BYTES:] or self._text())


def scrubbed_environment(scratch: str) -> dict[str, str]:
    """The environment of an untrusted process: a short list of ours, its home in ``scratch``."""
    env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    # ninja, which torch's extensions need, is installed beside the interpreter
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env.get("PATH", os.defpath)])
    # the driver's cache would lie in its home, which is new every time
    driver = {"CUDA_CACHE_DISABLE": "1"}
    return env | driver | {"HOME": scratch, "TMPDIR": scratch, "PYTHONDONTWRITEBYTECODE": "1"}


def fork_server() -> ForkServer:
    """One for the life of this process, because starting it costs an import of torch."""
    return _fork_server(os.getpid())


@functools.cache
def _fork_server(process: int) -> ForkServer:
    """Of ``process``: one that was forked from another must not share its server."""
    server = ForkServer()
    atexit.register(_close, server, process)
    return server


def _close(server: ForkServer, process: int) -> None:
    if os.getpid() == process:  # a fork inherits what is registered
        server.close()
