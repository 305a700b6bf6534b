"""The tables of system calls agree with the kernel's headers, and each call is named once."""

import errno
import re
from collections import Counter
from pathlib import Path

import pytest

from harness.process.sandbox import seccomp, system_calls

X86, GENERIC = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), Path("/usr/include/asm-generic/unistd.h")
PLAIN = (system_calls.ALLOWED, system_calls.PRETENDED, system_calls.ABSENT, system_calls.UNKNOWN, system_calls.CLOCKS)
WITH_ARGUMENTS = (
    system_calls.OWN_ONLY, system_calls.PRIORITIES, system_calls.SIGNALS, system_calls.QUEUED, system_calls.ONLY_WITH,
    system_calls.FEW,
)  # fmt: skip
ALONE = {"clone": system_calls.CLONE, "prctl": system_calls.PRCTL, "ioctl": system_calls.IOCTL}
NUMBERS = [
    *(item for table in PLAIN for item in table.items()),
    *((name, entry[0]) for table in WITH_ARGUMENTS for name, entry in table.items()),
    *ALONE.items(),
]


def header(path, prefix):
    if not path.exists():
        pytest.skip(f"this machine has no {path}")
    return {name: int(number) for name, number in re.findall(rf"#define {prefix}(\w+)\s+(\d+)", path.read_text())}


def test_each_call_is_named_once():
    assert [name for name, count in Counter(name for name, _ in NUMBERS).items() if count > 1] == []


def test_numbers_are_those_of_x86_64():
    known = header(X86, "__NR_")
    newer = {name for name, (number, _) in NUMBERS if number is not None and number > max(known.values())}
    assert {name: number for name, (number, _) in NUMBERS if number != known.get(name) and name not in newer} == {}


def test_numbers_are_those_of_aarch64():
    known = header(GENERIC, "__NR_") | header(GENERIC, "__NR3264_")
    newer = {name for name, (_, number) in NUMBERS if number is not None and number > max(known.values())}
    known["newfstatat"] = known["fstatat"]
    differing = {name: number for name, (_, number) in NUMBERS if number != known.get(name) and name not in newer}
    assert differing == {}


@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize("signals", [False, True])
def test_a_call_in_no_table_is_refused(column, signals):
    """The kernel's way through the program, for calls whose arguments are all 0."""
    program = seccomp._filter(column, 1, 7, signals)
    named = {numbers[column] for _, numbers in NUMBERS}
    for number in range(700):
        verdict = run(program, {seccomp._NUMBER_AT: number, seccomp._ARCHITECTURE_AT: 1})
        if number not in named:
            assert verdict in (seccomp._REFUSE, seccomp._UNKNOWN), number
    for table, expected in ((system_calls.ALLOWED, seccomp._ALLOW), (system_calls.PRETENDED, seccomp._PRETEND)):
        for name, numbers in table.items():
            if numbers[column] is not None:
                loaded = {seccomp._NUMBER_AT: numbers[column], seccomp._ARCHITECTURE_AT: 1}
                assert run(program, loaded) == expected, name
    assert run(program, {seccomp._NUMBER_AT: 0, seccomp._ARCHITECTURE_AT: 2}) == seccomp._REFUSE
    assert run(program, {seccomp._NUMBER_AT: 0x40000000, seccomp._ARCHITECTURE_AT: 1}) == seccomp._REFUSE


@pytest.mark.parametrize(
    "request_number, allowed",
    [
        (0xC020462A, True),  # a device of NVIDIA's
        (0x30000001, True), (37, True),  # UVM_INITIALIZE, UVM_REGISTER_GPU
        (0xC0106D00, True), (0xC0406400, True),  # nvidia-modeset, DRM
        (0x5401, True), (0x541B, True),  # TCGETS, FIONREAD
        (0x5412, False), (0x541C, False), (0x8901, False),  # TIOCSTI, TIOCLINUX, FIOSETOWN
        (0x40049409, False), (0x40086602, False), (0x40806685, False),  # FICLONE, FS_IOC_SETFLAGS, ENABLE_VERITY
        (0x5000940E, False),  # BTRFS_IOC_SUBVOL_CREATE
    ],
)  # fmt: skip
def test_requests_are_those_of_drivers(request_number, allowed):
    loaded = {seccomp._NUMBER_AT: system_calls.IOCTL[0], seccomp._ARCHITECTURE_AT: 1}
    verdict = run(seccomp._filter(0, 1, 7, False), loaded | {seccomp._ARGUMENTS_AT + 8: request_number})
    assert (verdict == seccomp._ALLOW) is allowed


def test_sockets_are_unix_sockets():
    for name in ("socket", "socketpair"):
        for family in range(50):
            loaded = {seccomp._NUMBER_AT: system_calls.ONLY_WITH[name][0][0], seccomp._ARCHITECTURE_AT: 1}
            verdict = run(seccomp._filter(0, 1, 7, False), loaded | {seccomp._ARGUMENTS_AT: family})
            assert (verdict == seccomp._ALLOW) is (family == 1)


@pytest.mark.parametrize("name", system_calls.FEW)
def test_who_waits_does_so_for_few_descriptors(name):
    (numbers, index), most = system_calls.FEW[name], system_calls.MOST_WAITED_FOR
    for column, number in enumerate(numbers):
        for count in () if number is None else (0, most, most + 1, 0xFFFFFFFF):
            loaded = {seccomp._NUMBER_AT: number, seccomp._ARCHITECTURE_AT: 1, seccomp._ARGUMENTS_AT + 8 * index: count}
            expected = seccomp._ALLOW if count <= most else seccomp._ERRNO | errno.EINVAL
            assert run(seccomp._filter(column, 1, 7, False), loaded) == expected


@pytest.mark.parametrize("truncation", [False, True])
def test_truncation_is_left_to_landlock_where_that_knows_of_it(truncation):
    """With another call than these a file is cut off only where it is open for writing."""
    flags = {0: True, 0o1: True, 0o1001: True, 0o1002: True, 0o1000: not truncation, 0o1003: not truncation}
    for name, (numbers, at) in system_calls.TRUNCATING.items():
        for column, number in enumerate(numbers):
            program = seccomp._filter(column, 1, 7, True, truncation)
            for value, allowed in flags.items() if number is not None else ():
                loaded = {seccomp._NUMBER_AT: number, seccomp._ARCHITECTURE_AT: 1, seccomp._ARGUMENTS_AT + 8: value}
                loaded[seccomp._ARGUMENTS_AT + 8 * (at or 0)] = value
                expected = not truncation if at is None else allowed
                assert (run(program, loaded) == seccomp._ALLOW) is expected, (name, oct(value))


def run(program, loaded):
    """Interpret the instructions that the layer uses."""
    at, value = 0, 0
    while True:
        code, then, otherwise, constant = program[at]
        at += 1
        if code == seccomp._RETURN:
            return constant
        if code == seccomp._LOAD:
            value = loaded.get(constant, 0)
        elif code == seccomp._AND:
            value &= constant
        else:
            jumps = {
                seccomp._JUMP_EQUAL: value == constant,
                seccomp._JUMP_AT_LEAST: value >= constant,
                seccomp._JUMP_IF_SET: bool(value & constant),
            }
            at += then if jumps[code] else otherwise
