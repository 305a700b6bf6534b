"""Limits of one worker on memory, processes, files and disk, from what /proc tells of its processes."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from harness.faults import MachineFault
from harness.process.holdings import Mappings, OpenFiles, mappings, network_of, open_files, sockets_in
from harness.process.owned_folders import disk_use
from harness.process.procfs import (
    Family,
    at_rest,
    free_tasks,
    lies_in_memory,
    listed,
    place_to_go,
    shared_memory_bytes,
    unaccounted_memory_bytes,
    usage,
)
from harness.result import CandidateFailure, Status

CHECK_EVERY_S = 0.1
MAX_DISK_BYTES = 8 << 30  # in one file, and in all of a worker's files; on a smaller disk half of what is free
_LEAST_FILES = 1_000  # a build makes some; half of the free ones are a candidate's, as of the bytes
_LEAST_DISK_BYTES = 64 << 20  # whoever has less room has a disk that is full
MAX_FILES = 100_000
_MAX_TASKS = 1024 + 16 * (os.cpu_count() or 1)  # processes and threads; a compiler or OpenMP takes a few a core
_LEAST_TASKS = 64  # half of what its user may have is a candidate's: others need some, to build what it asks for
_MAX_DESCRIPTORS = 1 << 13  # of all its processes; a worker has 6 to 30, reading so many takes 0.05 s
_MAX_MAPPINGS = 1 << 17  # of all its processes; torch takes 400, and more with CUDA; reading so many takes 0.15 s
_DISK_EVERY_S = 1.0
_SLOW_S = 0.2  # a check takes longer only where many run who hold the cores, or locks of what is read
_REST_S = 0.25  # to stop takes longer only in a system call that does, or in one that waits for a stopped child
_STILL_S = 1.0  # those that were told to stop are still by then, or end
_PAUSE = 4  # times as long as reading all mappings took they are not read again


class WorkerLimits:
    """Limits of one worker, against what it uses. What is counted as memory is compared in one sum.

    Parameters
    ----------
    memory_bytes
        Host memory that its processes may take together, files in memory that it was given included.
    has_group
        Whether a control group limits the memory too, and counts what /proc does not show.
    folders
        Folders that it may write to.
    """

    def __init__(self, memory_bytes: int, has_group: bool, folders: list[Path]):
        self._memory_bytes, self._has_group, self._folders = memory_bytes, has_group, folders
        self._shared_bytes, self._unaccounted_bytes = shared_memory_bytes(), unaccounted_memory_bytes()
        self.disk_bytes = min([MAX_DISK_BYTES, *(max(_LEAST_DISK_BYTES, free_bytes(one) // 2) for one in folders)])
        self.files = min([MAX_FILES, *(max(_LEAST_FILES, free_files(one) // 2) for one in folders)])
        self._free_bytes = [free_bytes(one) for one in folders]  # at the last look
        self._in_memory = {os.stat(one).st_dev for one in folders if lies_in_memory(one)}  # devices of these
        self._tasks = int(min(_MAX_TASKS, max(_LEAST_TASKS, free_tasks() / 2)))  # inf // 2 is nan, and inf / 2 is not
        self._hiding = 0  # processes, at the last check
        self._named_bytes = 0  # of its files in folders that lie in memory, at the last look
        self._mappings, self._mappings_due = Mappings(), 0.0
        self._begun = self._shows = False
        self._network = network_of(os.getpid())
        self._place: int | None = None
        self._checked = self._disk_checked = time.monotonic()

    def begin(self, pid: int) -> None:
        """Note how the worker ``pid`` is before it runs what is not ours. Until then there is nothing to check."""
        self._begun, self._shows = True, not open_files([pid], _MAX_DESCRIPTORS).hiding
        self._place = place_to_go(pid)

    def check(self, pid: int, send: Callable[[int], None], at_once: bool = False) -> None:
        """Check memory and processes of the worker ``pid``, and less often disk and mappings, or all ``at_once``.

        ``send`` sends a signal to all its processes, if they are running: where the check takes long they wait for it.
        Raises CandidateFailure for a limit that is passed, and MachineFault for memory without an owner.
        """
        if not self._begun or not at_once and time.monotonic() - self._checked < CHECK_EVERY_S:
            return
        if at_once:
            self._disk_checked = -math.inf
        brake = _Brake(send)
        self._check(pid, brake)
        brake.release()
        self._checked = time.monotonic()  # at its end: where a check takes long, the worker has the time in between

    def _check(self, pid: int, brake: _Brake) -> None:
        """Check what its processes have; where it moves about meanwhile, once more while they are at rest.

        What passes its memory on to a new process at each moment is in none that is still there when it is read, and a
        file that is moved, or open by another number, is nowhere. So the files are looked at while they are at rest.
        """
        look = self._must_look()
        if look:
            self._hold_still(self._listed(pid, brake).processes, brake)
        there, still, until = True, False, time.monotonic() + _STILL_S
        while there and not still and time.monotonic() < until:
            family = self._listed(pid, brake)
            files, shared = self._check_family(family.processes, brake, look)
            after = self._listed(pid, brake)
            there = after.processes
            still = not (family.ended or after.ended or files.moving) and set(there) == set(family.processes)
            if not still:
                self._hold_still(there, brake)
        self._check_hiding(files.hiding)
        if look:
            self._check_unaccounted_memory()
            self._check_shared_memory(shared)
            self._disk_checked = time.monotonic()

    def _listed(self, pid: int, brake: _Brake) -> Family:
        """Return its processes, if they are not too many: a crowd is stopped before anybody looks at more of it."""
        family = listed(pid, most=self._tasks)
        if family.tasks > self._tasks:
            brake.hold()
            raise _crashed(f"it has {family.tasks} or more processes and threads; the limit is {self._tasks}")
        return family

    def _hold_still(self, family: list[int], brake: _Brake) -> None:
        brake.hold_still(family)
        self._mappings_due = 0.0

    def _check_family(self, family: list[int], brake: _Brake, look: bool) -> tuple[OpenFiles, int]:
        """Check what these have; return what they have open, and the bytes of their shared memory."""
        memory = usage(family)
        self._check_place(family)
        self._check_mappings(family, brake)
        files = open_files(family, _MAX_DESCRIPTORS, brake)
        if family and network_of(family[0]) not in ("", self._network):
            files.kept_sockets = sockets_in(family[0])
        if files.descriptors > _MAX_DESCRIPTORS:
            raise _crashed(f"its processes have more than {_MAX_DESCRIPTORS:,} descriptors open together")
        nameless = self._mappings.nameless | files.nameless
        if look:
            self._check_disk([size for in_memory, size in nameless.values() if not in_memory])
        held = (size for (at, _), (in_memory, size) in nameless.items() if in_memory or at in self._in_memory)
        # a file in memory is in both figures, as far as it is mapped
        in_memory = self._named_bytes + sum(held)
        shared = max(memory.shared, in_memory)
        used = memory.private + shared + files.buffer_bytes + self._mappings.kernel_bytes
        if used > self._memory_bytes:
            limit = f"the limit is {self._memory_bytes / 1e9:.1f} GB"
            raise CandidateFailure(
                Status.OUT_OF_MEMORY, f"the process took {used / 1e9:.1f} GB of host memory; {limit}"
            )
        files.moving |= memory.moving
        return files, shared

    def _check_place(self, family: list[int]) -> None:
        """CUDA has to write next to where this is set."""
        places = [place for process in family if (place := place_to_go(process)) is not None]
        if self._place is not None and places and min(places) < self._place:
            raise _crashed("it asked the system to end other processes before it (oom_score_adj)")

    def _check_mappings(self, family: list[int], brake: _Brake) -> None:
        begin = time.monotonic()
        if begin < self._mappings_due:
            return
        self._mappings = mappings(family, _MAX_MAPPINGS, brake)
        if self._mappings.count > _MAX_MAPPINGS:
            raise _crashed(f"its processes have more than {_MAX_MAPPINGS:,} mappings together")
        end = time.monotonic()
        self._mappings_due = end + _PAUSE * (end - begin)

    def _check_hiding(self, hiding: int) -> None:
        """Raise where processes hide what they have open: that may pass, but not stay."""
        before, self._hiding = self._hiding, hiding
        if self._shows and before and hiding:
            raise _crashed(f"{hiding} of its processes hide what they have open (PR_SET_DUMPABLE)")

    def _must_look(self) -> bool:
        """Return whether its files are to be counted: that is due, or so much is gone that it may have too many."""
        try:
            free = [free_bytes(folder) for folder in self._folders]
        except OSError:  # one is gone: others may have removed it
            return True
        gone = max((before - now for before, now in zip(self._free_bytes, free)), default=0)
        due = time.monotonic() - self._disk_checked > _DISK_EVERY_S or gone > self.disk_bytes // 2
        self._free_bytes = free if due else self._free_bytes
        return due

    def _check_disk(self, nameless: list[int]) -> None:
        """Check its files, with those without a name, whose sizes are in ``nameless``."""
        uses = [disk_use(folder, most=self.files) for folder in self._folders]
        held = (use.bytes for use, folder in zip(uses, self._folders) if os.stat(folder).st_dev in self._in_memory)
        self._named_bytes = sum(held)
        files = sum(use.files for use in uses) + len(nameless)
        size = sum(use.bytes for use in uses) + sum(nameless)
        if files > self.files or size > self.disk_bytes:
            limit = f"the limit is {self.files} and {self.disk_bytes / 1e9:.1f} GB"
            raise _crashed(f"it wrote {files} files of {size / 1e9:.1f} GB together; {limit}")
        if hidden := next((use.hidden for use in uses if use.hidden), ""):
            raise _crashed(f"its files cannot be counted: it made {hidden}")

    def _check_unaccounted_memory(self) -> None:
        """Raise MachineFault if memory that no process accounts for grew by more than a worker may take."""
        grown = unaccounted_memory_bytes() - self._unaccounted_bytes
        if grown > self._memory_bytes:
            raise MachineFault(
                f"memory of this machine that is in no process's account (the kernel's own, and parts of huge pages) "
                f"grew by {grown / 1e9:.1f} GB while a candidate ran, which may take {self._memory_bytes / 1e9:.1f} GB "
                "of host memory in all; stop what takes it, or raise --memory"
            )

    def _check_shared_memory(self, used: int) -> None:
        """Raise MachineFault if shared memory grew by far more than /proc shows of this worker.

        Pages of a shared mapping that were unmapped again are in no process's account.
        """
        grown = shared_memory_bytes() - self._shared_bytes
        if not self._has_group and grown - used > self._memory_bytes:
            raise MachineFault(
                f"shared memory of this machine grew by {grown / 1e9:.1f} GB while a candidate ran, whose processes "
                f"show {used / 1e9:.1f} GB; give workers a control group, or stop what takes it"
            )


class _Brake:
    """Called now and then in a check, it stops the worker once that has taken long; ``hold`` does so at once."""

    def __init__(self, send: Callable[[int], None]):
        self._send, self._begin, self._holds = send, time.monotonic(), False

    def __call__(self) -> None:
        if time.monotonic() - self._begin > _SLOW_S:
            self.hold()

    def hold(self) -> None:
        if not self._holds:
            self._holds = True
            self._send(signal.SIGSTOP)

    def hold_still(self, processes: list[int]) -> None:
        """Stop the worker, and wait for the end of what its processes do: a system call ends first."""
        self.hold()
        until = time.monotonic() + _REST_S
        while not at_rest(processes) and time.monotonic() < until:
            time.sleep(1e-4)

    def release(self) -> None:
        if self._holds:
            self._send(signal.SIGCONT)


def _crashed(message: str) -> CandidateFailure:
    return CandidateFailure(Status.CRASHED, message)


def free_bytes(folder: Path) -> int:
    """Return how many are free on a folder's disk. Raises OSError."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def free_files(folder: Path) -> int:
    """Return how many files there is room for; some file systems count none."""
    disk = os.statvfs(folder)
    return disk.f_favail if disk.f_files else 2 * MAX_FILES
