"""Audit many problems side by side."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from functools import partial

import torch

from harness import device as devices
from harness.faults import MachineFault, is_of_machine
from harness.problem.module import ProblemError, ProblemFile, load_problem
from harness.solution.includes import digest_of
from kernelbench import working_directory
from kernelbench.audit.examination import audit
from kernelbench.audit.record import METHOD, Audit, AuditFile

_PROBLEMS_A_PROCESS = 8  # about; then new ones, because allocators keep what networks took


def workloads(files: list[ProblemFile], name: str) -> list[tuple[ProblemFile, str]]:
    """Return what to audit: the workload ``name``, or ``all``; the only one of a problem that has no other.

    Raises ProblemError where none of the problems has it.
    """
    chosen = []
    for file in files:
        names = file.workload_names()
        if name == "all" or len(names) == 1:
            chosen += [(file, workload) for workload in names]
        elif name in names:
            chosen.append((file, name))
    if not chosen:
        known = sorted({workload for file in files for workload in file.workload_names()})
        raise ProblemError(f"no workload '{name}' among these problems; there are: {', '.join(known)}, or all of them")
    return chosen


def stale(chosen: list[tuple[ProblemFile, str]], known: AuditFile) -> list[tuple[ProblemFile, str]]:
    """Return those whose record is missing, or is of another text of the module or another method."""

    def fresh(file: ProblemFile, workload: str) -> bool:
        record = known.get(file, workload)
        return record is not None and record.method == METHOD

    return [pair for pair in chosen if not fresh(*pair)]


def on_gpu(device: str | None) -> bool:
    """Return whether the device of this name is a GPU."""
    return devices.select(device).type == "cuda"


def audit_all(chosen: list[tuple[ProblemFile, str]], device: str | None, jobs: int) -> Iterator[Audit]:
    """Records as they become known, in any order; a problem that does not run has one that says why.

    Raises MachineFault after all others, which names those on which the machine failed: they have no record.
    """
    context = multiprocessing.get_context("spawn")
    threads = max(1, torch.get_num_threads() // jobs)
    at_once = jobs * _PROBLEMS_A_PROCESS
    faults = []
    for begin in range(0, len(chosen), at_once):
        with working_directory.left():  # where its processes start
            pool = context.Pool(jobs, _start, (threads,))
        with pool:
            for found in pool.imap_unordered(partial(_audit_one, device=device), chosen[begin : begin + at_once]):
                if isinstance(found, Audit):
                    yield found
                else:
                    faults.append(found)
    if faults:
        raise MachineFault("the machine failed, and these were not audited:\n" + "\n".join(faults))


def _start(threads: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    torch.set_num_threads(threads)


def _audit_one(pair: tuple[ProblemFile, str], device: str | None) -> Audit | str:
    """A record; where the machine failed, words that say so."""
    file, workload = pair
    try:
        return audit(load_problem(file).workload(workload), devices.select(device))
    except (Exception, SystemExit) as error:  # whatever a reference does
        reason = f"{type(error).__name__}: {error}"
        if is_of_machine(error) or (error.__cause__ and is_of_machine(error.__cause__)):
            return f"{file.id} {file.name}, {workload}: {reason}"
        return Audit(str(file.id), file.name, digest_of(file.path), workload, {}, error=reason)
