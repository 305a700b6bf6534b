"""Start worker processes and talk to them, whatever they do.

``ForkServer`` is a warm process that forks workers; ``Worker`` is one of them,
seen from outside: requests with a deadline, a limit on memory, its output, and
how it ended. Everything that goes wrong is the candidate's failure.
"""

from __future__ import annotations

import atexit
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
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from harness import wire
from harness.result import CandidateFailure, Status

ROOT = Path(__file__).resolve().parent.parent

_OUTPUT_BYTES = 64 << 10
_DEATH_LINES = 10
_POLL_S = 0.1
_MAX_FILE_BYTES = 8 << 30
_ANSWER_STATUSES = {s.value: s for s in Status if s is not Status.OK}

# What a worker may see of our environment; everything else is dropped.
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ", "CC", "CXX", "CUDA_HOME", "CUDA_PATH",
              "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES",
              "NVIDIA_DRIVER_CAPABILITIES", "OMP_NUM_THREADS", "MKL_NUM_THREADS")  # fmt: skip


def start_server(module: str, connection: socket.socket) -> subprocess.Popen:
    """Run ``module.serve`` on ``connection`` in an interpreter and a session of its own; closes our copy of it."""
    # -I and an explicit path: neither environment nor working directory decides what is imported
    path = [str(ROOT), *filter(None, sys.path)]
    start = f"import sys; sys.path[:] = {path!r}\nfrom {module} import serve; serve({connection.fileno()})"
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", start],
        pass_fds=[connection.fileno()],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    connection.close()
    return process


class ForkServer:
    """A warm parent of workers; use as a context manager. ``fork`` may be called from several threads."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = start_server("harness.worker.forkserver", theirs)
        self._control = ours
        self._lock = threading.Lock()

    def fork(
        self,
        env: dict[str, str],
        memory_bytes: int,
        inherit: list[int] = (),
        build: Callable[[dict[str, Any], Path], dict[str, Any]] | None = None,
    ) -> Worker:
        """A new worker with ``env`` on top of the scrubbed environment, in a fresh temporary directory.

        ``build(request, scratch)`` answers what the worker asks to have built.
        """
        return Worker(self, env, memory_bytes, list(inherit), build)

    def request(self, request: dict[str, Any], fds: list[int]) -> int:
        with self._lock:
            socket.send_fds(self._control, [json.dumps(request).encode()], fds)
            answer = self._control.recv(4096)
        if not answer:
            raise RuntimeError("the fork server died; run `kb doctor` to see whether torch loads")
        return json.loads(answer)["pid"]

    def close(self) -> None:
        self._control.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Worker:
    """One worker process, from outside."""

    def __init__(self, server: ForkServer, env: dict[str, str], memory_bytes: int, inherit: list[int], build=None):
        self.output = bytearray()  # the end of what it printed
        self._memory_bytes = memory_bytes
        self._build = build
        self._exit_code: int | None = None
        self._reader = wire.Reader()
        self._scratch = tempfile.TemporaryDirectory(prefix="kb-", ignore_cleanup_errors=True)
        self._channel, channel = socket.socketpair()
        self._output_fd, output_fd = os.pipe()
        self._status_fd, status_fd = os.pipe()
        request = {
            "env": scrubbed_environment(self._scratch.name) | env,
            "cwd": self._scratch.name,
            "max_file_bytes": _MAX_FILE_BYTES,
        }
        try:
            self._pid = server.request(request, [channel.fileno(), output_fd, status_fd, *inherit])
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
        deadline = time.monotonic() + timeout_s
        self._send(message)
        while True:
            if (answer := self._wait_for_message(deadline)) is not None:
                if self._build is None or "build" not in answer:
                    break
                deadline += self._serve(answer["build"])
            if self._exit_code is not None:
                raise CandidateFailure(Status.CRASHED, self._death(), self._text())
            if time.monotonic() > deadline:
                self._kill()
                message = f"no answer within {timeout_s:g} s: it hangs, or needs a larger time limit"
                raise CandidateFailure(Status.TIMEOUT, message, self._text())
            self._check_memory()
        if "error" in answer:
            raise self._reported(answer["error"])
        return answer

    @property
    def scratch(self) -> Path:
        """Its temporary directory, which is also where it was started."""
        return Path(self._scratch.name)

    def end(self) -> None:
        """Kill the worker and everything in its group; what it left in ``scratch`` stays until ``close``."""
        self._kill()

    def close(self) -> None:
        """Kill the worker and everything in its group, and delete its temporary directory."""
        self._kill()
        self._selector.close()
        self._channel.close()
        os.close(self._output_fd)
        os.close(self._status_fd)
        self._scratch.cleanup()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, message: dict[str, Any]) -> None:
        try:
            wire.send(self._channel, message)
        except OSError:
            pass  # dead already: who waits for its answer finds out how

    def _serve(self, request: Any) -> float:
        """Have built what the worker asks for; the seconds that took, which are not the worker's."""
        begin = time.monotonic()
        with ThreadPoolExecutor(1) as pool:
            building = pool.submit(self._build, request if isinstance(request, dict) else {}, self.scratch)
            while not wait([building], _POLL_S).done:
                self._check_memory()
        self._send(building.result())
        return time.monotonic() - begin

    def _check_memory(self) -> None:
        if (used := resident_bytes(self._pid)) > self._memory_bytes:
            self._kill()
            limit = f"the limit is {self._memory_bytes / 1e9:.1f} GB"
            message = f"the process took {used / 1e9:.1f} GB of host memory; {limit}"
            raise CandidateFailure(Status.OUT_OF_MEMORY, message, self._text())

    def _wait_for_message(self, deadline: float) -> dict[str, Any] | None:
        """Take in what arrives within a moment; the whole message if it is there."""
        wait = max(0.0, min(_POLL_S, deadline - time.monotonic()))
        ready = {key.fd for key, _ in self._selector.select(wait)}
        if self._output_fd in ready:
            self._take_output()
        if self._channel.fileno() in ready:
            try:
                self._reader.feed(self._channel.recv(self._reader.wanted()))
                return self._reader.message()
            except (wire.Closed, ConnectionError):
                self._selector.unregister(self._channel.fileno())
            except wire.Garbled as error:
                self._kill()
                raise CandidateFailure(Status.CRASHED, f"the worker sent garbage: {error}", self._text()) from None
        elif self._status_fd in ready:
            self._exit_code = self._read_exit_code()
        return None

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
        try:
            os.killpg(self._pid, signal.SIGKILL)
        except ProcessLookupError:
            try:  # it has not reached setsid yet
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
        status = _ANSWER_STATUSES.get(error.get("status"), Status.RUNTIME_ERROR)
        message = str(error.get("message", "the worker gave no reason"))[:20_000]
        return CandidateFailure(status, message, str(error.get("log", ""))[-_OUTPUT_BYTES:] or self._text())


def scrubbed_environment(scratch: str) -> dict[str, str]:
    """The environment of an untrusted process: a short list of ours, its home in ``scratch``."""
    env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    # ninja, which torch's extensions need, is installed beside the interpreter
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env.get("PATH", os.defpath)])
    return env | {"HOME": scratch, "TMPDIR": scratch, "PYTHONDONTWRITEBYTECODE": "1"}


def resident_bytes(pid: int) -> int:
    """Anonymous and shared memory of a process and its descendants; 0 for what is gone."""
    total = 0
    try:
        with open(f"/proc/{pid}/status") as status:
            for line in status:
                if line.startswith(("RssAnon:", "RssShmem:")):
                    total += int(line.split()[1]) * 1024
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as children:
                total += sum(resident_bytes(int(child)) for child in children.read().split())
    except (FileNotFoundError, ProcessLookupError):
        pass
    return total


def available_memory_bytes() -> int:
    """Of the host, now."""
    with open("/proc/meminfo") as meminfo:
        fields = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in meminfo}
    return fields["MemAvailable"]


def default_memory_bytes() -> int:
    """Half of the host's memory, by what is available now."""
    return max(available_memory_bytes() // 2, 2 << 30)


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
