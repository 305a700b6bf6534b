"""A plain table of claims: CSV with the columns ``problem``, ``file`` and ``speedup``.

``problem`` is LEVEL/NUMBER, ``file`` a path below the table's folder, ``speedup`` what is claimed; the column may
also be called ``claimed speedup``. ``sample``, ``status``, ``ms`` and ``baseline`` (eager, unless it is given) are
optional.
"""

from __future__ import annotations

import csv
from pathlib import Path

from harness.limits import MAX_SAMPLE
from harness.problem.module import ProblemId
from kernelbench.formats import claims
from kernelbench.formats.archive import Archive, ArchiveError, Kernel, ReadOptions, text_of

_SPEEDUP = ("speedup", "claimed speedup")
_NEEDED = ("problem", "file")


def accepts(path: Path) -> bool:
    """Return whether it is a CSV file."""
    return path.is_file() and path.suffix.lower() == ".csv"


def read(path: Path, options: ReadOptions) -> Archive:
    """Return solutions and claims. Raises ArchiveError for a table without the columns, or a malformed row."""
    try:
        with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
            rows = [
                {(key or "").strip().lower().replace("_", " "): (value or "") for key, value in row.items()
                 if isinstance(value, str | None)}
                for row in csv.DictReader(file)
            ]  # fmt: skip
    except OSError as error:
        raise ArchiveError(f"cannot read {path}: {error.strerror}") from None
    except csv.Error as error:
        raise ArchiveError(f"{path} is no CSV table: {error}") from None
    columns = set(rows[0]) if rows else set()
    if missing := [name for name in _NEEDED if name not in columns] + ([] if columns & set(_SPEEDUP) else ["speedup"]):
        raise ArchiveError(f"{path} lacks the column {missing[0]}; expected problem, file, speedup")
    archive = Archive()
    for place, row in enumerate(rows, start=2):  # the first line has the names
        _add(archive, path, {key: value.strip() for key, value in row.items()}, f"line {place}")
    return archive


def _add(archive: Archive, table: Path, row: dict[str, str], origin: str) -> None:
    try:
        problem = ProblemId.parse(row["problem"])
    except ValueError as error:
        raise ArchiveError(f"{table}, {origin}: {error}") from None
    sample = row.get("sample") or None
    if sample is not None and not (sample.isascii() and sample.isdigit() and int(sample) <= MAX_SAMPLE):
        raise ArchiveError(f"{table}, {origin}: sample '{sample:.20}' is no number from 0 to {MAX_SAMPLE}")
    source, reason = text_of(table.parent, table.parent / row["file"])
    if source is None:
        archive.left_out.append((origin, f"{row['file']}: {reason}"))
        return
    claimed = next((row[name] for name in _SPEEDUP if row.get(name)), None)
    speedups = claims.speedups({row.get("baseline") or "eager": claimed and claimed.rstrip("x")})
    archive.kernels.append(Kernel(
        problem, source, Path(row["file"]).suffix, None if sample is None else int(sample), speedups,
        row.get("status") or None, claims.number(row.get("ms")), origin,
    ))  # fmt: skip
