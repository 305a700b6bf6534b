"""The text of ``adapter``, which ends up in every generated module: a worker sees no other file of the problem's."""

from __future__ import annotations

import functools
from pathlib import Path


@functools.cache
def text() -> str:
    """Return the source of ``adapter`` without importing it, because it imports torch."""
    return (Path(__file__).parent / "adapter.py").read_text(encoding="utf-8")
