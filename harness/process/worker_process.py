"""Start worker processes and talk to them, whatever they do.

``ForkServer`` is a warm process that forks workers; ``Worker`` is one of them,
seen from outside: requests with a deadline, limits on memory, processes and
disk, its output, how it ended and what it left. What goes wrong in a worker is
the candidate's failure; what goes wrong around it is a MachineFault.

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
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from harness.faults import MachineFault
from harness.memory import process_memory
from harness.process import memory_cgroup, protocol, runs_unasked
from harness.process.owned_folders import make_folder
from harness.process.procfs import (
    at_rest,
    cpu_times_ns,
    descendants,
    disk_use,
    identities,
    is_ending,
    nameless_bytes,
    remove_tree,
    shared_memory_bytes,
    socket_use,
    tasks,
    tasks_that_stop,
    time_slices,
    usage,
)
from harness.process.spawn import Forked, split_off, start_server
from harness.result import CandidateFailure, Status

_OUTPUT_BYTES = 64 << 10
_DEATH_LINES = 10
_POLL_S = 0.1
_MAX_DISK_BYTES = 8 << 30  # in one file, and in all of a worker's files
_MAX_FILES = 100_000
_MAX_KEPT_BYTES, _MAX_KEPT_FILES = 256 << 20, 5_000  # in a folder that its next process finds again
# Who answers at once is not seen while it runs. Before these requests there is time: no clock runs yet.
_CHECKED_BEFORE = ("import", "load", "run", "fetch", "prepare_burst")
_MAX_TASKS = 1024 + 16 * (os.cpu_count() or 1)  # processes and threads; a compiler or OpenMP takes a few a core
_DISK_EVERY_S = 1.0
_SETTLED_S = 1e-4  # what a thread had since the last tick is counted when it has left its core, after it is stopped
_ANSWER_S = 300.0  # of the fork server; the first answer waits for an import of PyTorch, from a slow disk at worst
_GONE_S = 30.0  # after SIGKILL; the end of a process with 100 GB takes seconds, one in a hanging driver has none
_FOREIGN = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)  # how a system or a user ends a process
_SPIN_S = 5e-4  # to stop takes so long at most, unless a system call has to end first
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
        return Worker(self, env, memory_bytes, list(inherit), build, readable, writable, background, devices)

    @functools.cached_property
    def isolation(self) -> dict[str, str]:
        """Return how workers are confined on this machine: layer of ``harness.process.sandbox`` -> how it is done."""
        memory = {"memory": "control group"} if memory_cgroup.usable_parent() else {}
        return self._exchange({}, []) | memory

    def request(self, request: dict[str, Any], fds: list[int]) -> int:
        return self._exchange(request, fds)["pid"]

    def _exchange(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        with self._lock:
            self._start()
            try:
                socket.send_fds(self._control, [json.dumps(request).encode()], fds)
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
                process.wait(timeout=_GONE_S)

    def __enter__(self) -> ForkServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Worker:
    """One worker process, from outside."""

    def __init__(self, server: ForkServer, env: dict[str, str], memory_bytes: int, inherit: list[int], build=None,
                 readable: Iterable[Path] = (), writable: Iterable[Path] = (), background: bool = False,
                 devices: bool = False):  # fmt: skip
        self.output = bytearray()  # the end of what it printed
        self.left: dict[str, int] = {}  # processes, files and bytes that it left behind and that were removed
        self.memory: process_memory.ProcessMemory | None = None  # from the first request on, if the system allows it
        self._memory_bytes = memory_bytes
        self._given = {(file.st_dev, file.st_ino) for file in map(os.fstat, inherit)}
        self._build = build
        self.killed_by = ""  # the signal that ended it, if nobody here sent it
        self._orphaned = False  # its fork server died, and it did so with it
        self._killed = False  # by us
        self._exit_code: int | None = None
        self._met = False
        self._resting: dict[int, int] | None = None  # CPU times at the last ``rest``
        self._family: list[int] = []  # its processes then
        self._shared_bytes = shared_memory_bytes()
        self._rests = False  # whether anybody asks when it has come to rest, as on a CPU
        self._present: set[tuple[int, str]] = set()  # its processes right after it was stopped
        self._slices: int | None = None  # how often they had been given a core then
        self._ran_ns: dict[int, int] = {}  # their CPU times when they were last told to stop
        self._stopped = 0.0  # the moment of that
        self._reader = protocol.Reader()
        self._checked = self._disk_checked = time.monotonic()
        self._kept = list(writable)
        self._files_in_messages = 0
        self.scratch, self._scratch_lock = make_folder()  # its temporary directory, where it is started too
        self._channel, channel = socket.socketpair()
        self._output_fd, output_fd = os.pipe()
        self._status_fd, status_fd = os.pipe()
        self._group = memory_cgroup.make(memory_bytes)
        request = {
            "group": str(self._group.folder) if self._group else None,
            "env": scrubbed_environment(str(self.scratch)) | env,
            "cwd": str(self.scratch),
            "background": background,
            "confinement": {
                "readable": list(map(str, readable)),
                "writable": [str(self.scratch), *map(str, writable)],
                "devices": devices,
                "max_file_bytes": _MAX_DISK_BYTES,
            },
        }
        try:
            self._pid = server.request(request, [channel.fileno(), output_fd, status_fd, *inherit])
        except BaseException:
            self._remove_scratch()
            self._leave_group()
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
        if message.get("op") in _CHECKED_BEFORE:
            self._check_limits()
        self._signal(signal.SIGCONT)
        try:
            return self._exchange(message, timeout_s)
        finally:
            self._ran_ns = cpu_times_ns(self._family)
            self._signal(signal.SIGSTOP)
            self._stopped = time.perf_counter()
            self._present = identities(descendants(self._pid)) if self._rests else set()

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
                self._must_have_had_a_parent()
                if self._ran_out():
                    message = f"it took all of the {self._memory_bytes / 1e9:.1f} GB of host memory that it may have"
                    raise CandidateFailure(Status.OUT_OF_MEMORY, message, self._text())
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

        Returns the moment (``perf_counter``) since which it has been so: it was seen then, or what ran after the
        answer cannot have run for longer, by its CPU time. ``check_rest`` finds out if it lasted. Raises
        CandidateFailure where it takes long.
        """
        self.check_rest()
        self._rests = True
        begin = time.perf_counter()
        while self._exit_code is None:
            family = descendants(self._pid)  # it cannot grow: nobody forks who has been told to stop
            if at_rest(family):
                seen, times = time.perf_counter(), cpu_times_ns(family)
                time.sleep(_SETTLED_S)
                if cpu_times_ns(family) == times:
                    self._family, self._resting, self._slices = family, times, time_slices(family)
                    if self._present != identities(family):  # nobody knows how long those ran that are gone
                        return seen
                    ran_ns = sum(ns - self._ran_ns.get(process, 0) for process, ns in times.items())
                    return min(seen, self._stopped + ran_ns / 1e9)
            waited_s = time.perf_counter() - begin
            if waited_s > _REST_S:
                self._stop(Status.CRASHED, f"{_REST_S:g} s after its answer something that it started still runs")
            if waited_s > _SPIN_S:
                time.sleep(1e-4)
        return time.perf_counter()

    def check_rest(self) -> float:
        """Return for how many ms of CPU time it has run since ``rest``; raise CandidateFailure where that is much."""
        then, self._resting = self._resting, None
        if then is None or self._has_ended():
            return 0.0
        try:
            family = descendants(self._pid)
            resumed = self._slices is None or time_slices(family) != self._slices
            return runs_unasked.check(then, cpu_times_ns(family), resumed)
        except CandidateFailure:
            self._kill()
            raise

    @property
    def crowd(self) -> tuple[int, int]:
        """Threads of its first process, and processes at the last ``rest``: all have to stop after each answer."""
        return len(tasks(self._pid)), sum(map(bool, map(tasks_that_stop, self._family)))

    def _has_ended(self) -> bool:
        """Return whether it was killed, as by a system that is short of memory; its next answer tells how."""
        return self._exit_code is not None or any(key.fd == self._status_fd for key, _ in self._selector.select(0))

    def end(self) -> None:
        """Kill the worker and everything in its group; what it left in ``scratch`` stays until ``close``."""
        self._kill()

    def close(self) -> None:
        """Kill the worker and everything in its group, and delete its temporary directory."""
        try:
            self._kill()
        finally:
            self._selector.close()
            self._channel.close()
            if self.memory:
                self.memory.close()
            os.close(self._output_fd)
            os.close(self._status_fd)
            self._leave_group()
            files, size = disk_use(self.scratch, most=_MAX_FILES)
            self._remove_scratch()
            for folder in self._kept:
                kept, kept_size = disk_use(folder, most=_MAX_KEPT_FILES)
                if kept > _MAX_KEPT_FILES or kept_size > _MAX_KEPT_BYTES:
                    remove_tree(folder)
                    files, size = files + kept, size + kept_size
            self.left |= {"files": files, "bytes": size}

    def _remove_scratch(self) -> None:
        remove_tree(self.scratch)
        os.close(self._scratch_lock)

    def _leave_group(self) -> None:
        if self._group:
            self._group.close()

    def _ran_out(self) -> bool:
        """Return whether the kernel ended something of it at its limit of memory, which is nobody else's doing."""
        return bool(self._group and self._group.ran_out())

    def _must_have_had_a_parent(self) -> None:
        if self._orphaned:
            raise MachineFault("the process that forks workers died, and a worker with it")

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        """Close it, and tell a failure that may be due to a kill by others from the candidate's own."""
        self.close()
        if isinstance(error, CandidateFailure):
            self._must_have_had_a_parent()
            error.killed_by = error.killed_by or self.killed_by

    def _send(self, message: dict[str, Any], timeout_s: float) -> None:
        self._channel.settimeout(timeout_s)
        try:
            protocol.send(self._channel, message)
        except OSError:
            pass  # dead already, or it does not read: who waits for its answer finds out

    def _signal(self, number: int) -> None:
        """Send a signal to everything in the worker's group, if it is still there."""
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
        """Check limits of memory, processes and, less often, disk; raise CandidateFailure."""
        now = time.monotonic()
        if now - self._checked < _POLL_S:
            return
        self._checked = now
        used, tasks = usage(self._pid)
        used += self._check_sockets()
        if used > self._memory_bytes:
            limit = f"the limit is {self._memory_bytes / 1e9:.1f} GB"
            self._stop(Status.OUT_OF_MEMORY, f"the process took {used / 1e9:.1f} GB of host memory; {limit}")
        if tasks > _MAX_TASKS:
            self._stop(Status.CRASHED, f"it started {tasks} processes and threads; the limit is {_MAX_TASKS}")
        if now - self._disk_checked > _DISK_EVERY_S:
            uses = [disk_use(folder, most=_MAX_FILES) for folder in (self.scratch, *self._kept)]
            in_memory, on_disk = nameless_bytes(descendants(self._pid), self._given)
            files, size = sum(files for files, _ in uses), sum(size for _, size in uses) + on_disk
            self._disk_checked = time.monotonic()
            if in_memory > self._memory_bytes:
                self._stop(Status.OUT_OF_MEMORY, f"files in memory that it has open take {in_memory / 1e9:.1f} GB")
            if files > _MAX_FILES or size > _MAX_DISK_BYTES:
                limit = f"the limit is {_MAX_FILES} and {_MAX_DISK_BYTES / 1e9:.1f} GB"
                self._stop(Status.CRASHED, f"it wrote {files} files of {size / 1e9:.1f} GB together; {limit}")
            self._check_shared_memory(used + in_memory + size)  # a temporary folder may be one in memory

    def _check_sockets(self) -> int:
        """Bytes that lie in their buffers; files that lie in messages are counted by nobody, and may pass only."""
        before = self._files_in_messages
        size, self._files_in_messages = socket_use(descendants(self._pid))
        if before and self._files_in_messages:
            message = f"it keeps {self._files_in_messages} open files in messages that nobody reads"
            self._stop(Status.CRASHED, message)
        return size

    def _check_shared_memory(self, used: int) -> None:
        """Raise MachineFault where far more of it appeared than /proc shows of this worker: it is nobody's, or hidden.

        Pages of a shared mapping that were unmapped again are in no process's account.
        """
        grown = shared_memory_bytes() - self._shared_bytes
        if self._group is None and grown - used > self._memory_bytes:
            self._kill()
            raise MachineFault(
                f"shared memory of this machine grew by {grown / 1e9:.1f} GB while a candidate ran, whose processes "
                f"show {used / 1e9:.1f} GB; give workers a control group, or stop what takes it"
            )

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
            except (protocol.Closed, ConnectionError):
                self._selector.unregister(self._channel.fileno())
            except protocol.Garbled as error:
                self._kill()
                raise CandidateFailure(Status.CRASHED, f"the worker sent garbage: {error}", self._text()) from None
        elif self._status_fd in ready:
            self._exit_code = self._read_exit_code()
        return None

    def _arrives(self) -> bool:
        """Return whether more can be read without waiting."""
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
        code = int(data) if data else -signal.SIGKILL
        self._orphaned = not data
        if data and not self._killed and -code in _FOREIGN and not self._ran_out():
            self.killed_by = signal.Signals(-code).name
        return code

    def _kill(self) -> None:
        """Kill the group and wait until it is gone, so that its memory and device are free again."""
        if self._exit_code is not None:
            return
        self.left["processes"] = max(0, len(descendants(self._pid)) - 1)
        self._killed = not is_ending(self._pid)
        try:
            os.killpg(self._pid, signal.SIGKILL)
        except ProcessLookupError:
            try:  # it has no group of its own yet
                os.kill(self._pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        deadline = time.monotonic() + _GONE_S
        while self._exit_code is None:
            ready = {key.fd for key, _ in self._selector.select(max(0.0, deadline - time.monotonic()))}
            if not ready:
                raise MachineFault(f"a worker does not end within {_GONE_S:g} s of SIGKILL: a driver or a disk hangs")
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
    """Return the fork server of ``process``: a fork must not share its parent's."""
    server = ForkServer()
    atexit.register(_close, server, process)
    return server


def _close(server: ForkServer, process: int) -> None:
    if os.getpid() == process:  # a fork inherits what is registered
        server.close()
