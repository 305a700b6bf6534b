"""The forms in which a view can be printed: a table for the terminal or Markdown, JSON, CSV."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from tabulate import tabulate

from kernelbench import escaping

_MOST_CHARACTERS = 500  # of a cell
FORMATS = ("terminal", "markdown", "json", "csv")
_STYLES = {"terminal": "simple", "markdown": "github"}


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[Any]],
    form: str,
    align: Sequence[str] | None = None,
    widths: Sequence[int | None] | None = None,
) -> str:
    """``form`` is terminal or markdown; ``align`` and the largest ``widths`` are of the columns, where there are rows.

    What was written by others is text: none of it is a number or a sequence that drives a terminal, and it is cut
    where it would make all rows as long.
    """
    escaped = escaping.markdown if form == "markdown" else escaping.terminal
    rows = [["" if cell is None else str(cell) for cell in row] for row in rows]
    rows = [[escaped(escaping.cut_apart(cell, _MOST_CHARACTERS)) for cell in row] for row in rows]
    if widths:  # tabulate's own maxcolwidths takes "False" for a truth value, and that for True
        rows = [[_wrapped(cell, width) for cell, width in zip(row, widths)] for row in rows]
    else:
        rows = [[" ".join(cell.split("\n")) for cell in row] for row in rows]  # a line of its own would be another row
    headers = [" ".join(escaped(header).split("\n")) for header in headers]
    return tabulate(rows, headers, tablefmt=_STYLES[form], colalign=align if rows else None, disable_numparse=True)


def paragraph(text: str, form: str) -> str:
    """Return text beside a table, ``form`` as there."""
    return escaping.markdown(text) if form == "markdown" else escaping.terminal(text)


def heading(text: str, form: str, depth: int) -> str:
    """Return the heading of a table, ``form`` as there."""
    return f"{'#' * depth} {paragraph(text, form)}" if form == "markdown" else paragraph(text, form)


def _wrapped(text: str, width: int | None) -> str:
    lines = text.splitlines() or [""]
    return text if width is None else "\n".join(part for line in lines for part in textwrap.wrap(line, width) or [""])


def to_json(data: Any) -> str:
    """Return data as JSON text that is safe to embed in a page."""
    return escaping.json_text(data)


def to_csv(records: Sequence[dict[str, Any]]) -> str:
    """One line a record, nested dictionaries as columns ``outer.inner``; a column is there if any record has it."""
    flat = [{escaping.csv_cell(k): escaping.csv_cell(v) for k, v in flatten(record).items()} for record in records]
    columns = list(dict.fromkeys(column for record in flat for column in record))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue().rstrip("\n")


def flatten(record: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested dictionaries as one, with names joined by dots."""
    flat: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
