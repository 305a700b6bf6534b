"""Talk to a worker process, whatever it does: requests with a deadline, limits, its output, its end.

What goes wrong in a worker is the candidate's failure; what goes wrong around it is a MachineFault.

A worker runs only while it owes an answer. Else its process group is stopped: nothing goes on beside the judge's work.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.faults import MachineFault
from harness.memory import process_memory
from harness.process import memory_cgroup, protocol, worker_limits
from harness.process.owned_folders import KeptFolders, disk_use, make_folder, remove_tree
from harness.process.procfs import cpu_times_ns, descendants, identities, in_group, is_ending, wait_until_gone
from harness.process.spawn import pipe_of_others, scrubbed_environment, what_is_there
from harness.process.worker_failures import OUTPUT_BYTES, death, endless, reported_failure
from harness.process.worker_limits import CHECK_EVERY_S, WorkerLimits
from harness.process.worker_rest import WorkerRest
from harness.result import CandidateFailure, Status

# A worker that answers at once is not checked while it runs. Before these requests no clock runs yet, so there is time.
_CHECKED_BEFORE = ("import", "load", "run", "fetch", "prepare_burst")
GONE_S = 30.0  # after SIGKILL; the end of a process with 100 GB takes seconds, one in a hanging driver has none
_FOREIGN = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)  # how a system or a user ends a process

Builder = Callable[[dict[str, Any], Path], dict[str, Any]]  # of what a worker asks for, into its scratch folder
Start = Callable[[dict[str, Any], list[int]], int]  # request and descriptors -> process number


@dataclass(frozen=True)
class WorkerOptions:
    """Options of a worker's start. Besides what is named it sees the system's files and its own."""

    env: dict[str, str]  # on top of the scrubbed environment
    memory_bytes: int  # of the host
    inherit: list[int]  # descriptors
    build: Builder | None = None  # answers what it asks to have built
    readable: Iterable[Path] = ()  # real paths: one that leads through a link by then is not read
    writable: Iterable[Path] = ()
    background: bool = False  # it has only the cores that others leave it
    devices: bool = False  # it may open GPUs


class Worker:
    """One worker process, from outside."""

    def __init__(self, start: Start, options: WorkerOptions):
        self.output = bytearray()  # the end of what it printed
        self.left: dict[str, int] = {}  # processes, files and bytes that it left behind and that were removed
        self.memory: process_memory.ProcessMemory | None = None  # from the first request on, if the system allows it
        self.killed_by = ""  # the signal that ended it, if nobody here sent it
        self._memory_bytes, self._build = options.memory_bytes, options.build
        self._orphaned = False  # its fork server died, and it did so with it
        self._killed = False  # by us
        self._exit_code: int | None = None
        self._met = False
        self._reader = protocol.Reader()
        self.scratch, self._scratch_lock = make_folder()  # its temporary directory, where it is started too
        self._kept = KeptFolders(options.writable, self.scratch)
        self._group = memory_cgroup.make(options.memory_bytes)
        folders = [self.scratch, *self._kept.paths]
        self._limits = WorkerLimits(options.memory_bytes, self._group is not None, folders)
        self._pid = self._started(start, options)
        self._identity = identities([self._pid])
        self.rested = WorkerRest(self._pid)  # what was found out about its processes at the last ``rest``
        self._selector = selectors.PollSelector()  # as in the process that forks it
        for fd in (self._channel.fileno(), self._output_fd, self._status_fd):
            self._selector.register(fd, selectors.EVENT_READ)

    def _started(self, start: Start, options: WorkerOptions) -> int:
        """Return the number of its process, the other end of its channel and pipes."""
        self._channel, channel = socket.socketpair()
        self._output_fd, output_fd = pipe_of_others()
        self._status_fd, status_fd = os.pipe()
        request = {
            "group": str(self._group.folder) if self._group else None,
            "env": scrubbed_environment(str(self.scratch)) | self._kept.environment(options.env),
            "cwd": str(self.scratch),
            "background": options.background,
            "confinement": {
                "readable": list(map(str, options.readable)),
                "writable": [str(self.scratch), *map(str, self._kept.paths)],
                "devices": options.devices,
                "max_file_bytes": self._limits.disk_bytes,
            },
        }
        try:
            return start(request, [channel.fileno(), output_fd, status_fd, *options.inherit])
        except BaseException:
            self._close_ours()
            self._remove_folders()
            raise
        finally:
            channel.close()
            os.close(output_fd)
            os.close(status_fd)

    def request(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send ``message`` and return the worker's answer.

        Raises CandidateFailure with the status that says what happened instead:
        the failure that the worker reports, its death, a timeout, too much
        memory, or an answer that is none.
        """
        self.check_rest()
        if message.get("op") in _CHECKED_BEFORE:
            self.check_limits(runs=False)
        data = memoryview(protocol.encoded(message))
        if self._met:  # it wakes to a request that is there: it could work unseen while that is sent
            data = data[protocol.send_at_once(self._channel, data) :]
        self._signal(signal.SIGCONT)
        try:
            return self._exchange(data, timeout_s)
        finally:
            self.rested.stop(lambda: self._signal(signal.SIGSTOP))

    def _exchange(self, data: memoryview, timeout_s: float) -> dict[str, Any]:
        deadline = time.monotonic() + timeout_s
        if not self._met:
            self._meet(timeout_s)
        self._send(data, timeout_s)
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
                raise death(self._exit_code, self._text())
            if time.monotonic() > deadline:
                self._kill()
                message = f"no answer within {timeout_s:g} s: it hangs, or needs a larger time limit"
                raise CandidateFailure(Status.TIMEOUT, message, self._text())
            self.check_limits()
        if "error" in answer:
            raise reported_failure(answer["error"], self._text())
        return answer

    def _meet(self, timeout_s: float) -> None:
        """Take what it gives before it runs anything that is not ours."""
        self._met = True
        self._channel.settimeout(timeout_s)
        with contextlib.suppress(OSError):  # dead already: the wait for its answer finds out
            self.memory = process_memory.take(self._channel)
        self._limits.begin(self._pid)

    def rest(self) -> float:
        """Wait until nothing of it runs; return the moment (``perf_counter``) since which it has been so.

        ``check_rest`` finds out if it lasted. Raises CandidateFailure where it takes long.
        """
        self.check_rest()
        with self._killed_on_failure():
            return self.rested.wait(lambda: self._exit_code is not None)

    def check_rest(self) -> float:
        """Return for how many ms of CPU time it has run since ``rest``; raise CandidateFailure where that is much."""
        with self._killed_on_failure():
            return self.rested.check(self._has_ended)

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
            self._close_ours()
            if self.memory:
                self.memory.close()
            use = disk_use(self.scratch, most=worker_limits.MAX_FILES)
            kept_files, kept_size = self._kept.close()  # first: what is left of ``scratch`` is swept some time
            self._remove_folders()
            self.left |= {"files": use.files + kept_files, "bytes": use.bytes + kept_size}

    def _close_ours(self) -> None:
        self._channel.close()
        os.close(self._output_fd)
        os.close(self._status_fd)

    def _remove_folders(self) -> None:
        if self._group:
            self._group.close()
        remove_tree(self.scratch)
        os.close(self._scratch_lock)

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

    def _send(self, data: memoryview, timeout_s: float) -> None:
        """Send it as far as the worker reads; that it is dead or reads too little the wait for its answer finds out."""
        deadline = time.monotonic() + timeout_s
        self._channel.settimeout(CHECK_EVERY_S)
        while data and time.monotonic() < deadline:
            try:
                data = data[self._channel.send(data) :]
            except TimeoutError:
                self.check_limits()
            except OSError:
                return

    def _signal(self, number: int) -> None:
        """Send a signal to everything in the worker's group, if it is still there."""
        if self._exit_code is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._pid, number)

    def _serve(self, request: Any, timeout_s: float) -> float:
        """Have built what the worker asks for; the seconds that took, which are not the worker's: checks are."""
        self.check_limits(at_once=True)  # a build needs room, which the candidate may have taken
        times = [time.monotonic()]
        with ThreadPoolExecutor(1) as pool:
            building = pool.submit(self._build, request if isinstance(request, dict) else {}, self.scratch)
            building.add_done_callback(lambda _: times.append(time.monotonic()))
            while not wait([building], CHECK_EVERY_S).done:
                self.check_limits()
        self._send(memoryview(protocol.encoded(building.result())), timeout_s)
        return times[-1] - times[0]

    def check_limits(self, runs: bool = True, at_once: bool = False) -> None:
        """Check limits, unless that was done a moment ago; one at rest does not run. Raises CandidateFailure."""
        with self._killed_on_failure():
            self._limits.check(self._pid, self._signal if runs else lambda number: None, at_once)

    @contextlib.contextmanager
    def _killed_on_failure(self) -> Iterator[None]:
        """Kill it where something fails within; a failure of the candidate's gets its output."""
        try:
            yield
        except (CandidateFailure, MachineFault) as failure:
            self._kill()
            if isinstance(failure, CandidateFailure):
                failure.log = failure.log or self._text()
            raise

    def _wait_for_message(self, deadline: float) -> dict[str, Any] | None:
        """Take in what arrives within a moment; the whole message if it is there."""
        wait = max(0.0, min(CHECK_EVERY_S, deadline - time.monotonic()))
        ready = {key.fd for key, _ in self._selector.select(wait)}
        if self._output_fd in ready:
            self._take_output()
        if self._channel.fileno() in ready:
            try:
                for _ in range(2):  # its length and the rest, at once: checking limits in between would take time
                    if (message := self._reader.take(self._channel)) is not None or not self._arrives():
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
        data = what_is_there(self._output_fd, OUTPUT_BYTES)
        if data == b"":
            self._selector.unregister(self._output_fd)
        self.output += data or b""
        del self.output[:-OUTPUT_BYTES]

    def _read_exit_code(self) -> int:
        self._selector.unregister(self._status_fd)
        data = os.read(self._status_fd, 64)
        for _ in range(16):  # more than a pipe holds; who writes on is nobody to wait for
            if self._output_fd not in {key.fd for key, _ in self._selector.select(0)}:
                break
            self._take_output()
        code, left = json.loads(data) if data else (-signal.SIGKILL, 0)
        self._orphaned = not data
        if left:  # dying, they hold memory that the next one needs
            self.left["processes"] = max(left, self.left.get("processes", 0))
            wait_until_gone(in_group(self._pid), GONE_S)
        if self._orphaned and identities([self._pid]) <= self._identity:  # nobody else does, and nobody leaves a group
            self._signal(signal.SIGKILL)
        if data and not self._killed and -code in _FOREIGN and not self._ran_out():
            self.killed_by = signal.Signals(-code).name
        return code

    def _kill(self) -> None:
        """Kill the group and wait until it is gone, so that its memory and device are free again."""
        if self._exit_code is not None:
            return
        self._signal(signal.SIGSTOP)  # a crowd would grow while it is looked at
        family = descendants(self._pid)
        begun_ns, self.left["processes"] = cpu_times_ns(family), max(0, len(family) - 1)
        self._killed = self._killed or not is_ending(self._pid)  # also where it did not end the first time
        try:
            os.killpg(self._pid, signal.SIGKILL)
        except ProcessLookupError:  # it has no group of its own yet
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        deadline = time.monotonic() + GONE_S
        while self._exit_code is None:
            ready = {key.fd for key, _ in self._selector.select(max(0.0, deadline - time.monotonic()))}
            if not ready:
                raise endless(family, begun_ns, GONE_S)
            if self._output_fd in ready:
                self._take_output()
            if self._status_fd in ready:
                self._exit_code = self._read_exit_code()
            elif self._channel.fileno() in ready:
                self._selector.unregister(self._channel.fileno())
        wait_until_gone(family, GONE_S)

    def _text(self) -> str:
        return self.output.decode(errors="replace")
