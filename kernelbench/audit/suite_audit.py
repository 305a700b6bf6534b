"""Audit many problems side by side."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

import torch

from harness import device as devices
from harness.faults import MachineFault, is_of_machine
from harness.problem.module import ProblemError, ProblemFile, load_problem
from harness.solution.includes import digest_of
from kernelbench import working_directory
from kernelbench.audit.examination import audit
from kernelbench.audit.record import Audit, AuditFile

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
    return [pair for pair in chosen if known.get(*pair) is None]


def on_gpu(device: str | None) -> bool:
    """Return whether the device of this name is a GPU. Raises DeviceError where it cannot be used."""
    return devices.select(device).type == "cuda"


def audit_all(chosen: list[tuple[ProblemFile, str]], device: str | None, jobs: int) -> Iterator[Audit]:
    """Records as they become known, in any order; a problem that does not run has one that says why.

    Raises MachineFault after all others, which names those on which the machine failed: they have no record.
    """
    at_once = jobs * _PROBLEMS_A_PROCESS
    faults = []
    for begin in range(0, len(chosen), at_once):
        lost = []
        for pair, found in _apart(chosen[begin : begin + at_once], device, jobs):
            if isinstance(found, Audit):
                yield found
            elif found is None:
                lost.append(pair)
            else:
                faults.append(found)
        for pair in lost:  # one at a time: an end of one process ends those beside it
            for _, found in _apart([pair], device, 1):
                if isinstance(found, Audit):
                    yield found
                else:
                    faults.append(found or _fault(pair, "its process ended"))
    if faults:
        raise MachineFault("the machine failed, and these were not audited:\n" + "\n".join(faults))


def _apart(pairs: list[tuple], device: str | None, jobs: int) -> Iterator[tuple[tuple, Audit | str | None]]:
    """Pairs with what ``_audit_one`` returns in processes of its own; None where one of them ended."""
    others = multiprocessing.active_children()
    threads = max(1, torch.get_num_threads() // jobs)
    with working_directory.left():  # where its processes start, and one that looks after them
        executor = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _start, (threads,))
        futures = {}
        for pair in pairs:
            with contextlib.suppress(BrokenProcessPool):
                futures[executor.submit(_audit_one, pair, device)] = pair
    try:
        yield from ((pair, None) for pair in pairs if pair not in futures.values())
        for future in as_completed(futures):
            ended = isinstance(future.exception(), BrokenProcessPool)
            yield futures[future], None if ended else future.result()
    finally:
        for process in multiprocessing.active_children():
            if process not in others:
                process.kill()
        executor.shutdown(cancel_futures=True)


def _start(threads: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    torch.set_num_threads(threads)


def _audit_one(pair: tuple[ProblemFile, str], device: str | None) -> Audit | str:
    """A record; where the machine failed, words that say so."""
    file, workload = pair
    sha256 = digest_of(file.path)  # before it is imported: a text that replaces it has no record
    try:
        problem = load_problem(file)
        sha256 = problem.sha256
        return audit(problem.workload(workload), devices.select(device))
    except (Exception, SystemExit) as error:  # whatever a reference does
        reason = f"{type(error).__name__}: {error}"
        lost = isinstance(error, devices.DeviceError)  # it could be used when the command began
        if lost or is_of_machine(error) or (error.__cause__ and is_of_machine(error.__cause__)):
            return _fault(pair, reason)
        return Audit(str(file.id), file.name, sha256, workload, {}, error=reason)


def _fault(pair: tuple[ProblemFile, str], reason: str) -> str:
    file, workload = pair
    return f"{file.id} {file.name}, {workload}: {reason}"
