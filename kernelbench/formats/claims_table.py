"""A plain table of claims: CSV with the columns ``problem``, ``file`` and ``speedup``.

``problem`` is LEVEL/NUMBER, ``file`` a path below the table's folder, ``speedup`` what is claimed; the column may
also be called ``claimed speedup``. ``sample``, ``status``, ``ms`` and ``baseline`` (eager, unless it is given) are
optional.
"""

from __future__ import annotations

import csv
import re
from itertools import zip_longest
from pathlib import Path

from harness.limits import MAX_SAMPLE
from harness.problem.module import ProblemId
from harness.solution.discover import readable
from kernelbench.formats import claims
from kernelbench.formats.archive import Archive, ArchiveError, Kernel, ReadOptions, lines_of, text_of

_SPEEDUP = ("speedup", "claimed speedup")
_NEEDED = ("problem", "file")
_MAX_COLUMNS = 200  # chosen: ten times what a table of measurements has


def accepts(path: Path) -> bool:
    """Return whether it is a CSV file."""
    return path.is_file() and path.suffix.lower() == ".csv"


def read(path: Path, options: ReadOptions) -> Archive:
    """Return solutions and claims. Raises ArchiveError for a table without the columns, or a malformed row."""
    archive = Archive()
    try:
        rows = csv.reader(line for _, line in lines_of(path))
        columns = [name.strip().lower().replace("_", " ") for name in next(rows, [])]
        _check_columns(path, columns)
        for place, row in enumerate(rows, start=2):  # the first line has the names
            _add(archive, path, dict(zip_longest(columns, map(str.strip, row), fillvalue="")), f"line {place}")
    except csv.Error as error:
        raise ArchiveError(f"{path} is no CSV table: {error}") from None
    return archive


def _check_columns(table: Path, names: list[str]) -> None:
    if len(names) > _MAX_COLUMNS:
        raise ArchiveError(f"{table} has {len(names):,} columns; the most is {_MAX_COLUMNS}")
    if missing := [name for name in _NEEDED if name not in names] or ([] if {*names} & {*_SPEEDUP} else ["speedup"]):
        raise ArchiveError(f"{table} lacks the column {missing[0]}; expected problem, file, speedup")


def _add(archive: Archive, table: Path, row: dict[str, str], origin: str) -> None:
    try:
        problem = ProblemId.parse(row["problem"])
    except ValueError as error:
        raise ArchiveError(f"{table}, {origin}: {error}") from None
    sample = row.get("sample") or None
    if sample is not None and not re.fullmatch(rf"\d{{1,{len(str(MAX_SAMPLE))}}}", sample, re.ASCII):
        raise ArchiveError(f"{table}, {origin}: sample '{sample:.20}' is no number from 0 to {MAX_SAMPLE}")
    source, reason = text_of(table.parent, table.parent / row["file"])
    if source is None:
        archive.left_out.append((origin, f"{readable(row['file'])}: {reason}"))
        return
    claimed = next((row[name] for name in _SPEEDUP if row.get(name)), None)
    speedups = claims.speedups({row.get("baseline") or "eager": claimed and claimed.rstrip("x")})
    archive.add(Kernel(
        problem, source, Path(row["file"]).suffix, None if sample is None else int(sample), speedups,
        row.get("status") or None, claims.number(row.get("ms")), origin,
    ))  # fmt: skip
