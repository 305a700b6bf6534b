"""What processes, folders and the host's memory hold, and how to be rid of a folder."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import time
from pathlib import Path

_MOST_PROCESSES = 10_000  # of one family: a fork bomb is not followed for ever
_CPUCLOCK_SCHED = 2  # of a whole process, as clock_getcpuclockid(3) numbers them


def usable_cores() -> int:
    """Cores that this process may run on, which a batch system or `taskset` can make fewer than there are."""
    return len(os.sched_getaffinity(0))


def descendants(pid: int) -> list[int]:
    """A process and all below it; empty for one that is gone."""
    found, pending = [], [pid]
    while pending and len(found) <= _MOST_PROCESSES:
        parent = pending.pop()
        tasks = _tasks(parent)
        for task in tasks:
            pending += map(int, _read(f"/proc/{parent}/task/{task}/children").split())
        if tasks:
            found.append(parent)
    return found


def at_rest(processes: list[int]) -> bool:
    """Whether every thread of these is stopped or gone, and has ended its system call."""
    for process in processes:
        for task in _tasks(process):
            state = _read(f"/proc/{process}/task/{task}/stat").rpartition(")")[2].split()[:1]
            if state and state[0] not in "TtZX":
                return False
    return True


def cpu_times_ns(processes: list[int]) -> dict[int, int]:
    """What each of them has had of the cores, all its threads together."""
    found = {}
    for process in processes:
        with contextlib.suppress(OSError):
            found[process] = time.clock_gettime_ns(~process << 3 | _CPUCLOCK_SCHED)
    return found


def _tasks(process: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{process}/task")
    except OSError:
        return []


def _read(path: str) -> str:
    """Empty where there is no such file any more. The name of a process in it is any bytes, ``\\r`` among them."""
    data = b""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)  # half of what `open` takes; of many threads that is seen in a burst
        try:
            while chunk := os.read(descriptor, 1 << 16):
                data += chunk
        finally:
            os.close(descriptor)
    return data.decode(errors="replace")


def usage(pid: int) -> tuple[int, int]:
    """Anonymous and shared memory in bytes, and processes with their threads, of a process and all below it."""
    memory = tasks = 0
    for process in descendants(pid):
        fields = dict(line.split(":", 1) for line in _read(f"/proc/{process}/status").split("\n") if line)
        if not fields:
            continue
        memory += sum(int(fields[name].split()[0]) for name in ("RssAnon", "RssShmem") if name in fields) * 1024
        tasks += int(fields["Threads"])
    return memory, tasks


def nameless_bytes(processes: list[int], given: set[tuple[int, int]]) -> tuple[int, int]:
    """What files without a name take that these have open, in memory and on disks; those ``given`` are not theirs.

    A file is told by device and inode.
    """
    found: dict[tuple[int, int], tuple[bool, int]] = {}
    for process in processes:
        folder = f"/proc/{process}/fd"
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                with contextlib.suppress(OSError):
                    file = os.stat(f"{folder}/{name}")
                    if stat.S_ISREG(file.st_mode) and not file.st_nlink:
                        in_memory = os.readlink(f"{folder}/{name}").startswith("/memfd:")
                        found[file.st_dev, file.st_ino] = in_memory, file.st_blocks * 512
    theirs = [of for file, of in found.items() if file not in given]
    return sum(size for memory, size in theirs if memory), sum(size for memory, size in theirs if not memory)


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
