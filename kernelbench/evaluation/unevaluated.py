"""Note in a run what it did not evaluate, and which results of it do not count any more."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from harness.limits import MAX_SOURCE_BYTES
from harness.problem.module import ProblemFile
from harness.solution.discover import readable
from harness.solution.includes import read_bytes
from kernelbench.evaluation.executor import Skipped
from kernelbench.run import Run, content_of
from kernelbench.run_files.unevaluated import (
    DISMISSED,
    SKIPPED,
    UNMAPPED,
    WITHDRAWN,
    append,
    skipped,
    unmapped,
    withdrawn,
)


def keep_skipped(run: Run, item: Skipped, problem: ProblemFile) -> None:
    """Add one candidate. Raises WriteError."""
    solution = item.solution
    record = {
        "kind": SKIPPED,
        "problem": str(solution.problem),
        "problem_name": problem.name,
        "solution": solution.name,
        "sample": solution.sample,
        "workload": item.workload,  # None is all of them
        "reason": item.reason,
        "after": len(run.results),
    }
    append(run.path, run.unevaluated, record)


def withdraw_changed(run: Run, item: Skipped) -> None:
    """Let the results of a skipped candidate count no more if they are of another content. Raises WriteError."""
    solution, content = item.solution, (item.solution.sha256, item.solution.helpers)
    of = str(solution.problem), solution.name
    places = [place for place, r in enumerate(run.results) if (r.problem, r.solution["name"]) == of]
    if not places or places[-1] < withdrawn(run.unevaluated).get(of, 0):
        return
    if item.changed or content_of(run.results[places[-1]]) != content:
        _withdraw(run, *of)


def withdraw_moved(run: Run, by_name: dict[str, tuple[str, Path]]) -> None:
    """Let results count no more whose file was written since, and is now of another problem or of none.

    ``by_name`` has the problem, '' for none, and the path of all files. Raises WriteError.
    """
    for result in {(r.problem, r.solution["name"]): r for r in run.latest()}.values():
        name = result.solution["name"]
        problem, path = by_name.get(name, (result.problem, Path()))
        if problem != result.problem and _digest(path) != result.solution["sha256"]:
            _withdraw(run, result.problem, name)


def withdraw_of_other_workloads(run: Run, asked: Collection[tuple[str, str, str]]) -> None:
    """Let nothing count of a solution that has a result of a workload, or was skipped on one, that it has no more.

    ``asked`` has problem, name of the solution and workload of all that is to be evaluated. Raises WriteError.
    """
    selected = {case[:2] for case in asked}

    def others(found: Iterable[tuple[str, str, str | None]]) -> list[tuple[str, str]]:
        return list({case[:2]: None for case in found if case[:2] in selected and case[2] and case not in asked})

    for problem, name in others(skipped(run.unevaluated)):
        append(run.path, run.unevaluated, {"kind": DISMISSED, "problem": problem, "solution": name})
    for problem, name in others((r.problem, r.solution["name"], r.workload.get("name")) for r in run.latest()):
        _withdraw(run, problem, name)


def _digest(path: Path) -> str:
    """Return the digest of a source; '' for what is none, or is not there."""
    try:
        return hashlib.sha256(read_bytes(path, MAX_SOURCE_BYTES)).hexdigest()
    except OSError:
        return ""


def _withdraw(run: Run, problem: str, solution: str) -> None:
    record = {"kind": WITHDRAWN, "problem": problem, "solution": solution, "after": len(run.results)}
    append(run.path, run.unevaluated, record)


def keep_unmapped(run: Run, found: Sequence[tuple[Path, str]]) -> None:
    """Add the files without a problem; nothing where they are those of the last listing. Raises WriteError."""
    files = [{"solution": readable(path), "reason": reason} for path, reason in found]
    if files != unmapped(run.unevaluated):
        append(run.path, run.unevaluated, {"kind": UNMAPPED, "files": files})
