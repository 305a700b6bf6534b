"""Places in the source."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Position:
    """Place in the source, from 1."""

    line: int
    column: int


def at_field():
    """Return the field for a place, which takes no part in equality."""
    return field(default=None, compare=False, repr=False, kw_only=True)
