"""Limits of one worker on memory, processes, files and disk, from what /proc tells of its processes."""

from __future__ import annotations

import os
import time
from pathlib import Path

from harness.faults import MachineFault
from harness.process.procfs import descendants, disk_use, nameless_bytes, shared_memory_bytes, socket_use, usage
from harness.result import CandidateFailure, Status

CHECK_EVERY_S = 0.1
MAX_DISK_BYTES = 8 << 30  # in one file, and in all of a worker's files
MAX_FILES = 100_000
_MAX_TASKS = 1024 + 16 * (os.cpu_count() or 1)  # processes and threads; a compiler or OpenMP takes a few a core
_DISK_EVERY_S = 1.0


class WorkerLimits:
    """Limits of one worker, against what it uses.

    Parameters
    ----------
    memory_bytes
        Host memory that its processes may take together.
    has_group
        Whether a control group limits the memory too, and counts what /proc does not show.
    folders
        Folders that it may write to.
    inherited
        Descriptors that it was given; files in memory among them are not its own.
    """

    def __init__(self, memory_bytes: int, has_group: bool, folders: list[Path], inherited: list[int]):
        self._memory_bytes, self._has_group, self._folders = memory_bytes, has_group, folders
        self._given = {(file.st_dev, file.st_ino) for file in map(os.fstat, inherited)}
        self._shared_bytes = shared_memory_bytes()
        self._files_in_messages = 0
        self._checked = self._disk_checked = time.monotonic()

    def check(self, pid: int) -> None:
        """Check memory and processes of the worker ``pid``, and less often disk.

        Raises CandidateFailure for a limit that is passed, and MachineFault for memory without an owner.
        """
        now = time.monotonic()
        if now - self._checked < CHECK_EVERY_S:
            return
        self._checked = now
        used, tasks = usage(pid)
        used += self._check_sockets(pid)
        if used > self._memory_bytes:
            limit = f"the limit is {self._memory_bytes / 1e9:.1f} GB"
            raise CandidateFailure(
                Status.OUT_OF_MEMORY, f"the process took {used / 1e9:.1f} GB of host memory; {limit}"
            )
        if tasks > _MAX_TASKS:
            raise CandidateFailure(
                Status.CRASHED, f"it started {tasks} processes and threads; the limit is {_MAX_TASKS}"
            )
        if now - self._disk_checked > _DISK_EVERY_S:
            self._check_files(pid, used)

    def _check_files(self, pid: int, used: int) -> None:
        uses = [disk_use(folder, most=MAX_FILES) for folder in self._folders]
        in_memory, on_disk = nameless_bytes(descendants(pid), self._given)
        files, size = sum(files for files, _ in uses), sum(size for _, size in uses) + on_disk
        self._disk_checked = time.monotonic()
        if in_memory > self._memory_bytes:
            raise CandidateFailure(
                Status.OUT_OF_MEMORY, f"files in memory that it has open take {in_memory / 1e9:.1f} GB"
            )
        if files > MAX_FILES or size > MAX_DISK_BYTES:
            limit = f"the limit is {MAX_FILES} and {MAX_DISK_BYTES / 1e9:.1f} GB"
            raise CandidateFailure(
                Status.CRASHED, f"it wrote {files} files of {size / 1e9:.1f} GB together; {limit}"
            )
        self._check_shared_memory(used + in_memory + size)  # a temporary folder may be one in memory

    def _check_sockets(self, pid: int) -> int:
        """Return bytes in socket buffers. Files in messages are in no account, so they may pass, but not stay."""
        before = self._files_in_messages
        size, self._files_in_messages = socket_use(descendants(pid))
        if before and self._files_in_messages:
            message = f"it keeps {self._files_in_messages} open files in messages that nobody reads"
            raise CandidateFailure(Status.CRASHED, message)
        return size

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
