"""What processes, folders and the host's memory hold, and how to be rid of a folder."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

_MOST_PROCESSES = 10_000  # of one family: a fork bomb is not followed for ever


def usable_cores() -> int:
    """Cores that this process may run on, which a batch system or `taskset` can make fewer than there are."""
    return len(os.sched_getaffinity(0))


def descendants(pid: int) -> list[int]:
    """A process and all below it; empty for one that is gone."""
    found, pending = [], [pid]
    while pending and len(found) <= _MOST_PROCESSES:
        parent = pending.pop()
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children") as children:
                    pending += map(int, children.read().split())
        except OSError:
            continue
        found.append(parent)
    return found


def at_rest(pid: int) -> bool:
    """Whether every thread of a process and of all below it is stopped or gone."""
    for process in descendants(pid):
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{task}/stat") as stat:
                    if stat.read().rpartition(")")[2].split()[0] not in "TtZX":
                        return False
    return True


def usage(pid: int) -> tuple[int, int]:
    """Anonymous and shared memory in bytes, and processes with their threads, of a process and all below it."""
    memory = tasks = 0
    for process in descendants(pid):
        try:
            with open(f"/proc/{process}/status") as status:
                fields = dict(line.split(":", 1) for line in status)
        except OSError:
            continue
        memory += sum(int(fields[name].split()[0]) for name in ("RssAnon", "RssShmem") if name in fields) * 1024
        tasks += int(fields["Threads"])
    return memory, tasks


def disk_use(folder: Path, most: int) -> tuple[int, int]:
    """Files below ``folder`` and the bytes that they take; stops counting at ``most`` files."""
    files = size = 0
    for path, folders, names in os.walk(folder):
        files += len(folders) + len(names)
        if files > most:
            break
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(path, name)).st_blocks * 512
    return files, size


def remove_tree(root: Path) -> None:
    """Delete a folder whatever somebody put into it: no rights, folders nested beyond the longest path.

    Folders move up before they are emptied, so that no path grows. Nobody may write there any more.
    """
    pending = [root]
    while pending:
        folder = pending.pop()
        for entry in _entries(folder):
            with contextlib.suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    continue
                os.chmod(entry.path, 0o700)
                if folder != root:
                    place = tempfile.mkdtemp(dir=root)
                    os.rename(entry.path, place)
                    pending.append(Path(place))
                else:
                    pending.append(Path(entry.path))
    for folder in (*map(Path, _entries(root)), root):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _entries(folder: Path) -> list[os.DirEntry]:
    try:
        os.chmod(folder, 0o700)
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def available_memory_bytes() -> int:
    """Of the host, now."""
    with open("/proc/meminfo") as meminfo:
        fields = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in meminfo}
    return fields["MemAvailable"]


def default_memory_bytes() -> int:
    """Half of the host's memory, by what is available now."""
    return max(available_memory_bytes() // 2, 2 << 30)
