"""Layer ``files``: Landlock, https://docs.kernel.org/userspace-api/landlock.html."""

from __future__ import annotations

import contextlib
import os
import stat
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.process.sandbox import libc
from harness.process.sandbox.import_path import import_path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_ALL_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1}  # by version; 3 and later know truncation as well
_ALL_RIGHTS_LATER = (1 << 15) - 1
_TCP = 0b11  # bind, connect
_SCOPES = 0b11  # abstract sockets, signals

_READABLE = (
    "/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/nix",
    "/sys/devices/system", "/sys/kernel/mm/transparent_hugepage", "/sys/kernel/mm/hugepages",
)  # fmt: skip
# Their names alone. Files there may be the superuser's, who a candidate may run as: some make a device when they are
# read. Not what the kernel says of processes, below kernel/debug, kernel/tracing and fs/cgroup.
_LISTED = ("/sys/devices", "/sys/class", "/sys/bus", "/sys/module", "/sys/dev", "/sys/kernel/mm", "/proc/sys")
_OF_ITSELF = ("/proc/self", "/proc/thread-self")
_THROUGH_ALL_PAGES = ("smaps", "smaps_rollup", "numa_maps", "pagemap")
_SETTINGS = ("/proc/sys/kernel", "/proc/sys/kernel/random", "/proc/sys/vm")
_OF_OTHERS = ("locks", "keys", "key-users", "sched_debug", "timer_list")  # below /proc
_READABLE_IN_ETC = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "nsswitch.conf", "passwd", "group", "hosts",
    "host.conf", "localtime", "timezone", "locale.alias", "os-release", "debian_version", "mime.types", "nvidia",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_GPU_DEVICES = ("nvidia*", "dri")  # below /dev
_GPU_CLASSES = ("0x03", "0x0680", "0x12")  # of the PCI bus: displays, bridges between GPUs, accelerators
# Environment variables that name files or folders for compilers and loaders.
_PATH_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUTLASS_PATH", "CPATH", "CC", "CXX")


@dataclass(frozen=True)
class Confinement:
    """Access of one worker besides the system's files: paths that it reads or writes, and devices.

    Paths to read are real ones: what a candidate has made a link of meanwhile leads elsewhere, and is not read.
    Of the folder of a Python file that it may read it can list the names.
    """

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    private: tuple[str, ...] = ()  # folders that are not read although they lie in one of the system
    devices: bool = False  # whether it may open GPUs
    max_file_bytes: int = 8 << 30


def restrict(confinement: Confinement) -> str:
    """Restrict this process to the system's files and those of ``confinement``; return the version in force."""
    version = version_in_kernel()
    rights = _ALL_RIGHTS.get(version, _ALL_RIGHTS_LATER)
    attributes = struct.pack("=QQQ", rights, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = libc.syscall(_CREATE_RULESET, attributes, size, 0)
    try:
        for path in system_paths(confinement.private):
            _allow(ruleset, path, rights & (_EXECUTE | _READ_FILE | _READ_DIR))
        for path in _LISTED:
            _allow(ruleset, path, rights & _READ_DIR)
        for path in confinement.readable:
            _allow(ruleset, path, rights & (_EXECUTE | _READ_FILE | _READ_DIR), in_place=True)
        for folder in {os.path.dirname(path) for path in confinement.readable if path.endswith(".py")}:
            _allow(ruleset, folder, rights & _READ_DIR, in_place=True)  # a module is imported by looking for its name
        itself = _OF_ITSELF if confinement.devices else _quick_files()  # what CUDA reads there is not known in full
        for path in (*itself, *proc_paths(), *(gpu_descriptions() if confinement.devices else ())):
            _allow(ruleset, path, rights & (_READ_FILE | _READ_DIR))
        for path in (*_DEVICES, *(gpu_devices() if confinement.devices else ())):
            _allow(ruleset, path, rights & (_READ_FILE | _WRITE_FILE | _READ_DIR | _TRUNCATE))
        # CUDA names its threads in their comm files, and does not start where it cannot. Nobody else has to, and
        # oom_score_adj lies beside them: no rule can name files of threads that do not exist yet.
        task_rights = _READ_DIR | (_READ_FILE | _WRITE_FILE | _TRUNCATE if confinement.devices else 0)
        _allow(ruleset, "/proc/self/task", rights & task_rights)
        for path in confinement.writable:
            _allow(ruleset, path, rights)
        libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
        libc.syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return f"Landlock {version}"


def version_in_kernel() -> int:
    """Raises OSError where the kernel has no Landlock, or it is switched off."""
    return libc.syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)


def system_paths(private: Iterable[str] = ()) -> list[str]:
    """Return paths that any worker reads: the system, this Python, the harness, compilers, loaded libraries.

    A folder that a ``private`` one lies in is not opened as a whole: what lies beside the way to that one is.
    """
    with open("/proc/self/maps", encoding="utf-8") as maps:
        files = {line.split(None, 5)[5].strip() for line in maps if "/" in line}
    loaded = {os.path.dirname(file) for file in files if file.endswith(".so") or ".so." in file}
    return _around(_named() | loaded, private)


def named_paths(private: Iterable[str] = ()) -> list[str]:
    """Return those of ``system_paths`` that do not depend on what this process has loaded."""
    return _around(_named(), private)


def _named() -> set[str]:
    harness = Path(__file__).resolve().parents[2]
    paths = {*_own_paths(), *(f"/etc/{name}" for name in _READABLE_IN_ETC)}
    # the checkout itself is not: runs and their results may lie there
    paths |= {path for path in import_path() if not harness.is_relative_to(Path(path).resolve())}
    for name in _PATH_VARIABLES:
        paths |= {path for path in os.environ.get(name, "").split(os.pathsep) if path.startswith("/") and path != "/"}
    return paths


def _own_paths() -> set[str]:
    """Return the folders of the system, of Python and of the harness, which are read whoever works there."""
    return {*_READABLE, str(Path(__file__).resolve().parents[2]), sys.prefix, sys.base_prefix, sys.exec_prefix}


def _around(paths: Iterable[str], private: Iterable[str]) -> list[str]:
    places = {Path(os.path.realpath(place)) for place in private} - {Path(os.path.realpath(p)) for p in _own_paths()}
    found, todo = [], list(paths)
    while todo:
        real = Path(os.path.realpath(path := todo.pop()))
        if not any(place.is_relative_to(real) for place in places):
            found += [path] if real.exists() else []
        elif real not in places:
            with contextlib.suppress(PermissionError):  # a folder that this user only passes through
                todo += [entry.path for entry in os.scandir(real) if not entry.is_symlink()]
    return sorted(found)


def proc_paths() -> list[str]:
    """Return what /proc tells any user of the machine; of other processes nobody may know anything."""
    found = []
    for folder in ("/proc", *_SETTINGS):  # files alone: those of the superuser lie beside and below them
        found += [f"{folder}/{name}" for name in os.listdir(folder) if os.path.isfile(f"{folder}/{name}")]
    return [path for path in found if os.path.basename(path) not in _OF_OTHERS and _is_for_all(path)]


def _quick_files() -> list[str]:
    """Return what /proc tells of this process and its first thread, but for what looks through all that is mapped.

    Such a look takes half a second where some gigabytes are mapped, and no signal ends it: nobody could end, or stop,
    a thousand threads that take it.
    """
    found = []
    for folder in _OF_ITSELF:
        places = (f"{folder}/{name}" for name in os.listdir(folder) if name not in (*_THROUGH_ALL_PAGES, "task"))
        found += [place for place in places if not os.path.islink(place)]  # which lead to any file
    return found


def _is_for_all(path: str) -> bool:
    try:
        return bool(os.stat(path).st_mode & stat.S_IROTH)
    except OSError:  # gone meanwhile
        return False


def gpu_descriptions() -> list[str]:
    """Return what /sys and /proc tell of GPUs and their drivers."""
    found = ["/proc/driver", *(str(path) for path in Path("/sys/module").glob("nvidia*"))]
    for device in Path("/sys/bus/pci/devices").glob("*"):
        with contextlib.suppress(OSError):
            found += [os.path.realpath(device)] if (device / "class").read_text().startswith(_GPU_CLASSES) else []
    return found


def gpu_devices() -> list[Path]:
    """Return the device files of GPUs on this machine."""
    return [path for pattern in _GPU_DEVICES for path in Path("/dev").glob(pattern)]


def _allow(ruleset: int, path: str | Path, rights: int, in_place: bool = False) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what cannot be opened needs no permission
    try:
        if in_place and os.readlink(f"/proc/self/fd/{descriptor}") != str(path):
            return
        if not os.path.isdir(f"/proc/self/fd/{descriptor}"):
            rights &= _OF_A_FILE
        libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)
