"""Candidates that a run did not evaluate, kept beside its log with the reason.

``unevaluated.jsonl`` is only ever appended to, and has four kinds of lines:

- ``skipped``: one candidate that could not be evaluated, through no fault of its own. ``after`` is the
  number of results in the log at that time: a result of it behind that place takes the line's place.
- ``unmapped``: all files of the solution directory that name no problem, or that of another. The last such line counts.
- ``withdrawn``: a solution whose first ``after`` results in the log are of a content that its file has no more, or
  of a problem that has changed, or some of them of a workload that it is not evaluated on.
- ``dismissed``: a solution whose ``skipped`` lines before this one do not count: it is evaluated on other workloads.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.json_text import parse_json
from harness.record.fields import PROBLEM
from harness.record.shape import LINE, LIST, OBJECT, TEXT, count, or_none, shape
from harness.result import Result
from kernelbench.run_files.log import append_line, begin, lines_if_any

UNEVALUATED = "unevaluated.jsonl"
SKIPPED, UNMAPPED, WITHDRAWN, DISMISSED = "skipped", "unmapped", "withdrawn", "dismissed"
_OF_SKIPPED = {
    "kind": LINE, "problem": PROBLEM, "problem_name": LINE, "solution": LINE, "sample": count(),
    "workload": or_none(LINE), "reason": TEXT, "after": count(),
}  # fmt: skip
_OF_WITHDRAWN = {"kind": LINE, "problem": PROBLEM, "solution": LINE, "after": count()}
_OF_DISMISSED = {"kind": LINE, "problem": PROBLEM, "solution": LINE}
_OF_FILES = {"solution": LINE, "reason": TEXT}
_FIELDS = {SKIPPED: _OF_SKIPPED, WITHDRAWN: _OF_WITHDRAWN, DISMISSED: _OF_DISMISSED}
_SHAPES = {
    **{kind: shape({f"{name}!": of for name, of in fields.items()}) for kind, fields in _FIELDS.items()},
    UNMAPPED: shape({"files!": LIST, "files[]": OBJECT, **{f"files[].{name}!": of for name, of in _OF_FILES.items()}}),
}


def read(path: Path) -> list[dict[str, Any]]:
    """Return the lines in the run directory ``path``, in order; none for a run that kept none. Raises RunError."""
    return parse(lines_if_any(path / UNEVALUATED))


def parse(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    """Return lines as records, without damaged ones (the last may still be written)."""
    records = []
    for line in lines:
        try:
            record = parse_json(line)
            _SHAPES[record["kind"]].check(record)
        except (ValueError, KeyError, TypeError):
            continue
        if record["kind"] in _FIELDS:  # without what others wrote beside it
            records.append({name: record[name] for name in _FIELDS[record["kind"]]})
        else:
            files = [{name: one[name] for name in _OF_FILES} for one in record["files"]]
            records.append({"kind": UNMAPPED, "files": files})
    return records


def append(folder: Path, records: list[dict[str, Any]], record: dict[str, Any]) -> None:
    """Add one to ``records`` and to those in the run directory ``folder``. Raises WriteError."""
    path = folder / UNEVALUATED
    with contextlib.suppress(OSError):  # of what cannot be read or made writing says why
        if not os.path.lexists(path):
            begin(path)
    append_line(path, record)
    records.append(record)


def bounded(records: Iterable[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return with ``count`` as ``after`` the lines that count and have more: results to come would not count.

    A run that others hand over can have them, and one of whose log somebody took lines.
    """
    last = {(r["kind"], r["problem"], r["solution"], r.get("workload")): r for r in records if "after" in r}
    return [record | {"after": count} for record in last.values() if record["after"] > count]


def skipped(records: Iterable[dict[str, Any]]) -> dict[tuple[str, str, str | None], dict[str, Any]]:
    """Return the last line of each candidate that was skipped, by problem, solution and workload."""
    numbered = [*enumerate(records)]
    since = {(r["problem"], r["solution"]): number for number, r in numbered if r["kind"] == DISMISSED}
    return {
        (r["problem"], r["solution"], r["workload"]): r
        for number, r in numbered
        if r["kind"] == SKIPPED and number > since.get((r["problem"], r["solution"]), -1)
    }


def unmapped(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the files of the last listing of those without a problem."""
    return next((record["files"] for record in reversed(records) if record["kind"] == UNMAPPED), [])


def pending(results: Sequence[Result], records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what has none of the log's ``results``: skipped candidates by problem and sample, then unmapped files."""
    places: dict[tuple, int] = {}
    for place, result in enumerate(results):
        for workload in (result.workload.get("name"), None):
            places[result.problem, result.solution["name"], workload] = place
    left = [record for key, record in skipped(records).items() if places.get(key, -1) < record["after"]]
    return sorted(left, key=lambda r: (*map(int, r["problem"].split("/")), r["sample"])) + unmapped(records)


def in_part(latest: Sequence[Result], records: Iterable[dict[str, Any]]) -> set[tuple[str, str]]:
    """Return problem and name of solutions that were skipped on a workload, and have no result on it in ``latest``."""
    known = {(r.problem, r.solution["name"], r.workload.get("name")) for r in latest}
    return {(problem, name) for problem, name, workload in skipped(records).keys() - known if workload}


def withdrawn(records: Iterable[dict[str, Any]]) -> dict[tuple[str, str], int]:
    """Return how many results of the log do not count for a solution, by problem and name."""
    return {(r["problem"], r["solution"]): r["after"] for r in records if r["kind"] == WITHDRAWN}
