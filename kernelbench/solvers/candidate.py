"""Candidates that a solver proposes, and the exchange that led to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harness.result import Result
from kernelbench.endpoint import Message
from kernelbench.solvers.model.llm import Answer


@dataclass(frozen=True)
class Talk:
    """Exchange of a solver with its model, for the trajectory; ``tokens`` of ``prompt`` and ``completion``."""

    prompt: list[Message] = field(default_factory=list)
    answer: str | None = None
    tokens: dict[str, int | None] = field(default_factory=lambda: {"prompt": 0, "completion": 0})
    cost_usd: float | None = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Candidate:
    """A source, or an answer that holds one, and where it comes from.

    ``kind`` is ``py``, ``cu`` or ``cpp``; that of an answer is its own. ``parent`` is the result, or its
    sample number, from which it was made; ``turn`` is one more than the parent's unless it is given.
    ``talk`` is what led to it where that did not go through ``task.llm``. ``tags`` are added to the task's own.
    """

    source: str | Answer
    kind: str = "py"
    parent: Result | int | None = None
    turn: int | None = None
    talk: Talk | None = None
    tags: dict[str, Any] = field(default_factory=dict)
