"""The sandbox of a worker: next to nothing of the machine is within reach.

Each of ``LAYERS`` is one facility of Linux, used through libc. A worker enters
those that this machine allows, in their order, before it sees any candidate
code; what it starts inherits them, and there is no way back. A layer that is
available and fails all the same ends the worker: never more freedom than the
record says.

Nothing here limits memory, time, processes and disk: ``harness.process.worker_limits`` watches
those from outside, and what it kills it kills as a whole, because a confined
process cannot leave its process group.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# In the order in which they are entered. Take one out to find out which of them something does not bear.
LAYERS = ("limits", "network", "privileges", "files", "system_calls")

_MAX_OPEN_FILES = 4096

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 1, 4, 22, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000


@dataclass(frozen=True)
class Confinement:
    """Access of one worker besides the system's files: paths that it reads or writes, and devices.

    Of the folder of a Python file that it may read it can list the names.
    """

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    devices: bool = False  # whether it may open GPUs
    max_file_bytes: int = 8 << 30


def enter(layers: list[str], confinement: Confinement) -> None:
    """Confine this process, which must have one thread only. Raises OSError where a layer cannot be entered."""
    _prctl(_PR_SET_DUMPABLE, 1)  # its own /proc entries are its own; the server that it is forked from hides its own
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # what it starts stays below it, where it is counted
    for name in LAYERS:
        if name in layers:
            _ENTER[name](confinement)
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # a change of privileges clears it


def available() -> dict[str, str]:
    """Layer -> how it is done here, for each that this machine allows; tried in processes of their own."""
    _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    return {name: how for name in LAYERS if (how := _in_a_child(_ENTER[name])) is not None}


def missing(found: dict[str, str]) -> list[str]:
    """Return what the absent layers would have kept a candidate from, in words."""
    return [_PURPOSE[name] for name in LAYERS if name not in found]


def protect() -> None:
    """Keep other processes of this user from reading or tracing this one."""
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


_PURPOSE = {
    "limits": "core dumps, files of any size",
    "network": "connections to other processes and hosts",
    "privileges": "programs that run as another user, the rights of root",
    "files": "reading and writing outside of its own folder",
    "system_calls": "tracing, signals to other processes, leaving its process group",
}


def _in_a_child(layer: Callable[[Confinement], str]) -> str | None:
    """Return what ``layer`` says of itself in a fork of this process; None where it fails."""
    receiver, sender = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(receiver)
            os.write(sender, json.dumps(layer(Confinement())).encode())
        finally:
            os._exit(0)
    os.close(sender)
    with open(receiver, "rb") as answer:
        said = answer.read()
    os.waitpid(pid, 0)
    return json.loads(said) if said else None


# -- limits ------------------------------------------------------------------------------------------------------------


def _limits(confinement: Confinement) -> str:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(_MAX_OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (confinement.max_file_bytes,) * 2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    return "rlimits"


# -- network: a namespace of its own, with no interface that is up -----------------------------------------------------


def _network(_: Confinement) -> str:
    if _libc.unshare(_CLONE_NEWNET) == 0:
        return "own namespace"
    user, group = os.getuid(), os.getgid()
    _call("unshare", _CLONE_NEWUSER | _CLONE_NEWNET)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", name).write_text(text)
    return "own namespace, in a user namespace"


# -- privileges: none, and no way to any -------------------------------------------------------------------------------

_CAPABILITY_VERSION = 0x20080522
_CAP_DAC_READ_SEARCH, _LAST_CAPABILITY = 2, 63


def _privileges(_: Confinement) -> str:
    """Drop all rights of root but reading what others own, which ``files`` confines."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    for capability in range(_LAST_CAPABILITY + 1):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    held = (ctypes.c_uint32 * 6)()
    _call("capget", header, held)
    kept = held[0] & 1 << _CAP_DAC_READ_SEARCH
    _call("capset", header, (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0))
    return "no new privileges, no capabilities"


# -- files: Landlock, https://docs.kernel.org/userspace-api/landlock.html ----------------------------------------------

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_ALL_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1}  # by version; 3 and later know truncation as well
_ALL_RIGHTS_LATER = (1 << 15) - 1
_TCP = 0b11  # bind, connect
_SCOPES = 0b11  # abstract sockets, signals

_READABLE = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/sys", "/nix")
_READABLE_IN_ETC = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "nsswitch.conf", "passwd", "group", "hosts",
    "host.conf", "localtime", "timezone", "locale.alias", "os-release", "debian_version", "mime.types", "nvidia",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_GPU_DEVICES = ("nvidia*", "dri")  # below /dev
# Environment variables that name files or folders for compilers and loaders.
_PATH_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUTLASS_PATH", "CPATH", "CC", "CXX")


def _files(confinement: Confinement) -> str:
    version = landlock_version()
    rights = _ALL_RIGHTS.get(version, _ALL_RIGHTS_LATER)
    attributes = struct.pack("=QQQ", rights, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _syscall(_CREATE_RULESET, attributes, size, 0)
    try:
        for path in (*system_paths(), *confinement.readable):
            _allow(ruleset, path, rights & (_EXECUTE | _READ_FILE | _READ_DIR))
        for folder in {os.path.dirname(path) for path in confinement.readable if path.endswith(".py")}:
            _allow(ruleset, folder, rights & _READ_DIR)  # a module is imported by looking for its name
        for path in proc_paths():
            _allow(ruleset, path, rights & (_READ_FILE | _READ_DIR))
        for path in (*_DEVICES, *(gpu_devices() if confinement.devices else ())):
            _allow(ruleset, path, rights & (_READ_FILE | _WRITE_FILE | _READ_DIR | _TRUNCATE))
        # CUDA names its threads in their comm files, and does not start where it cannot
        _allow(ruleset, "/proc/self/task", rights & (_READ_FILE | _WRITE_FILE | _READ_DIR | _TRUNCATE))
        for path in confinement.writable:
            _allow(ruleset, path, rights)
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        _syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return f"Landlock {version}"


def landlock_version() -> int:
    """Raises OSError where the kernel has no Landlock, or it is switched off."""
    return _syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)


def system_paths() -> list[str]:
    """Return paths that any worker reads: the system, this Python, the harness, compilers, loaded libraries."""
    harness = Path(__file__).resolve().parents[1]
    paths = {*_READABLE, *(f"/etc/{name}" for name in _READABLE_IN_ETC)}
    paths |= {str(harness), sys.prefix, sys.base_prefix, sys.exec_prefix}
    # the checkout itself is not: runs and their results may lie there
    paths |= {path for path in sys.path if path and not harness.is_relative_to(Path(path).resolve())}
    for name in _PATH_VARIABLES:
        paths |= {path for path in os.environ.get(name, "").split(os.pathsep) if path.startswith("/") and path != "/"}
    with open("/proc/self/maps") as maps:
        files = {line.split(None, 5)[5].strip() for line in maps if "/" in line}
    paths |= {os.path.dirname(file) for file in files if file.endswith(".so") or ".so." in file}
    return sorted(path for path in paths if os.path.exists(path))


def proc_paths() -> list[str]:
    """Return what /proc says of the machine and of this process: command lines of others are none of its business."""
    return [f"/proc/{name}" for name in os.listdir("/proc") if not name.isdigit()]


def gpu_devices() -> list[Path]:
    """Return the device files of GPUs on this machine."""
    return [path for pattern in _GPU_DEVICES for path in Path("/dev").glob(pattern)]


def _allow(ruleset: int, path: str | Path, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what cannot be opened needs no permission
    try:
        if not os.path.isdir(f"/proc/self/fd/{descriptor}"):
            rights &= _OF_A_FILE
        _syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)


# -- system calls: seccomp, https://docs.kernel.org/userspace-api/seccomp_filter.html ----------------------------------

# name -> its numbers on x86_64 and on aarch64
_REFUSED = {
    # other processes' memory and descriptors
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_getfd": (438, 438),
    "kcmp": (312, 272), "process_madvise": (440, 440), "migrate_pages": (256, 238), "move_pages": (279, 239),
    # the view of the machine
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
    "setns": (308, 268), "fsopen": (430, 430), "fsmount": (432, 432), "move_mount": (429, 429),
    "open_tree": (428, 428), "mount_setattr": (442, 442), "open_by_handle_at": (304, 265), "acct": (163, 89),
    "quotactl": (179, 60), "fanotify_init": (300, 262),
    # the kernel
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    # the clock and the name of the host
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162),
    # memory that outlives its process
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "shmget": (29, 194), "semget": (64, 190),
    "msgget": (68, 186), "mq_open": (240, 180),
    # what goes off or is done while its process is stopped
    "timerfd_create": (283, 85), "timerfd_settime": (286, 86), "timer_create": (222, 107), "timer_settime": (223, 110),
    "setitimer": (38, 103), "io_setup": (206, 0), "io_submit": (209, 2), "mq_notify": (244, 184),
    "inotify_init1": (294, 26), "fanotify_mark": (301, 263),
}
_REFUSED_ON_X86 = {"alarm": 37, "inotify_init": 253}  # which aarch64 does not have  # fmt: skip
# Done for nothing, and told that it was done: whoever asks goes on, in the group that is killed as a whole.
_PRETENDED = {"setsid": (112, 157), "setpgid": (109, 154)}
# By process: only 0, which is oneself, or one's own number as the argument with this index.
_OWN_ONLY = {
    "sched_setaffinity": (203, 122, 0), "sched_setscheduler": (144, 119, 0), "sched_setparam": (142, 118, 0),
    "sched_setattr": (314, 274, 0), "prlimit64": (302, 261, 0), "setpriority": (141, 140, 1),
    "ioprio_set": (251, 30, 1),
}  # fmt: skip
# With the place of the signal among its arguments: nobody may send SIGCONT, which undoes a SIGSTOP that comes first.
_SIGNALS = {"kill": ((62, 129), 1), "tgkill": ((234, 131), 2)}
_QUEUED = {"tkill": ((200, 130), 1), "rt_sigqueueinfo": ((129, 138), 1), "rt_tgsigqueueinfo": ((297, 240), 2),
           "pidfd_send_signal": ((424, 424), 1)}  # fmt: skip
_SOCKET, _SETSOCKOPT, _PRCTL = (41, 198), (54, 208), (157, 167)
_SO_SNDBUF, _SO_SNDBUFFORCE = 7, 32  # what lies in buffers is seen by their number only
# Signals for what others do to its files. That they are asked for by O_ASYNC does no harm without an owner.
_FCNTL, _OWNERS = (72, 25), [8, 10, 15, 1024, 1026]  # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY
_IOCTL, _IOCTL_OWNERS = (16, 29), [0x8901, 0x8902]  # FIOSETOWN, SIOCSPGRP
_AF_UNIX = 1
# A child of one's parent would be nobody's to count, and one in other namespaces has rights there that it lacks here.
# What clone3 is asked no filter can read, and glibc does without.
_CLONE, _CLONE3, _CLONE_PARENT = (56, 220), (435, 435), 0x8000
_CLONE_NAMESPACES = 0x7E020000  # mounts, control groups, name of the host, System V, users, processes, network
# The kernel may not continue a suspended process at another's end: as that one's exit signal, or as its parent's.
_SIGCONT, _EXIT_SIGNAL = 18, 0xFF

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column above, AUDIT_ARCH_*
# BPF_LD|W|ABS, BPF_JMP|JEQ|K, JGE, JSET, BPF_RET|K
# BPF_ALU|AND|K
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_IF_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_AND = 0x54
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16  # in struct seccomp_data
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS, _X32 = 1, 38, 0x40000000
_MODE_FILTER = 2


def _system_calls(_: Confinement) -> str:
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise OSError(f"no table of system calls for {machine}")
    column, architecture = _ARCHITECTURES[machine]
    program = _filter(column, architecture, os.getpid(), signals=_landlock_scopes_missing())
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HxxxxxxQ", len(program), ctypes.addressof(buffer))
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_SET_SECCOMP, _MODE_FILTER, header)
    return "seccomp"


def _landlock_scopes_missing() -> bool:
    """Return whether signals to other processes are left to this layer."""
    try:
        return "files" not in LAYERS or landlock_version() < 6
    except OSError:
        return True


def _filter(column: int, architecture: int, pid: int, signals: bool) -> list[tuple[int, int, int, int]]:
    """A BPF program: (code, jump if true, jump if false, constant) of each instruction."""
    refuse, pretend, allow = _ERRNO | _EPERM, _ERRNO | 0, _ALLOW
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, refuse),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_JUMP_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, refuse),
    ]

    def always(number: int, verdict: int) -> None:
        program.extend([(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, verdict)])

    def by_argument(number: int, index: int, values: list[int], among: int, otherwise: int) -> None:
        """The lower half of an argument: ``among`` if it is one of ``values``."""
        test = [(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * index)]
        for position, value in enumerate(values):
            test.append((_JUMP_EQUAL, len(values) - position, 0, value & 0xFFFFFFFF))
        test += [(_RETURN, 0, 0, otherwise), (_RETURN, 0, 0, among)]
        program.extend([(_JUMP_EQUAL, 0, len(test), number), *test])

    def when(number: int, test: list[tuple[int, int, int, int]]) -> None:
        """``test`` ends in a verdict whichever way it goes."""
        program.extend([(_JUMP_EQUAL, 0, len(test), number), *test])

    when(_CLONE[column], [
        (_LOAD, 0, 0, _ARGUMENTS_AT),
        (_JUMP_IF_SET, 2, 0, _CLONE_PARENT | _CLONE_NAMESPACES),
        (_AND, 0, 0, _EXIT_SIGNAL),
        (_JUMP_EQUAL, 0, 1, _SIGCONT),
        (_RETURN, 0, 0, refuse),
        (_RETURN, 0, 0, allow),
    ])  # fmt: skip
    when(_PRCTL[column], [
        (_LOAD, 0, 0, _ARGUMENTS_AT),
        (_JUMP_EQUAL, 3, 0, _PR_SET_CHILD_SUBREAPER),
        (_JUMP_EQUAL, 0, 3, _PR_SET_PDEATHSIG),
        (_LOAD, 0, 0, _ARGUMENTS_AT + 8),
        (_JUMP_EQUAL, 0, 1, _SIGCONT),
        (_RETURN, 0, 0, refuse),
        (_RETURN, 0, 0, allow),
    ])  # fmt: skip
    always(_CLONE3[column], _ERRNO | _ENOSYS)
    for numbers in _REFUSED.values():
        always(numbers[column], refuse)
    for numbers in _PRETENDED.values():
        always(numbers[column], pretend)
    for *numbers, index in _OWN_ONLY.values():
        by_argument(numbers[column], index, [0, pid], allow, refuse)
    if column == 0:
        for number in _REFUSED_ON_X86.values():
            always(number, refuse)
    by_argument(_FCNTL[column], 1, _OWNERS, refuse, allow)
    by_argument(_IOCTL[column], 1, _IOCTL_OWNERS, refuse, allow)
    by_argument(_SOCKET[column], 0, [_AF_UNIX], allow, refuse)
    by_argument(_SETSOCKOPT[column], 2, [_SO_SNDBUF, _SO_SNDBUFFORCE], pretend, allow)
    for numbers, place in _SIGNALS.values():
        when(numbers[column], _signal_test(place, [0, pid, -pid] if signals else None, refuse))
    for numbers, place in _QUEUED.values():
        if signals:
            always(numbers[column], refuse)
        else:
            when(numbers[column], _signal_test(place, None, refuse))
    program.append((_RETURN, 0, 0, allow))
    return program


def _signal_test(place: int, targets: list[int] | None, refuse: int) -> list[tuple[int, int, int, int]]:
    """Refuse SIGCONT, and where ``targets`` are given every process but these."""
    test = [
        (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * place),
        (_JUMP_EQUAL, 0, 1, _SIGCONT),
        (_RETURN, 0, 0, refuse),
    ]
    if targets:
        test.append((_LOAD, 0, 0, _ARGUMENTS_AT))
        for position, target in enumerate(targets):
            test.append((_JUMP_EQUAL, len(targets) - position, 0, target & 0xFFFFFFFF))
        test.append((_RETURN, 0, 0, refuse))
    return [*test, (_RETURN, 0, 0, _ALLOW)]


_ENTER: dict[str, Callable[[Confinement], str]] = {
    "limits": _limits,
    "network": _network,
    "privileges": _privileges,
    "files": _files,
    "system_calls": _system_calls,
}


# -- libc --------------------------------------------------------------------------------------------------------------


def _prctl(option: int, value: int, pointer: bytes | int = 0) -> None:
    _call("prctl", option, ctypes.c_ulong(value), pointer, 0, 0)


def _syscall(number: int, *arguments: object) -> int:
    return _call("syscall", ctypes.c_long(number), *arguments)


def _call(function: str, *arguments: object) -> int:
    result = getattr(_libc, function)(*arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{function}: {os.strerror(code)}")
    return result
