"""A limit on a worker's memory by the kernel's own account, where this user may make control groups (version 2).

It counts what no table of processes shows: what lies in pipes, in messages, in file systems in memory. Where there
is no such group, ``harness.process.worker_limits`` adds up what /proc tells.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import tempfile
from pathlib import Path

_MOUNT = Path("/sys/fs/cgroup")


class MemoryGroup:
    """One control group, for one worker and all that it starts."""

    def __init__(self, folder: Path, limit_bytes: int):
        """Raises OSError where it cannot be limited."""
        self.folder = folder
        (folder / "memory.max").write_text(str(limit_bytes))
        for name, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
            with contextlib.suppress(OSError):  # not all kernels have them
                (folder / name).write_text(value)

    def ran_out(self) -> bool:
        """Return whether the kernel ended something in it for lack of memory."""
        with contextlib.suppress(OSError):
            killed = re.search(r"^oom_kill (\d+)$", (self.folder / "memory.events").read_text(), re.MULTILINE)
            return bool(killed and int(killed[1]))
        return False

    def close(self) -> None:
        with contextlib.suppress(OSError):  # its last process may not be gone altogether
            self.folder.rmdir()


def make(limit_bytes: int) -> MemoryGroup | None:
    """A new group with this limit; None where this user cannot make any."""
    parent = usable_parent()
    return parent and _below(parent, limit_bytes)


def join(folder: str) -> None:
    """Move this process into the group; raises OSError."""
    Path(folder, "cgroup.procs").write_text("0", encoding="utf-8")


@functools.cache
def usable_parent() -> Path | None:
    """The group below which this user can limit memory: its own, or the one above."""
    own = re.search(r"^0::/(.*)$", Path("/proc/self/cgroup").read_text(encoding="utf-8"), re.MULTILINE)
    folder = _MOUNT / own[1] if own else _MOUNT
    candidates = (folder, folder.parent) if folder != _MOUNT else (folder,)
    return next((candidate for candidate in candidates if _is_usable(candidate)), None)


def _is_usable(parent: Path) -> bool:
    """Tried with a group and a process of its own."""
    try:
        if "memory" not in (parent / "cgroup.subtree_control").read_text().split():
            return False
        group = _below(parent, 1 << 30)
    except OSError:
        return False
    try:
        pid = os.fork()
        if pid == 0:
            try:
                join(str(group.folder))
                os._exit(0)
            finally:
                os._exit(1)
        return os.waitpid(pid, 0)[1] == 0
    finally:
        group.close()


def _below(parent: Path, limit_bytes: int) -> MemoryGroup:
    folder = Path(tempfile.mkdtemp(prefix="kernelbench-", dir=parent))
    try:
        return MemoryGroup(folder, limit_bytes)
    except OSError:
        folder.rmdir()
        raise
