"""The forms in which a simulated author answers: code, and what a phase of a strategy asks for.

A call's tag ``phase`` chooses the form; without one the answer is code where the prompt asks for a file, and
words about the kernel otherwise. A strategy with an answer of its own form adds a line to ``FORMS``.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable

from kernelbench.solvers.landscape import parameters as p
from kernelbench.solvers.landscape.author import Mind
from kernelbench.solvers.landscape.reading import Message, Seen

_ASKS_FOR_CODE = re.compile(r"code block|class `?ModelNew|whole file", re.I)

Form = Callable[[Mind, list[Message], Seen, random.Random], tuple[str, int]]


def answer_of(
    mind: Mind, messages: list[Message], seen: Seen, phase: str | None, rng: random.Random
) -> tuple[str, int]:
    """Return an answer and the tokens that such an answer usually has."""
    form = FORMS.get(phase) or (code if _ASKS_FOR_CODE.search(messages[-1]["content"]) else reflection)
    return form(mind, messages, seen, rng)


def code(mind: Mind, messages: list[Message], seen: Seen, rng: random.Random) -> tuple[str, int]:
    """Return a kernel in a fenced block."""
    spec = mind.write(seen, rng)
    return f"```python\n{spec.source(mind.problem.id)}```", p.CODE_TOKENS


def reflection(mind: Mind, messages: list[Message], seen: Seen, rng: random.Random) -> tuple[str, int]:
    """Return words about the kernel that the prompt shows, with a lesson where one can be drawn."""
    return lesson(mind, seen) or "There is nothing to learn from this attempt.", p.TEXT_TOKENS


def lesson(mind: Mind, seen: Seen) -> str:
    """Return what the latest kernel in a prompt teaches about its lever; '' where it has none."""
    base = seen.base
    if base is None or base.move is None:
        return ""
    lever = p.LEVERS.index(base.move)
    expected = math.exp(mind.belief(lever, base.before, seen))
    worked = base.fault is None and base.drag == 1.0
    got = mind.problem.time_ms(base.before) / mind.problem.time_ms(base.left) if worked else 0.0
    end = f"worked, expected {expected:.2f}x and got {got:.2f}x" if worked else f"failed, expected {expected:.2f}x"
    return f"[lesson {mind.problem.id} {base.move}: {end}]"


FORMS: dict[str | None, Form] = {"implement": code, "reflect": reflection}
