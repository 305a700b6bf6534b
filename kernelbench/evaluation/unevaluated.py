"""Note in a run what it did not evaluate, and which results of it do not count any more."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from harness.problem.module import ProblemFile, ProblemId
from harness.result import Result
from harness.solution.discover import Solution, SolutionError, name_shown, read_solution, readable
from harness.solution.includes import reached
from kernelbench.evaluation.chosen import Chosen
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


def withdraw_of_other_problems(run: Run, files: Iterable[ProblemFile]) -> None:
    """Let results count no more whose problem, one of ``files``, has changed. Raises WriteError."""
    for of in {(r.problem, r.solution["name"]): None for r in run.of_other_problems(files)}:
        _withdraw(run, *of)


def withdraw_rewritten(run: Run, chosen: Chosen) -> None:
    """Let results count no more whose file is there, and neither as it was nor a solution of their problem.

    Raises WriteError.
    """
    present = {(str(s.problem), s.name) for s in chosen.solutions}
    by_name = {s.name: s for s in chosen.solutions}
    for of, result in {(r.problem, r.solution["name"]): r for r in run.latest()}.items():
        known = by_name.get(of[1])
        if of not in present and (known or not chosen.alone) and not _is_as_it_was(result, chosen, known):
            _withdraw(run, *of)


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


def _is_as_it_was(result: Result, chosen: Chosen, known: Solution | None) -> bool:
    """Return whether a result's file, ``known`` or not, and its own files are what they were, or it is not there.

    A link on the way is not followed: what lies there was no file of the directory.
    """
    top = Path(os.path.realpath(chosen.root))
    try:
        if not known:
            path = top / name_shown(result.solution["name"])
            real, mode = reached(path, (top,))
            if real != path:
                return False
            if not mode:
                return True
            known = read_solution(path, top, ProblemId.parse(result.problem), settings=False)
            known = replace(known, neighbours=chosen.solutions[0].neighbours)  # all in a directory have the same
        return (known.sha256, known.helpers) == content_of(result)
    except (SolutionError, OSError, ValueError):  # ValueError: a path of a log of others
        return False


def _withdraw(run: Run, problem: str, solution: str) -> None:
    record = {"kind": WITHDRAWN, "problem": problem, "solution": solution, "after": len(run.results)}
    append(run.path, run.unevaluated, record)


def keep_unmapped(run: Run, found: Sequence[tuple[Path, str]]) -> None:
    """Add the files without a problem; nothing where they are those of the last listing. Raises WriteError."""
    files = [{"solution": readable(path), "reason": reason} for path, reason in found]
    if files != unmapped(run.unevaluated):
        append(run.path, run.unevaluated, {"kind": UNMAPPED, "files": files})
