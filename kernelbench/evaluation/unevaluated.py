"""Candidates that a run did not evaluate, kept beside its log with the reason.

``unevaluated.jsonl`` is only ever appended to, and has two kinds of lines:

- ``skipped``: one candidate that could not be evaluated, through no fault of its own. ``after`` is the
  number of results in the log at that time: a result of it behind that place takes the line's place.
- ``unmapped``: all files of the solution directory that name no problem, or that of another. The last such line counts.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.json_text import parse_json
from harness.problem.module import ProblemFile
from harness.record.fields import PROBLEM
from harness.record.shape import LIST, OBJECT, TEXT, count, or_none, shape
from harness.solution.discover import readable
from kernelbench.evaluation.executor import Skipped
from kernelbench.run import Run, RunError, append_line, whole_lines

UNEVALUATED = "unevaluated.jsonl"
_SKIPPED, _UNMAPPED = "skipped", "unmapped"
_OF_SKIPPED = {
    "kind": TEXT, "problem": PROBLEM, "problem_name": TEXT, "solution": TEXT, "sample": count(),
    "workload": or_none(TEXT), "reason": TEXT, "after": count(),
}  # fmt: skip
_OF_FILES = ("solution", "reason")
_SHAPES = {
    _SKIPPED: shape({f"{name}!": of for name, of in _OF_SKIPPED.items()}),
    _UNMAPPED: shape({"files!": LIST, "files[]": OBJECT, **{f"files[].{name}!": TEXT for name in _OF_FILES}}),
}


def keep_skipped(run: Run, item: Skipped, problem: ProblemFile) -> None:
    """Add one candidate. Raises WriteError."""
    solution = item.solution
    record = {
        "kind": _SKIPPED,
        "problem": str(solution.problem),
        "problem_name": problem.name,
        "solution": solution.name,
        "sample": solution.sample,
        "workload": item.workload,  # None is all of them
        "reason": item.reason,
        "after": len(run.results),
    }
    _append(run, record)


def keep_unmapped(run: Run, unmapped: Sequence[tuple[Path, str]]) -> None:
    """Add the files without a problem; nothing where there is none now and was none before. Raises WriteError."""
    if unmapped or any(record["kind"] == _UNMAPPED for record in read(run.path)):
        files = [{"solution": readable(path), "reason": reason} for path, reason in unmapped]
        _append(run, {"kind": _UNMAPPED, "files": files})


def read(path: Path) -> list[dict[str, Any]]:
    """Return the lines in the run directory ``path``, in order; none for a run that kept none. Raises RunError."""
    try:
        return parse(whole_lines(path / UNEVALUATED)[0])
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(f"{error.filename} cannot be read: {error.strerror}") from None


def parse(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    """Return lines as records, without damaged ones (the last may still be written)."""
    records = []
    for line in lines:
        try:
            record = parse_json(line)
            _SHAPES[record["kind"]].check(record)
        except (ValueError, KeyError, TypeError):
            continue
        if record["kind"] == _SKIPPED:  # without what others wrote beside it
            records.append({name: record[name] for name in _OF_SKIPPED})
        else:
            files = [{name: one[name] for name in _OF_FILES} for one in record["files"]]
            records.append({"kind": _UNMAPPED, "files": files})
    return records


def pending(run: Run, records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what still has no result: skipped candidates by problem and sample, then files without a problem."""
    skipped: dict[tuple, dict[str, Any]] = {}
    files: list[dict[str, Any]] = []
    for record in records:
        if record["kind"] == _SKIPPED:
            skipped[record["problem"], record["solution"], record["workload"]] = record
        else:
            files = record["files"]
    places: dict[tuple, int] = {}
    for place, result in enumerate(run.results):
        for workload in (result.workload.get("name"), None):
            places[result.problem, result.solution["name"], workload] = place
    left = [record for key, record in skipped.items() if places.get(key, -1) < record["after"]]
    return sorted(left, key=lambda r: (*map(int, r["problem"].split("/")), r["sample"])) + files


def _append(run: Run, record: dict[str, Any]) -> None:
    path = run.path / UNEVALUATED
    if not os.path.lexists(path):
        path.touch()
    with contextlib.suppress(OSError):  # of what cannot be read writing says why
        whole_lines(path, repair=True)  # one that was cut off would take the next with it
    append_line(path, record)
