"""Processes, folders and memory of the host, from /proc."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_MOST_PROCESSES = 10_000  # of one family: a fork bomb is not followed for ever
_MEMORY = ("RssAnon", "RssShmem", "VmPTE")  # in /proc/PID/status
_PF_EXITING = 0x4  # of the flags in /proc/PID/stat
_FILES_IN_MEMORY = ("/memfd:", "/dev/zero", "/SYSV", "/dev/shm/")  # names of shared mappings in /proc/PID/maps
_PR_SET_PDEATHSIG = 1
_CPUCLOCK_SCHED = 2  # of a whole process, as clock_getcpuclockid(3) numbers them


def usable_cores() -> int:
    """Cores that this process may run on, which a batch system or `taskset` can make fewer than there are."""
    return len(os.sched_getaffinity(0))


def descendants(pid: int) -> list[int]:
    """A process and all below it; empty for one that is gone."""
    found, pending = [], [pid]
    while pending and len(found) <= _MOST_PROCESSES:
        parent = pending.pop()
        threads = tasks(parent)
        for task in threads:
            pending += map(int, _read(f"/proc/{parent}/task/{task}/children").split())
        if threads:
            found.append(parent)
    return found


def at_rest(processes: list[int]) -> bool:
    """Return whether every thread of these is stopped or gone, and has ended its system call."""
    for process in processes:
        for task in tasks(process):
            state = _read(f"/proc/{process}/task/{task}/stat").rpartition(")")[2].split()[:1]
            if state and state[0] not in "TtZX":
                return False
    return True


def identities(processes: list[int]) -> set[tuple[int, str]]:
    """Return number and start time of each of these that is there: numbers are used again."""
    found = set()
    for process in processes:
        fields = _read(f"/proc/{process}/stat").rpartition(")")[2].split()
        if fields:
            found.add((process, fields[19]))
    return found


def is_ending(process: int) -> bool:
    """Return whether it has ended or is about to, by a signal or by itself."""
    fields = _read(f"/proc/{process}/stat").rpartition(")")[2].split()
    return not fields or fields[0] in "ZX" or bool(int(fields[6]) & _PF_EXITING)


def end_with_parent() -> None:
    """Have the system kill this process when the one that started it ends. A change of privileges undoes that."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def go_first(score: int) -> None:
    """Have the system end this process and its children before others, if it is short of memory; 1000 is first."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(str(score))


def cpu_times_ns(processes: list[int]) -> dict[int, int]:
    """Return what each of them has had of the cores, all its threads together."""
    found = {}
    for process in processes:
        with contextlib.suppress(OSError):
            found[process] = time.clock_gettime_ns(~process << 3 | _CPUCLOCK_SCHED)
    return found


def time_slices(processes: list[int]) -> int | None:
    """Return how often threads of these were given a core; None where the kernel does not count that."""
    slices = 0
    for process in processes:
        for task in tasks(process):
            fields = _read(f"/proc/{process}/task/{task}/schedstat").split()
            if fields:
                slices += int(fields[2])
    return slices or None


def tasks(process: int) -> list[str]:
    """Return the numbers of its threads; empty for one that is gone."""
    try:
        return os.listdir(f"/proc/{process}/task")
    except OSError:
        return []


def tasks_that_stop(process: int) -> list[str]:
    """Return its threads; none of one that has ended and waits for its parent, which costs nobody time."""
    state = _read(f"/proc/{process}/stat").rpartition(")")[2].split()[:1]
    return [] if not state or state[0] in "ZX" else tasks(process)


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
    """Anonymous and shared memory with its page tables in bytes, and processes with their threads, of a family."""
    memory = tasks = 0
    for process in descendants(pid):
        fields = dict(line.split(":", 1) for line in _read(f"/proc/{process}/status").split("\n") if line)
        if not fields:
            continue
        memory += sum(int(fields[name].split()[0]) for name in _MEMORY if name in fields) * 1024
        tasks += int(fields["Threads"])
    return memory, tasks


def nameless_bytes(processes: list[int], given: set[tuple[int, int]]) -> tuple[int, int]:
    """Return bytes of files without a name that processes have open or mapped, in memory and on disk.

    A file is told by device and inode. One that is only mapped counts as far as it is mapped, where this user may not
    look behind a mapping (CAP_CHECKPOINT_RESTORE).
    """
    found = _mapped_files(processes)
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


def _mapped_files(processes: list[int]) -> dict[tuple[int, int], tuple[bool, int]]:
    """Return whether it is in memory, and the bytes, of each shared mapping of a file without a name."""
    found: dict[tuple[int, int], tuple[bool, int]] = {}
    for process in processes:
        for line in _read(f"/proc/{process}/maps").split("\n"):
            fields = line.split(None, 5)
            if len(fields) < 6 or fields[1][3] != "s" or not fields[5].endswith("(deleted)"):
                continue
            begin, end = (int(address, 16) for address in fields[0].split("-"))
            major, minor = (int(part, 16) for part in fields[3].split(":"))
            file = os.makedev(major, minor), int(fields[4])
            in_memory = fields[5].startswith(_FILES_IN_MEMORY)
            size = int(fields[2], 16) + end - begin
            with contextlib.suppress(OSError):
                size = os.stat(f"/proc/{process}/map_files/{fields[0]}").st_blocks * 512
            found[file] = in_memory, max(size, found.get(file, (in_memory, 0))[1])
    return found


def socket_use(processes: list[int]) -> tuple[int, int]:
    """Bytes that the buffers of their sockets may hold, and open files that lie in them in messages nobody has read."""
    found: dict[str, int] = {}
    for process in processes:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{process}/fd"):
                with contextlib.suppress(OSError):
                    link = os.readlink(f"/proc/{process}/fd/{name}")
                    if link.startswith("socket:") and link not in found:
                        held = _read(f"/proc/{process}/fdinfo/{name}").partition("scm_fds:")[2].split()[:1]
                        found[link] = int(held[0]) if held else 0
    return len(found) * _socket_bytes(), sum(found.values())


def _socket_bytes() -> int:
    """The most that one socket holds for others to read, whose size nobody here can change: its limit and a message."""
    return 2 * int(_read("/proc/sys/net/core/wmem_default").strip() or 1 << 18)


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


def shared_memory_bytes() -> int:
    """Return what all shared memory of the host takes: mapped or not, with a name or without."""
    return _meminfo_bytes()["Shmem"]


def _meminfo_bytes() -> dict[str, int]:
    with open("/proc/meminfo") as meminfo:
        return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in meminfo}


def available_memory_bytes() -> int:
    """Return the free memory of the host in bytes; in a container what its limit leaves, if that is less."""
    return min([_meminfo_bytes()["MemAvailable"], *_left_by_groups()])


def _left_by_groups(mount: Path = Path("/sys/fs/cgroup")) -> Iterator[int]:
    """Return the bytes that the limit of each control group (version 2) above this process leaves."""
    own = _read("/proc/self/cgroup").partition("::")[2].split("\n")[0].lstrip("/")
    folder = mount / own
    for group in (folder, *folder.parents):
        if group == mount.parent:
            return
        limit, used = _read(f"{group}/memory.max").strip(), _read(f"{group}/memory.current").strip()
        if limit.isdigit() and used.isdigit():
            cache = re.search(r"^inactive_file (\d+)$", _read(f"{group}/memory.stat"), re.MULTILINE)
            yield max(0, int(limit) - int(used) + int(cache[1] if cache else 0))


def default_memory_bytes() -> int:
    """Half of the host's memory, by what is available now."""
    return max(available_memory_bytes() // 2, 2 << 30)
