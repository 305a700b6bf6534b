"""The forms in which a view can be printed: a table for the terminal or Markdown, JSON, CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

from tabulate import tabulate

FORMATS = ("terminal", "markdown", "json", "csv")
_STYLES = {"terminal": "simple", "markdown": "github"}


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]], form: str) -> str:
    """``form`` is terminal or markdown."""
    return tabulate(list(rows), headers, tablefmt=_STYLES[form], disable_numparse=True)


def to_json(data: Any) -> str:
    return json.dumps(data, indent=2)


def to_csv(records: Sequence[dict[str, Any]]) -> str:
    """One line a record, nested dictionaries as columns ``outer.inner``; a column is there if any record has it."""
    flat = [flatten(record) for record in records]
    columns = list(dict.fromkeys(column for record in flat for column in record))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue().rstrip("\n")


def flatten(record: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
