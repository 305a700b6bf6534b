"""Audit records as text."""

from __future__ import annotations

import statistics

from kernelbench.audit.record import Audit
from kernelbench.views import tables

_HEADERS = ("problem", "name", "workload", "grade", "mutants killed", "survivors",
            "passes as published", "passes", "without effect")  # fmt: skip
_NAMED = 3


def table(records: list[Audit]) -> str:
    """A row a record, why problems could not be audited, and what all come to."""
    rows = [_row(record) for record in records]
    errors = [f"{r.problem} {r.name}, {r.workload}: {r.error}" for r in records if r.error]
    return "\n\n".join([tables.table(_HEADERS, rows, "terminal"), *errors, summary(records)])


def summary(records: list[Audit]) -> str:
    """Return grades and mutation scores of all records, as text."""
    scores = [record.score for record in records if record.score is not None]
    lines = [f"{len(records)} audited; grades " + ", ".join(f"{g}: {n}" for g, n in _grades(records).items())]
    if scores:
        mutants, killed = sum(r.mutants for r in records), sum(r.killed for r in records)
        published = sum(r.killed_as_published for r in records)
        lines.append(f"mutation score: median {statistics.median(scores):.3f}, lowest {min(scores):.3f}; "
                     f"{killed} of {mutants} mutants killed, {published} of them as published")  # fmt: skip
    as_published = sum(bool(record.passing_as_published) for record in records)
    passing = sum(bool(set(record.passing) - set(record.explained)) for record in records)
    lines.append(f"a trivial answer passes as published in {as_published}, and everything unexplained in {passing}")
    return "\n".join(lines)


def details(record: Audit) -> str:
    """Return what the table has no room for."""
    lines = [f"{record.problem} {record.name}, {record.workload}: grade {record.grade}"]
    if record.error:
        lines.append(f"  {record.error}")
    else:
        fit = {"not finite": record.finite, "not deterministic under a seed": record.deterministic,
               "shapes not as declared": record.shapes_as_declared,
               "get_flops disagrees with the table in problems/README.md": record.flops_as_declared}  # fmt: skip
        lines += [f"  {complaint}" for complaint, holds in fit.items() if not holds]
    lines += [f"  survives: {survivor}" for survivor in record.survivors]
    lines += [f"  {answer}: passes with {'; '.join(trials)}" for answer, trials in record.answers.items()]
    lines += [f"  {answer} is the function: {why}" for answer, why in record.explained.items()]
    if record.without_effect:
        lines.append(f"  without effect: {', '.join(record.without_effect)}")
    return "\n".join(lines)


def _row(record: Audit) -> tuple:
    return (
        record.problem, record.name, record.workload, record.grade,
        f"{record.killed}/{record.mutants}" if record.mutants else "-", len(record.survivors),
        ", ".join(record.passing_as_published) or "-", ", ".join(record.passing) or "-", _few(record.without_effect),
    )  # fmt: skip


def _few(names: list[str]) -> str:
    if len(names) <= _NAMED:
        return ", ".join(names) or "-"
    return f"{len(names)} parameters"


def _grades(records: list[Audit]) -> dict[str, int]:
    grades = [record.grade for record in records]
    return {grade: grades.count(grade) for grade in sorted(set(grades))}
