"""The candidate's failure that a worker reports, or that its death is."""

from __future__ import annotations

import signal
from typing import Any

from harness.faults import MachineFault
from harness.process.procfs import cpu_times_ns, wait_until_gone
from harness.result import CandidateFailure, Status

NOT_BEGUN = 77  # the exit code of a worker that failed before it read anything of its judge's
OUTPUT_BYTES = 64 << 10  # that are kept of what a worker prints
_MESSAGE_CHARACTERS = 20_000
_DEATH_LINES = 10
_DYING_S = 300.0  # chosen; a million pieces of 4 KiB took over a minute on a disk that is told of each (2026-11-26)
_WORKS = 0.05  # of the time; on that disk it was 0.2, and beside one that hangs it is none
_ANSWER_STATUSES = {s.value: s for s in Status if s is not Status.OK}


def death(code: int, output: str) -> Exception:
    """Return what the end of a worker means, by its exit code and what it printed.

    One that could not begin is the machine's fault. A candidate may say so, and is tried again then: it fails where the
    machine works with the reference in its place.
    """
    if code == NOT_BEGUN:
        return MachineFault(f"a worker cannot be started or confined: {(output.strip().splitlines() or ['?'])[-1]}")
    return CandidateFailure(Status.CRASHED, describe_death(code, output), output)


def describe_death(code: int, output: str) -> str:
    """Say how a worker ended, by its exit code (negative for a signal), with the end of what it printed."""
    if code < 0:
        try:
            how = f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            how = f"was killed by signal {-code}"
    else:
        how = f"exited with code {code}"
    lines = output.strip().splitlines()
    fatal = next((i for i, line in enumerate(lines) if line.startswith("Fatal Python error")), None)
    if fatal is None:
        told = lines[-_DEATH_LINES:]
    else:  # faulthandler's stack, innermost call first
        told = [line for line in lines[fatal:] if line.strip() and "thread 0x" not in line][:_DEATH_LINES]
    return "\n".join([f"the process {how} before it answered", *told])


def endless(family: list[int], before_ns: dict[int, int], waited_s: float, patience_s: float = _DYING_S) -> Exception:
    """Return what it means that a worker was not gone so many seconds after SIGKILL.

    ``before_ns`` is the CPU time of its ``family`` before. Where the kernel works at its end, what the candidate had it
    hold is to blame, such as a hundred thousand locks of a file, or a million pieces of one that is freed; its end is
    waited for, ``patience_s`` at most, because it slows whoever is timed meanwhile. Where the kernel does nothing, a
    driver or a disk hangs.
    """
    ran_s = sum(now - before_ns.get(process, now) for process, now in cpu_times_ns(family).items()) / 1e9
    if ran_s > _WORKS * waited_s:
        wait_until_gone(family, patience_s)
        return CandidateFailure(Status.CRASHED, f"it does not end within {waited_s:g} s of SIGKILL: it holds too much")
    return MachineFault(f"a worker does not end within {waited_s:g} s of SIGKILL: a driver or a disk hangs")


def reported_failure(error: Any, output: str) -> CandidateFailure:
    """Return the failure that a worker reports about its candidate, which may write into it what it likes."""
    if not isinstance(error, dict):
        error = {}
    status = _ANSWER_STATUSES.get(str(error.get("status")), Status.RUNTIME_ERROR)
    message = str(error.get("message", "the worker gave no reason"))[:_MESSAGE_CHARACTERS]
    return CandidateFailure(status, message, str(error.get("log", ""))[-OUTPUT_BYTES:] or output)
