"""Layer ``system_calls``: seccomp, https://docs.kernel.org/userspace-api/seccomp_filter.html.

Numbers of system calls are those of the kernel's tables for x86_64 and aarch64.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
import struct

from harness.process.sandbox import libc

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
    # pages in pipes that are in nobody's account, a huge one for each place in a pipe
    "vmsplice": (278, 75), "splice": (275, 76), "tee": (276, 77),
    # open files in messages, which are in no account. Sockets that hold themselves so the kernel frees when it likes.
    "sendmsg": (46, 211), "sendmmsg": (307, 269),
    # what is written beside any file that its user owns, which Landlock does not see, and memory in no table
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16), "removexattrat": (466, 466),
    "fchown": (93, 55), "fchownat": (260, 54), "memfd_secret": (447, 447),
    # what goes off or is done while its process is stopped
    "timerfd_create": (283, 85), "timerfd_settime": (286, 86), "timer_create": (222, 107), "timer_settime": (223, 110),
    "setitimer": (38, 103), "io_setup": (206, 0), "io_submit": (209, 2), "mq_notify": (244, 184),
    "inotify_init1": (294, 26), "fanotify_mark": (301, 263), "sync_file_range": (277, 84),
    # what the kernel keeps for a process in no account, and frees by itself, which stopping no process prevents: rules
    # of Landlock, 4 MB and 18 ms each on Linux 6.18, and filters
    "landlock_create_ruleset": (444, 444), "landlock_add_rule": (445, 445), "landlock_restrict_self": (446, 446),
    "seccomp": (317, 277),
}
_REFUSED_ON_X86 = {"alarm": 37, "inotify_init": 253, "chown": 92, "lchown": 94}  # which aarch64 does not have
# Answered with success and not done: a caller goes on, in the process group that is killed as a whole.
# Landlock does not see changes of rights and times of any file that its user owns; linkers and copies make some.
_PRETENDED = {
    "setsid": (112, 157), "setpgid": (109, 154), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "utimensat": (280, 88),
}  # fmt: skip
_PRETENDED_ON_X86 = {"chmod": 90, "utime": 132, "utimes": 235, "futimesat": 261}
# By process: only 0, which is oneself, or one's own number as the argument with this index.
_OWN_ONLY = {
    "sched_setaffinity": (203, 122, 0), "sched_setscheduler": (144, 119, 0), "sched_setparam": (142, 118, 0),
    "sched_setattr": (314, 274, 0), "prlimit64": (302, 261, 0),
}  # fmt: skip
# Of one process, not of all of a group or a user: numbers, and PRIO_PROCESS and IOPRIO_WHO_PROCESS.
_PRIORITIES = {"setpriority": ((141, 140), 0), "ioprio_set": ((251, 30), 1)}
# With the place of the signal among its arguments: nobody may send SIGCONT, which undoes a SIGSTOP that comes first.
_SIGNALS = {"kill": ((62, 129), 1), "tgkill": ((234, 131), 2)}
_QUEUED = {"tkill": ((200, 130), 1), "rt_sigqueueinfo": ((129, 138), 1), "rt_tgsigqueueinfo": ((297, 240), 2),
           "pidfd_send_signal": ((424, 424), 1)}  # fmt: skip
_SOCKET, _SETSOCKOPT, _PRCTL = (41, 198), (54, 208), (157, 167)
_PR_SET_MEMORY_MERGE = 67
_PR_FUTEX_HASH = 78  # tables of a gigabyte in no account, which the kernel frees five seconds later
_SO_SNDBUF, _SO_SNDBUFFORCE = 7, 32  # what lies in buffers is seen by their number only
_SO_FILTERS = [26, 50, 51, 52]  # SO_ATTACH_FILTER, SO_ATTACH_BPF, and for SO_REUSEPORT
_MADVISE, _MADV_MERGEABLE = (28, 233), 12  # a thread of the kernel would look for equal pages
# Signals for what others do to its files. That they are asked for by O_ASYNC does no harm without an owner.
_FCNTL, _OWNERS = (72, 25), [8, 10, 15, 1024, 1026]  # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY
_IOCTL, _IOCTL_OWNERS = (16, 29), [0x8901, 0x8902]  # FIOSETOWN, SIOCSPGRP
# Clocks of the CPU time of processes and threads have negative numbers. Those of others tell what the judge does.
_CLOCKS = {"clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115)}
_NEGATIVE = 0x80000000
_AF_UNIX = 1
# A child of the caller's parent would not be counted. A child in other namespaces has rights there that it lacks here.
# What clone3 is asked no filter can read, and glibc does without.
_CLONE, _CLONE3, _CLONE_PARENT = (56, 220), (435, 435), 0x8000
# A thread with open files of its own: /proc shows those of the first thread.
_CLONE_THREAD, _CLONE_FILES = 0x10000, 0x400
_CLOSE_RANGE, _UNSHARES = (436, 436), [2, 6]  # CLOSE_RANGE_UNSHARE, also with CLOSE_RANGE_CLOEXEC
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
_REFUSE, _PRETEND = _ERRNO | _EPERM, _ERRNO | 0
_MODE_FILTER = 2

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant


def refuse_system_calls(signals: bool) -> str:
    """Refuse the calls above from now on; with ``signals`` those to other processes too."""
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise OSError(f"no table of system calls for {machine}")
    column, architecture = _ARCHITECTURES[machine]
    program = _filter(column, architecture, os.getpid(), signals)
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HxxxxxxQ", len(program), ctypes.addressof(buffer))
    libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
    libc.prctl(libc.PR_SET_SECCOMP, _MODE_FILTER, header)
    return "seccomp"


def _filter(column: int, architecture: int, pid: int, signals: bool) -> list[Instruction]:
    """Return the program; one call falls through to the next test unless it is named."""
    tests = [
        _when(_CLONE[column], _clone_test()),
        _when(_PRCTL[column], _prctl_test()),
        _always(_CLONE3[column], _ERRNO | _ENOSYS),
        *(_always(numbers[column], _REFUSE) for numbers in _REFUSED.values()),
        *(_always(numbers[column], _PRETEND) for numbers in _PRETENDED.values()),
        *(_by_argument(one[column], one[2], [0, pid], _ALLOW, _REFUSE) for one in _OWN_ONLY.values()),
        *(_when(numbers[column], _priority_test(which, pid)) for numbers, which in _PRIORITIES.values()),
        *(_always(number, _REFUSE) for number in (_REFUSED_ON_X86.values() if column == 0 else ())),
        *(_always(number, _PRETEND) for number in (_PRETENDED_ON_X86.values() if column == 0 else ())),
        _by_argument(_FCNTL[column], 1, _OWNERS, _REFUSE, _ALLOW),
        _by_argument(_IOCTL[column], 1, _IOCTL_OWNERS, _REFUSE, _ALLOW),
        _by_argument(_CLOSE_RANGE[column], 2, _UNSHARES, _REFUSE, _ALLOW),
        _by_argument(_SOCKET[column], 0, [_AF_UNIX], _ALLOW, _REFUSE),
        _by_argument(_MADVISE[column], 2, [_MADV_MERGEABLE], _REFUSE, _ALLOW),
        _when(_SETSOCKOPT[column], _option_test()),
        *(_when(numbers[column], _clock_test()) for numbers in _CLOCKS.values()),
    ]
    for numbers, place in _SIGNALS.values():
        tests.append(_when(numbers[column], _signal_test(place, [0, pid, -pid] if signals else None)))
    for numbers, place in _QUEUED.values():
        number = numbers[column]
        tests.append(_always(number, _REFUSE) if signals else _when(number, _signal_test(place, None)))
    begin = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_JUMP_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _REFUSE),
    ]
    return [*begin, *itertools.chain.from_iterable(tests), (_RETURN, 0, 0, _ALLOW)]


def _always(number: int, verdict: int) -> list[Instruction]:
    return [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, verdict)]


def _when(number: int, test: list[Instruction]) -> list[Instruction]:
    """``test`` ends in a verdict whichever way it goes."""
    return [(_JUMP_EQUAL, 0, len(test), number), *test]


def _by_argument(number: int, index: int, values: list[int], among: int, otherwise: int) -> list[Instruction]:
    """The lower half of an argument: ``among`` if it is one of ``values``."""
    test = [(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * index)]
    for position, value in enumerate(values):
        test.append((_JUMP_EQUAL, len(values) - position, 0, value & 0xFFFFFFFF))
    return _when(number, [*test, (_RETURN, 0, 0, otherwise), (_RETURN, 0, 0, among)])


def _priority_test(which: int, pid: int) -> list[Instruction]:
    """Allow one's own: ``which`` as the first argument, and 0 or one's own number as the second."""
    return [
        (_LOAD, 0, 0, _ARGUMENTS_AT),
        (_JUMP_EQUAL, 0, 3, which),
        (_LOAD, 0, 0, _ARGUMENTS_AT + 8),
        (_JUMP_EQUAL, 2, 0, 0),
        (_JUMP_EQUAL, 1, 0, pid),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _clock_test() -> list[Instruction]:
    return [
        (_LOAD, 0, 0, _ARGUMENTS_AT),
        (_JUMP_AT_LEAST, 0, 1, _NEGATIVE),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _clone_test() -> list[Instruction]:
    return [
        (_LOAD, 0, 0, _ARGUMENTS_AT),
        (_JUMP_IF_SET, 4, 0, _CLONE_PARENT | _CLONE_NAMESPACES),
        (_JUMP_IF_SET, 0, 1, _CLONE_THREAD),
        (_JUMP_IF_SET, 0, 2, _CLONE_FILES),
        (_AND, 0, 0, _EXIT_SIGNAL),
        (_JUMP_EQUAL, 0, 1, _SIGCONT),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _prctl_test() -> list[Instruction]:
    return [
        (_LOAD, 0, 0, _ARGUMENTS_AT),
        (_JUMP_EQUAL, 6, 0, libc.PR_SET_CHILD_SUBREAPER),
        (_JUMP_EQUAL, 5, 0, libc.PR_SET_SECCOMP),
        (_JUMP_EQUAL, 4, 0, _PR_FUTEX_HASH),
        (_JUMP_EQUAL, 3, 0, _PR_SET_MEMORY_MERGE),
        (_JUMP_EQUAL, 0, 3, libc.PR_SET_PDEATHSIG),
        (_LOAD, 0, 0, _ARGUMENTS_AT + 8),
        (_JUMP_EQUAL, 0, 1, _SIGCONT),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _option_test() -> list[Instruction]:
    test = [(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * 2)]
    for option in _SO_FILTERS:
        test += [(_JUMP_EQUAL, 0, 1, option), (_RETURN, 0, 0, _REFUSE)]
    for option in (_SO_SNDBUF, _SO_SNDBUFFORCE):
        test += [(_JUMP_EQUAL, 0, 1, option), (_RETURN, 0, 0, _PRETEND)]
    return [*test, (_RETURN, 0, 0, _ALLOW)]


def _signal_test(place: int, targets: list[int] | None) -> list[Instruction]:
    """Refuse SIGCONT, and where ``targets`` are given every process but these."""
    test = [
        (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * place),
        (_JUMP_EQUAL, 0, 1, _SIGCONT),
        (_RETURN, 0, 0, _REFUSE),
    ]
    if targets:
        test.append((_LOAD, 0, 0, _ARGUMENTS_AT))
        for position, target in enumerate(targets):
            test.append((_JUMP_EQUAL, len(targets) - position, 0, target & 0xFFFFFFFF))
        test.append((_RETURN, 0, 0, _REFUSE))
    return [*test, (_RETURN, 0, 0, _ALLOW)]
