"""Layer ``system_calls``: seccomp, https://docs.kernel.org/userspace-api/seccomp_filter.html.

Calls that ``system_calls`` lists are let through, all others are refused.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
import signal
import struct

from harness.process.sandbox import libc, system_calls
from harness.process.sandbox.system_calls import Numbers

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column above, AUDIT_ARCH_*
# BPF_LD|W|ABS, BPF_JMP|JEQ|K, JGE, JSET, BPF_RET|K
# BPF_ALU|AND|K
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_IF_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_AND = 0x54
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16  # in struct seccomp_data
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_ENOENT, _EPERM, _EINVAL, _ENOTTY, _ENOSYS, _X32 = 2, 1, 22, 25, 38, 0x40000000
_REFUSE, _PRETEND, _ABSENT, _UNKNOWN = _ERRNO | _EPERM, _ERRNO | 0, _ERRNO | _ENOENT, _ERRNO | _ENOSYS
_RECENT = 424  # calls since Linux 5.1, which have one number everywhere; programs do without where a kernel lacks them
_NEGATIVE = 0x80000000
# A child of the caller's parent would not be counted. A child in other namespaces has rights there that it lacks here.
_CLONE_PARENT, _CLONE_NAMESPACES = 0x8000, 0x7E020000
# A thread with open files or a working directory of its own: /proc shows those of the first thread.
_CLONE_THREAD, _CLONE_FILES, _CLONE_FS = 0x10000, 0x400, 0x200
# The kernel may not continue a suspended process at another's end: as that one's exit signal, or as its parent's.
_SIGCONT, _EXIT_SIGNAL = 18, 0xFF
_REQUEST_TYPE = 0xFF00
_MODE_FILTER = 2

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant


def refuse_system_calls(signals: bool, truncation: bool) -> str:
    """Refuse all calls but those listed from now on; with ``signals`` also signals to other processes.

    With ``truncation`` also what cuts a file off that is not open for writing.
    """
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise OSError(f"no table of system calls for {machine}")
    column, architecture = _ARCHITECTURES[machine]
    program = _filter(column, architecture, os.getpid(), signals, truncation)
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HxxxxxxQ", len(program), ctypes.addressof(buffer))
    libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
    libc.prctl(libc.PR_SET_SECCOMP, _MODE_FILTER, header)
    return "seccomp"


def _filter(column: int, architecture: int, pid: int, signals: bool, truncation: bool = False) -> list[Instruction]:
    """Return the program; one call falls through to the next test unless it is named."""
    calls = system_calls
    first = [(call, _truncation_test(at)) for call, at in calls.TRUNCATING.values()] if truncation else []
    verdicts = {_ALLOW: calls.ALLOWED, _PRETEND: calls.PRETENDED, _ABSENT: calls.ABSENT, _UNKNOWN: calls.UNKNOWN}
    tests = [_when(call, column, _verdict(verdict)) for verdict, of in verdicts.items() for call in of.values()]
    named: list[tuple[Numbers, list[Instruction]]] = [
        (calls.CLONE, _clone_test()),
        (calls.PRCTL, _prctl_test()),
        (calls.IOCTL, _ioctl_test()),
        *((call, _argument_test(at, [0, pid], _ALLOW, _REFUSE)) for call, at in calls.OWN_ONLY.values()),
        *((call, _only_with_test(name, at, of)) for name, (call, at, of) in calls.ONLY_WITH.items()),
        *((call, _few_test(at)) for call, at in calls.FEW.values()),
        *((call, _priority_test(which, pid)) for call, which in calls.PRIORITIES.values()),
        *((call, _clock_test()) for call in calls.CLOCKS.values()),
        *((call, _signal_test(at, [0, pid, -pid] if signals else None)) for call, at in calls.SIGNALS.values()),
        *((call, _verdict(_REFUSE) if signals else _signal_test(at, None)) for call, at in calls.QUEUED.values()),
    ]
    tests = [_when(call, column, test) for call, test in first] + tests
    tests += [_when(call, column, test) for call, test in named]
    begin = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_JUMP_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _REFUSE),
    ]
    end = [(_JUMP_AT_LEAST, 0, 1, _RECENT), (_RETURN, 0, 0, _UNKNOWN), (_RETURN, 0, 0, _REFUSE)]
    return [*begin, *itertools.chain.from_iterable(tests), *end]


def _when(call: Numbers, column: int, test: list[Instruction]) -> list[Instruction]:
    """``test`` ends in a verdict whichever way it goes."""
    number = call[column]
    return [] if number is None else [(_JUMP_EQUAL, 0, len(test), number), *test]


def _verdict(verdict: int) -> list[Instruction]:
    return [(_RETURN, 0, 0, verdict)]


def _only_with_test(name: str, index: int, values: list[int]) -> list[Instruction]:
    load, *rest = _argument_test(index, values, _ALLOW, _REFUSE)
    return [load, *_each(system_calls.PRETENDED_WITH.get(name, []), _PRETEND), *rest]


def _argument_test(index: int, values: list[int], among: int, otherwise: int) -> list[Instruction]:
    """The lower half of an argument: ``among`` if it is one of ``values``."""
    return [(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * index), *_among(values, among, otherwise)]


def _few_test(index: int) -> list[Instruction]:
    """Answer as the kernel does beyond a limit on descriptors."""
    return [
        (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * index),
        (_JUMP_AT_LEAST, 0, 1, system_calls.MOST_WAITED_FOR + 1),
        (_RETURN, 0, 0, _ERRNO | _EINVAL),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _each(values: list[int], verdict: int) -> list[Instruction]:
    """Return ``verdict`` if what was loaded is one of ``values``, and fall through if not."""
    return [step for value in values for step in ((_JUMP_EQUAL, 0, 1, value), (_RETURN, 0, 0, verdict))]


def _among(values: list[int], among: int, otherwise: int) -> list[Instruction]:
    """Return ``among`` if what was loaded is one of ``values``."""
    tests = [(_JUMP_EQUAL, len(values) - at, 0, value & 0xFFFFFFFF) for at, value in enumerate(values)]
    return [*tests, (_RETURN, 0, 0, otherwise), (_RETURN, 0, 0, among)]


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


def _truncation_test(place: int | None) -> list[Instruction]:
    """Refuse a call, or with the ``place`` of its flags what opens a file to cut it off and not to write."""
    if place is None:
        return _verdict(_UNKNOWN)
    return [
        (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * place),
        (_AND, 0, 0, os.O_TRUNC | os.O_ACCMODE),
        *_among([os.O_TRUNC, os.O_TRUNC | os.O_ACCMODE], _REFUSE, _ALLOW),
    ]


def _clone_test() -> list[Instruction]:
    return [
        (_LOAD, 0, 0, _ARGUMENTS_AT),
        (_JUMP_IF_SET, 5, 0, _CLONE_PARENT | _CLONE_NAMESPACES),
        (_JUMP_IF_SET, 0, 2, _CLONE_THREAD),
        (_JUMP_IF_SET, 0, 3, _CLONE_FILES),
        (_JUMP_IF_SET, 0, 2, _CLONE_FS),
        (_AND, 0, 0, _EXIT_SIGNAL),
        (_JUMP_EQUAL, 0, 1, _SIGCONT),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _prctl_test() -> list[Instruction]:
    return [
        (_LOAD, 0, 0, _ARGUMENTS_AT),
        (_JUMP_EQUAL, 0, 4, libc.PR_SET_PDEATHSIG),
        (_LOAD, 0, 0, _ARGUMENTS_AT + 8),
        (_JUMP_EQUAL, 1, 0, signal.SIGKILL),  # another, or none, and it would outlive the process that forked it
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
        *_among(system_calls.OPTIONS_OF_A_PROCESS, _ALLOW, _REFUSE),
    ]


def _ioctl_test() -> list[Instruction]:
    drivers = [number << 8 for number in system_calls.REQUESTS_OF_DRIVERS]
    return [
        (_LOAD, 0, 0, _ARGUMENTS_AT + 8),
        *_each(system_calls.REFUSED_REQUESTS, _REFUSE),
        (_AND, 0, 0, _REQUEST_TYPE),
        *_among(drivers, _ALLOW, _ERRNO | _ENOTTY),
    ]


def _signal_test(place: int, targets: list[int] | None) -> list[Instruction]:
    """Refuse SIGCONT, and where ``targets`` are given every process but these."""
    test = [
        (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * place),
        (_JUMP_EQUAL, 0, 1, _SIGCONT),
        (_RETURN, 0, 0, _REFUSE),
    ]
    if targets:
        return [*test, (_LOAD, 0, 0, _ARGUMENTS_AT), *_among(targets, _ALLOW, _REFUSE)]
    return [*test, (_RETURN, 0, 0, _ALLOW)]
