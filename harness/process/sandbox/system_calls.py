"""System calls of a candidate: what is allowed, what is allowed by its arguments, and what only seems to be done.

Everything else is refused. What is in no list here has given a candidate memory that is in no account, work that the
kernel does after its process was stopped, or files of others: messages with open files, filters, rules of Landlock,
keys, timers, asynchronous I/O, namespaces, attributes of files. Watches of epoll are counted by user: who has them all
ends the programs of others. Numbers are those of the kernel's tables for x86_64 and aarch64; None where a call does not
exist.
"""

from __future__ import annotations

Numbers = tuple[int | None, int | None]  # on x86_64, on aarch64

ALLOWED: dict[str, Numbers] = {
    # files and folders, which Landlock confines
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67),
    "pwrite64": (18, 68), "preadv": (295, 69), "pwritev": (296, 70), "preadv2": (327, 286), "pwritev2": (328, 287),
    "open": (2, None), "openat": (257, 56), "openat2": (437, 437), "creat": (85, None), "close": (3, 57),
    "lseek": (8, 62), "stat": (4, None), "lstat": (6, None), "fstat": (5, 80), "newfstatat": (262, 79),
    "statx": (332, 291), "statfs": (137, 43), "fstatfs": (138, 44), "access": (21, None), "faccessat": (269, 48),
    "faccessat2": (439, 439), "readlink": (89, None), "readlinkat": (267, 78), "getdents": (78, None),
    "getdents64": (217, 61), "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50), "umask": (95, 166),
    "rename": (82, None), "renameat": (264, 38), "mkdir": (83, None), "mkdirat": (258, 34),
    "rmdir": (84, None), "link": (86, None), "linkat": (265, 37), "unlink": (87, None), "unlinkat": (263, 35),
    "symlink": (88, None), "symlinkat": (266, 36), "truncate": (76, 45),
    "ftruncate": (77, 46), "fallocate": (285, 47), "fadvise64": (221, 223), "fsync": (74, 82), "fdatasync": (75, 83),
    "copy_file_range": (326, 285), "memfd_create": (319, 279),
    # descriptors
    "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24), "pipe": (22, None), "pipe2": (293, 59),
    "eventfd": (284, None), "eventfd2": (290, 19),
    # Unix sockets that two processes of one candidate share
    "bind": (49, 200), "listen": (50, 201), "accept": (43, 202), "accept4": (288, 242), "getsockname": (51, 204),
    "getpeername": (52, 205), "getsockopt": (55, 209), "recvfrom": (45, 207), "recvmsg": (47, 212),
    "recvmmsg": (299, 243), "shutdown": (48, 210),
    # memory
    "mmap": (9, 222), "munmap": (11, 215), "mremap": (25, 216), "mprotect": (10, 226), "brk": (12, 214),
    "msync": (26, 227), "mlock": (149, 228), "mlock2": (325, 284), "munlock": (150, 229),
    "mlockall": (151, 230), "munlockall": (152, 231), "membarrier": (324, 283), "get_mempolicy": (239, 236),
    "pkey_mprotect": (329, 288), "pkey_alloc": (330, 289), "pkey_free": (331, 290),
    # processes and threads
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281), "exit": (60, 93),
    "exit_group": (231, 94), "wait4": (61, 260), "waitid": (247, 95), "pidfd_open": (434, 434),
    "set_tid_address": (218, 96), "set_robust_list": (273, 99), "get_robust_list": (274, 100), "rseq": (334, 293),
    "futex": (202, 98), "futex_waitv": (449, 449), "arch_prctl": (158, None), "sched_yield": (24, 124),
    "restart_syscall": (219, 128),
    # who and where one is, and what is left
    "getpid": (39, 172), "getppid": (110, 173), "gettid": (186, 178), "getpgid": (121, 155), "getpgrp": (111, None),
    "getsid": (124, 156), "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177),
    "getgroups": (115, 158), "getresuid": (118, 148), "getresgid": (120, 150), "capget": (125, 90),
    "getcpu": (309, 168), "uname": (63, 160), "sysinfo": (99, 179), "times": (100, 153), "getrusage": (98, 165),
    "getrlimit": (97, 163), "setrlimit": (160, 164), "getpriority": (140, 141), "ioprio_get": (252, 31),
    "sched_getaffinity": (204, 123), "sched_getscheduler": (145, 120), "sched_getparam": (143, 121),
    "sched_getattr": (315, 275), "sched_get_priority_max": (146, 125), "sched_get_priority_min": (147, 126),
    "sched_rr_get_interval": (148, 127), "getrandom": (318, 278),
    # time
    "time": (201, None), "gettimeofday": (96, 169), "nanosleep": (35, 101),
    # signals to oneself
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigpending": (127, 136),
    "rt_sigtimedwait": (128, 137), "rt_sigsuspend": (130, 133), "rt_sigreturn": (15, 139), "sigaltstack": (131, 132),
    "pause": (34, None),
}  # fmt: skip

# Answered with success and not done: a caller goes on.
PRETENDED: dict[str, Numbers] = {
    # it stays in the process group that is killed as a whole
    "setsid": (112, 157), "setpgid": (109, 154),
    # locks of whole files, of which the kernel looks at all for each: tens of thousands take minutes to close
    "flock": (73, 32),
    # rights and times of any file that its user owns, which Landlock does not see; linkers and copies set some
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "utime": (132, None),
    "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    # the cores that it runs on are those of its evaluation: beside it others evaluate on others
    "sched_setaffinity": (203, 122),
    # where memory lies, which the kernel keeps in no account
    "mbind": (237, 235), "set_mempolicy": (238, 237), "set_mempolicy_home_node": (450, 450),
    # filters of sockets, and buffers: what lies in buffers is seen by their number only
    "setsockopt": (54, 208),
}  # fmt: skip

# Answered as if nothing was there: connections that nobody accepts are in no account, and a socket with a name in a
# folder is another program's.
ABSENT: dict[str, Numbers] = {"connect": (42, 203)}

# Programs do without. No filter can read what clone3 is asked, and mincore looks through terabytes that are mapped and
# not there without a look at signals.
UNKNOWN: dict[str, Numbers] = {"clone3": (435, 435), "mincore": (27, 232)}

# Landlock knows of no truncation before its version 3 (Linux 6.2). With the place of the flags; None where there is
# none that a filter can read, and programs do without the call.
TRUNCATING: dict[str, tuple[Numbers, int | None]] = {
    "truncate": ((76, 45), None), "openat2": ((437, 437), None), "open": ((2, None), 1), "openat": ((257, 56), 2),
}  # fmt: skip

# By process: only 0, which is oneself, or one's own number as the argument with this index.
OWN_ONLY: dict[str, tuple[Numbers, int]] = {
    "sched_setscheduler": ((144, 119), 0), "sched_setparam": ((142, 118), 0),
    "sched_setattr": ((314, 274), 0), "prlimit64": ((302, 261), 0),
}  # fmt: skip
# Of one process, not of all of a group or a user: numbers, and PRIO_PROCESS and IOPRIO_WHO_PROCESS.
PRIORITIES: dict[str, tuple[Numbers, int]] = {"setpriority": ((141, 140), 0), "ioprio_set": ((251, 30), 1)}
# With the place of the signal among its arguments: nobody may send SIGCONT, which undoes a SIGSTOP that comes first.
SIGNALS: dict[str, tuple[Numbers, int]] = {"kill": ((62, 129), 1), "tgkill": ((234, 131), 2)}
# The same, and nobody needs to send these to others.
QUEUED: dict[str, tuple[Numbers, int]] = {
    "tkill": ((200, 130), 1), "rt_sigqueueinfo": ((129, 138), 1), "rt_tgsigqueueinfo": ((297, 240), 2),
    "pidfd_send_signal": ((424, 424), 1),
}  # fmt: skip
# Clocks of the CPU time of processes and threads have negative numbers. Those of others tell what the judge does.
CLOCKS: dict[str, Numbers] = {
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115),
}  # fmt: skip
CLONE: Numbers = (56, 220)
PRCTL: Numbers = (157, 167)
IOCTL: Numbers = (16, 29)

# Only with at most MOST_WAITED_FOR as the argument with this index. Files that a thread waits for stay where all their
# descriptors are closed meanwhile: that is in no account, and each thread could have as many as descriptors.
FEW: dict[str, tuple[Numbers, int]] = {
    "poll": ((7, None), 1), "ppoll": ((271, 73), 1), "select": ((23, None), 0), "pselect6": ((270, 72), 0),
}  # fmt: skip
MOST_WAITED_FOR = 128

# Only with one of these values as the argument with this index.
ONLY_WITH: dict[str, tuple[Numbers, int, list[int]]] = {
    "socket": ((41, 198), 0, [1]),  # AF_UNIX
    "socketpair": ((53, 199), 0, [1]),
    "sendto": ((44, 206), 5, [0]),  # no address: a message to a socket that has left stays in no account
    "renameat2": ((316, 276), 4, [0, 1, 2]),  # no RENAME_WHITEOUT, which makes a device
    "close_range": ((436, 436), 2, [0, 4]),  # not with CLOSE_RANGE_UNSHARE: /proc shows the files of the first thread
    # not: equal pages that a thread of the kernel looks for (MADV_MERGEABLE); huge pages made of all of a range, and
    # marks in all its tables, which signals do not end (MADV_COLLAPSE, MADV_GUARD_INSTALL); pages that are broken;
    # pages that the kernel counts elsewhere than it did (MADV_FREE, MADV_COLD, MADV_PAGEOUT)
    "madvise": ((28, 233), 2, [*range(5), *range(9, 12), *range(14, 20), *range(22, 25)]),
    # descriptors, flags, size of a pipe, seals; no owner of signals, lease or notice, which others would set off
    "fcntl": ((72, 25), 1, [0, 1, 2, 3, 4, 5, 9, 36, 1030, 1031, 1032, 1033, 1034]),
}  # fmt: skip
# Of these only pretended with one of these values. Locks of parts of a file (F_SETLK, F_SETLKW, F_OFD_SETLK,
# F_OFD_SETLKW) are in no account, and any number fits a file; what a candidate writes is its own.
PRETENDED_WITH: dict[str, list[int]] = {"fcntl": [6, 7, 37, 38]}

# PR_GET_PDEATHSIG, {GET,SET}_DUMPABLE, {SET,GET}_NAME, GET_SECCOMP, CAPBSET_READ, {SET,GET}_TIMERSLACK,
# {SET,GET}_NO_NEW_PRIVS, {SET,GET}_THP_DISABLE, SVE_GET_VL, GET_SPECULATION_CTRL. Others made tables of a gigabyte
# in no account (FUTEX_HASH), merge pages, or keep others from a core.
OPTIONS_OF_A_PROCESS = [2, 3, 4, 15, 16, 21, 23, 29, 30, 38, 39, 41, 42, 51, 52]
# The second byte of a request, which is the driver's: NVIDIA's unified memory, its devices, terminals and pipes, its
# displays, DRM. Others change files that Landlock lets a candidate read: attributes, verity, subvolumes.
REQUESTS_OF_DRIVERS = [0x00, ord("F"), ord("T"), ord("m"), ord("d")]
# FIOASYNC has no effect without an owner. TIOCSTI and TIOCLINUX type into the terminal of `kb`.
REFUSED_REQUESTS = [0x5412, 0x541C]
