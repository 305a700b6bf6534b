"""JSON that came from outside: a candidate, a model, a file that somebody else wrote."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

_MAX_NESTING = 100  # the records below results/ have six levels


def parse_json(text: str | bytes) -> Any:
    """Return what ``text`` says; raises ValueError where it is not JSON, or bytes are not UTF-8.

    The standard library takes UTF-16 and UTF-32 too, of whose bytes nobody has counted the values. Text that nests too
    deep is not JSON either: the standard library raises RecursionError there, and where it does not, who writes it
    again may.
    """
    try:
        value = json.loads(text if isinstance(text, str) else text.decode("utf-8-sig"))
    except RecursionError:
        raise ValueError("it nests too deep") from None
    level = _containers([value])
    for _ in range(_MAX_NESTING + 1):
        if not level:
            return value
        level = [part for whole in level for part in _containers(whole)]
    raise ValueError(f"it nests more than {_MAX_NESTING} deep")


def parse_writable_json(text: str | bytes) -> Any:
    """Return what ``text`` says; raises ValueError also where a text in it has half a character, with no bytes."""
    value = parse_json(text)
    json.dumps(value, ensure_ascii=False).encode()
    return value


def _containers(whole: dict | list) -> list[dict | list]:
    parts: Iterable[Any] = whole.values() if isinstance(whole, dict) else whole
    return [part for part in parts if isinstance(part, (dict, list))]
