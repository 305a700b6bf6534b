"""JSON that came from outside: a candidate, a model, a file that somebody else wrote."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Return what ``text`` says; raises ValueError where it is not JSON.

    Text that nests too deep is not JSON either: the standard library raises RecursionError there, which no caller
    expects of a parser.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it nests too deep") from None
