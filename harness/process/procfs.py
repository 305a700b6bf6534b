"""Processes, folders and memory of the host, from /proc."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import re
import resource
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MOST_TASKS = 10_000  # of one family: a fork bomb is not followed for ever
# In /proc/PID/status. Huge pages are those of files without a name, which are known as such by their mappings, too.
_PRIVATE, _SHARED = ("RssAnon", "VmSwap", "VmPTE"), ("RssShmem", "HugetlbPages")
# In memory.stat of a control group. A candidate that reads files, or asks for names that there are not, leaves them.
_TAKEN_BACK = re.compile(r"^(?:inactive_file|active_file|slab_reclaimable) (\d+)$", re.MULTILINE)
_PF_EXITING = 0x4  # of the flags in /proc/PID/stat
_PR_SET_PDEATHSIG = 1
_CPUCLOCK_SCHED = 2  # of a whole process, as clock_getcpuclockid(3) numbers them


def usable_cores() -> int:
    """Cores that this process may run on, which a batch system or `taskset` can make fewer than there are."""
    return len(os.sched_getaffinity(0))


@dataclass
class Family:
    """A process and all below it. Where one ``ended`` meanwhile, or a thread, what it has started may be missing."""

    processes: list[int]
    tasks: int = 0  # processes and threads
    ended: bool = False


def descendants(pid: int) -> list[int]:
    """A process and all below it; empty for one that is gone."""
    return listed(pid).processes


def listed(pid: int, most: float = math.inf) -> Family:
    """Return a process and all below it; of more than ``most`` tasks those that were looked at by then."""
    family, pending = Family([]), [pid]
    while pending and family.tasks <= _MOST_TASKS and family.tasks + len(pending) <= most:
        parent = pending.pop()
        threads = tasks(parent)
        family.tasks += len(threads)
        if threads:
            family.processes.append(parent)
        else:
            family.ended = True
        for task in threads if family.tasks <= min(most, _MOST_TASKS) else ():
            pending += map(int, read_text(f"/proc/{parent}/task/{task}/children").split())
        family.ended |= not {*threads} <= {*tasks(parent)}  # another thread has its children now
    family.tasks += len(pending)
    return family


def in_group(group: int) -> list[int]:
    """Return the processes of a group, whoever is their parent by now."""
    processes = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [process for process in processes if _stat(f"/proc/{process}")[2:3] == [str(group)]]


def at_rest(processes: list[int]) -> bool:
    """Return whether every thread of these is stopped or gone, and has ended its system call."""
    return not any(_unrested(processes))


def unrested(processes: list[int]) -> str:
    """Return the states of threads that are not at rest, as in proc(5): R has a core or waits for one, D for a disk."""
    return "".join(sorted(set(_unrested(processes))))


def _unrested(processes: list[int]) -> Iterator[str]:
    for process in processes:
        for task in tasks(process):
            fields = _stat(f"/proc/{process}/task/{task}")
            if fields and fields[0] not in "TtZX":
                yield fields[0]


def identities(processes: list[int]) -> set[tuple[int, str]]:
    """Return number and start time of each of these that is there: numbers are used again."""
    found = set()
    for process in processes:
        if fields := _stat(f"/proc/{process}"):
            found.add((process, fields[19]))
    return found


def is_ending(process: int) -> bool:
    """Return whether it has ended or is about to, by a signal or by itself; its first thread may end alone."""
    return all(_task_is_ending(f"/proc/{process}/task/{task}") for task in tasks(process))


def _task_is_ending(task: str) -> bool:
    fields = _stat(task)
    if not fields or fields[0] in "ZX" or int(fields[6]) & _PF_EXITING:
        return True
    return bool(int(_fields(read_text(f"{task}/status")).get("SigPnd", "0"), 16) >> (signal.SIGKILL - 1) & 1)


def end_with_parent() -> None:
    """Have the system kill this process when the one that started it ends. A change of privileges undoes that."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def set_limit(limit: int, value: int) -> None:
    """Set a limit of this process, one of ``resource.RLIMIT_*``, for good; a lower hard one that it has stays."""
    _, hard = resource.getrlimit(limit)
    resource.setrlimit(limit, (value if hard == resource.RLIM_INFINITY else min(value, hard),) * 2)


def go_first(score: int) -> None:
    """Have the system end this process and its children before others, if it is short of memory; 1000 is first."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="utf-8") as file:
        file.write(str(score))


def cpu_times_ns(processes: list[int]) -> dict[int, int]:
    """Return what each of them has had of the cores, all its threads together."""
    found = {}
    for process in processes:
        with contextlib.suppress(OSError):
            found[process] = time.clock_gettime_ns(~process << 3 | _CPUCLOCK_SCHED)
    return found


def turns(processes: list[int]) -> dict[str, tuple[int, int, int]]:
    """Return for each thread of these how long it has had a core and waited for one, in ns, and how often it had one.

    Empty where the kernel does not count that.
    """
    found = {}
    for process in processes:
        for task in tasks(process):
            fields = read_text(f"/proc/{process}/task/{task}/schedstat").split()
            if fields and fields[2] != "0":
                found[task] = int(fields[0]), int(fields[1]), int(fields[2])
    return found


def tasks(process: int) -> list[str]:
    """Return the numbers of its threads; empty for one that is gone."""
    try:
        return os.listdir(f"/proc/{process}/task")
    except OSError:
        return []


def tasks_that_stop(process: int) -> list[str]:
    """Return its threads but those that have ended, and wait for a parent or the others: they cost nobody time."""
    stats = {task: _stat(f"/proc/{process}/task/{task}") for task in tasks(process)}
    return [task for task, fields in stats.items() if fields and fields[0] not in "ZX"]


def wait_until_gone(processes: list[int], most_s: float) -> None:
    """Wait until none of these, which were killed, has anything left that the kernel must take away for it."""
    end = time.monotonic() + most_s
    while any(map(tasks_that_stop, processes)) and time.monotonic() < end:
        time.sleep(0.005)


def read_text(path: str) -> str:
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


@dataclass
class Usage:
    """Memory of processes together, in bytes: ``private`` with page tables, and ``shared``.

    ``moving`` where one shows none: its threads end, each after it has started the next.
    """

    private: int = 0
    shared: int = 0
    moving: bool = False


def usage(processes: list[int]) -> Usage:
    """Return what these use."""
    found = Usage()
    for process in processes:
        fields = _status(process)
        if not fields:
            continue
        found.private += sum(int(fields[name].split()[0]) for name in _PRIVATE if name in fields) * 1024
        found.shared += sum(int(fields[name].split()[0]) for name in _SHARED if name in fields) * 1024
        found.moving |= "RssAnon" not in fields and int(fields["Threads"]) > 1
    return found


def _status(process: int) -> dict[str, str]:
    """Return its /proc/PID/status; one whose first thread has ended shows its memory in those of the others."""
    fields = _fields(read_text(f"/proc/{process}/status"))
    if fields and "RssAnon" not in fields and int(fields["Threads"]) > 1:
        others = (_fields(read_text(f"/proc/{process}/task/{task}/status")) for task in tasks(process))
        return next((other for other in others if "RssAnon" in other), fields)
    return fields


def _stat(place: str) -> list[str]:
    """Return what the kernel says of a process or thread behind its name: first its state; nothing of who is gone."""
    return read_text(f"{place}/stat").rpartition(")")[2].split()


def _fields(text: str) -> dict[str, str]:
    return dict(line.split(":", 1) for line in text.split("\n") if line)


def place_to_go(process: int) -> int | None:
    """Return the score that ``go_first`` set; None of a process that is gone."""
    text = read_text(f"/proc/{process}/oom_score_adj").strip()
    return int(text) if text else None


def lies_in_memory(folder: Path) -> bool:
    """Return whether files below ``folder`` are shared memory of the host."""
    device = os.stat(folder).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    mounts = (line.split() for line in read_text("/proc/self/mountinfo").split("\n") if line)
    return any(fields[2] == number and fields[fields.index("-") + 1] == "tmpfs" for fields in mounts)


def shared_memory_bytes() -> int:
    """Return what all shared memory of the host takes: mapped or not, with a name or without."""
    return _meminfo_bytes()["Shmem"]


def unaccounted_memory_bytes() -> int:
    """Return the memory of the host that is in the account of no process, whoever made it.

    That is what the kernel holds for itself and cannot give back, and private pages that nobody maps: who gives back
    a part of a huge page keeps all of it until memory is short. Those that lie in swap too are not counted.
    """
    host = _meminfo_bytes()
    kernel = sum(host[name] for name in ("SUnreclaim", "VmallocUsed", "KernelStack"))
    private = sum(host[name] for name in ("Active(anon)", "Inactive(anon)", "Unevictable")) - host["Shmem"]
    return kernel + private - host["AnonPages"] - host["SwapCached"]


def _meminfo_bytes() -> dict[str, int]:
    with open("/proc/meminfo", encoding="utf-8") as meminfo:
        return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in meminfo}


def available_memory_bytes() -> int:
    """Return the free memory of the host in bytes; in a container what its limit leaves, if that is less."""
    return min([_meminfo_bytes()["MemAvailable"], *_left_by_groups()])


def free_tasks(mount: Path = Path("/sys/fs/cgroup")) -> float:
    """Return how many more processes and threads this user may have; infinity where nothing says so.

    Those that it has count for limits of control groups, not for its own: to count them takes long.
    """
    own, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    left = [math.inf if own == resource.RLIM_INFINITY else own]
    for group in _groups(mount):
        limit, used = read_text(f"{group}/pids.max").strip(), read_text(f"{group}/pids.current").strip()
        left += [int(limit) - int(used)] if limit.isdigit() and used.isdigit() else []
    return min(left)


def _groups(mount: Path) -> Iterator[Path]:
    """Return this process's control group (version 2) and those above it."""
    folder = mount / read_text("/proc/self/cgroup").partition("::")[2].split("\n")[0].lstrip("/")
    for group in (folder, *folder.parents):
        if group == mount.parent:
            return
        yield group


def _left_by_groups(mount: Path = Path("/sys/fs/cgroup")) -> Iterator[int]:
    """Return the bytes that the limit of each control group (version 2) above this process leaves.

    What the kernel takes back when memory is short is free, as in MemAvailable: files that were read, and names.
    """
    for group in _groups(mount):
        limit, used = read_text(f"{group}/memory.max").strip(), read_text(f"{group}/memory.current").strip()
        if limit.isdigit() and used.isdigit():
            taken_back = sum(map(int, _TAKEN_BACK.findall(read_text(f"{group}/memory.stat"))))
            yield max(0, int(limit) - int(used) + taken_back)


def default_memory_bytes() -> int:
    """Half of the host's memory, by what is available now."""
    return max(available_memory_bytes() // 2, 2 << 30)
