"""Holdings of processes in the kernel, from /proc: descriptors, sockets, pipes, files without a name, mappings.

Everything is counted up to a limit, and then no further: what a candidate makes others read must not take them long.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from harness.process.procfs import read_text, tasks

_PIPE_BYTES = 2 * os.sysconf("SC_PAGESIZE")  # the least that a pipe may hold; more is a user's, who has 64 MB: pipe(7)
_MAPPING_BYTES = 256  # of kernel memory: a vm_area_struct and its share of a maple tree, in Linux 6.18
_LONG_LINE = 512  # bytes of a line in /proc/PID/maps; a longer one, of a path of up to 4096, counts several times
_CHUNK = 1 << 16  # bytes of a read
_LINES_BETWEEN = 256  # a few reads of /proc/PID/maps, each of which may wait for a lock of that process
_DELETED = "(deleted)"
# Names of mappings in /proc/PID/maps; "/anon_hugepage" is that of private ones too.
_FILES_IN_MEMORY = ("/memfd:", "/dev/zero", "/SYSV", "/dev/shm/", "/anon_hugepage")

Sizes = dict[tuple[int, int], tuple[bool, int]]  # device and inode -> whether it lies in memory, and its bytes


@dataclass
class OpenFiles:
    """Open files of a family; with more ``descriptors`` than were to be counted nothing else is known."""

    descriptors: int = 0
    hiding: int = 0  # processes that show nobody what they have open
    moving: bool = False  # whether one was closed meanwhile, perhaps to go on by another number
    sockets: set[str] = field(default_factory=set)
    kept_sockets: int = 0  # in its namespace, with those that are open only for a call that waits for them
    pipes: set[str] = field(default_factory=set)
    nameless: Sizes = field(default_factory=dict)  # files without a name

    @property
    def buffer_bytes(self) -> int:
        """Bytes that the buffers of its sockets and pipes may hold."""
        return max(len(self.sockets), self.kept_sockets) * _socket_bytes() + len(self.pipes) * _PIPE_BYTES


@dataclass
class Mappings:
    """Mappings of a family; with a larger ``count`` than was to be counted nothing else is known."""

    count: int = 0
    nameless: Sizes = field(default_factory=dict)  # files without a name, as far as they are mapped

    @property
    def kernel_bytes(self) -> int:
        return self.count * _MAPPING_BYTES


def open_files(processes: list[int], most: int, between: Callable[[], None] = lambda: None) -> OpenFiles:
    """Return what these have open; stops at ``most`` descriptors. Forks that share a file each count it.

    ``between`` is called now and then while it reads.
    """
    found, names = OpenFiles(), []
    for process in processes:
        between()
        try:
            names += _descriptors(process)
        except PermissionError:
            found.hiding += 1
        except OSError:  # it is gone
            continue
        found.descriptors = len(names)
        if found.descriptors > most:
            return found
    for folder, name in (*names, *(place for process in processes for place in _kept(process))):
        try:
            _look_at(f"{folder}/{name}", found)
        except FileNotFoundError:
            found.moving = True
        except OSError:
            continue
    return found


def _look_at(descriptor: str, found: OpenFiles) -> None:
    """Add a descriptor to what was ``found``. Raises OSError, also for one that was closed."""
    link = _link(descriptor)
    if link.startswith("socket:"):
        found.sockets.add(link)
    elif link.startswith("pipe:"):
        found.pipes.add(link)
    elif link.endswith(_DELETED):
        file = os.stat(descriptor)
        if (stat.S_ISREG(file.st_mode) or stat.S_ISDIR(file.st_mode)) and not file.st_nlink:
            found.nameless[file.st_dev, file.st_ino] = link.startswith("/memfd:"), file.st_blocks * 512


def network_of(process: int) -> str:
    """Return what the system calls the network that a process is in; '' where it does not say."""
    for thread in _threads(process):
        with contextlib.suppress(OSError):
            return os.readlink(f"{thread}/ns/net")
    return ""


def sockets_in(process: int) -> int:
    """Return how many sockets there are in the network that a process is in."""
    for thread in _threads(process):
        if found := re.match(r"sockets: used (\d+)", read_text(f"{thread}/net/sockstat")):
            return int(found[1])
    return 0


def _threads(process: int) -> Iterator[str]:
    """Yield the folder of each in /proc, the first at once: of one that has ended the others show what they share."""
    yield f"/proc/{process}/task/{process}"
    yield from (f"/proc/{process}/task/{task}" for task in tasks(process))


def _kept(process: int) -> list[tuple[str, str]]:
    """Return folder and name of its program and its working directory: without a name they stay as what is open."""
    for thread in _threads(process):
        with contextlib.suppress(OSError):
            _link(f"{thread}/cwd")
            return [(thread, "exe"), (thread, "cwd")]
    return []


def _link(descriptor: str) -> str:
    """Return what a descriptor leads to; of a path that is longer than the system takes the end, as if deleted."""
    try:
        return os.readlink(descriptor)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return _DELETED


def _descriptors(process: int) -> list[tuple[str, str]]:
    """Return folder and name of each; a process whose first thread has ended shows them in those of the others."""
    folder = f"/proc/{process}/fd"
    if names := os.listdir(folder):
        return [(folder, name) for name in names]
    for thread in _threads(process):
        with contextlib.suppress(OSError):
            if names := os.listdir(f"{thread}/fd"):
                return [(f"{thread}/fd", name) for name in names]
    return []


def mappings(processes: list[int], most: int, between: Callable[[], None] = lambda: None) -> Mappings:
    """Return the mappings of these; stops at ``most``. ``between`` is called now and then while it reads.

    A file counts as far as it is mapped, where this user may not look behind a mapping (CAP_CHECKPOINT_RESTORE).
    """
    found = Mappings()
    for process in processes:
        between()
        for line in _lines_of_maps(process):
            found.count += 1 + len(line) // _LONG_LINE
            if found.count > most:
                return found
            if found.count % _LINES_BETWEEN == 0:
                between()
            fields = line.decode(errors="replace").split(None, 5) if line.endswith(_DELETED.encode()) else ()
            if len(fields) == 6:  # a private mapping keeps its file too
                file, in_memory, size = _mapped_file(process, fields)
                found.nameless[file] = in_memory, max(size, found.nameless.get(file, (in_memory, 0))[1])
    return found


def _mapped_file(process: int, fields: list[str]) -> tuple[tuple[int, int], bool, int]:
    begin, end = (int(address, 16) for address in fields[0].split("-"))
    major, minor = (int(part, 16) for part in fields[3].split(":"))
    size = int(fields[2], 16) + end - begin
    with contextlib.suppress(OSError):
        size = os.stat(f"/proc/{process}/map_files/{begin:x}-{end:x}").st_blocks * 512
    return (os.makedev(major, minor), int(fields[4])), fields[5].startswith(_FILES_IN_MEMORY), size


def _lines_of_maps(process: int) -> Iterator[bytes]:
    """Lines as they are read: who stops early has not read the rest. The first thread may have ended."""
    places = (f"/proc/{process}/maps", *(f"/proc/{process}/task/{task}/maps" for task in tasks(process)))
    for place in places:
        shown = False
        for line in _lines(place):
            shown = True
            yield line
        if shown:
            return


def _lines(path: str) -> Iterator[bytes]:
    with contextlib.suppress(OSError), open(path, "rb", _CHUNK) as file:
        for line in file:
            yield line.rstrip(b"\n")


def _socket_bytes() -> int:
    """The most that one socket holds for others to read, whose size nobody here can change: its limit and a message."""
    return 2 * int(read_text("/proc/sys/net/core/wmem_default").strip() or 1 << 18)
