"""The forms in which a simulated author answers: code, and what a phase of a strategy asks for.

A call's tag ``phase`` chooses the form; without one the answer is code where the prompt asks for a file, and
words about the kernel otherwise. A strategy with an answer of its own form adds a line to ``FORMS``.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable

from kernelbench.solvers.landscape import parameters as p
from kernelbench.solvers.landscape.author import Mind
from kernelbench.solvers.landscape.reading import Message, Seen
from kernelbench.solvers.landscape.terrain import Left

_NOMINATED = 5  # hypotheses, where the prompt names no number
_RISKS = (1.0, 5.0)  # safe, most likely to fail; the scale of MANTIS
_COUNT = re.compile(r"\b(\d+)\s+(?:[a-z]+\s+){0,3}hypothes[ei]s", re.I)
_OUTCOME = re.compile(r"^#+ *\S+: *(?P<lever>[a-z& ]+)$\n+Expected (?P<expected>[\d.]+)x, got (?P<got>.*)$", re.M)
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


def analysis(mind: Mind, messages: list[Message], seen: Seen, rng: random.Random) -> tuple[str, int]:
    """Return what the gap is due to: the true shares of the resources, each off by a factor.

    Without a profile in the prompt the shares are guessed.
    """
    left = _base(seen)
    true = mind.problem.attribution(left) if seen.profile else [1.0] * len(p.RESOURCES)
    off = p.SD_LOG_ATTRIBUTION if seen.profile else 1.0
    guessed = [share * math.exp(rng.gauss(0, off)) for share in true]
    shares = [guess / math.fsum(guessed) for guess in guessed]
    text = ", ".join(f"{name} {share:.2f}" for name, share in zip(p.RESOURCES, shares))
    order = sorted(zip(p.RESOURCES, shares), key=lambda one: -one[1])
    bottlenecks = [{"name": name, "evidence": f"about {share:.0%} of the time"} for name, share in order]
    return _json({"bottlenecks": bottlenecks, "summary": f"gap attribution: {text}"}), p.TEXT_TOKENS


def nomination(mind: Mind, messages: list[Message], seen: Seen, rng: random.Random) -> tuple[str, int]:
    """Return hypotheses, the most appealing first: one lever each, with what the author expects of it."""
    found = _COUNT.search(messages[-1]["content"])
    count = min(int(found[1]) if found else _NOMINATED, len(p.LEVERS))
    left = _base(seen)
    share = seen.attribution or dict.fromkeys(p.RESOURCES, 0.5)  # without a word on the gap all are as risky
    hypotheses = []
    for lever in mind.choose(left, seen, count, rng):
        name = p.LEVERS[lever]
        fails = 1 / (1 + math.exp(mind.log_odds(lever, seen, 0) + rng.gauss(0, p.SD_RISK)))
        hypotheses.append({
            "name": name,
            "cause": f"The kernel does not use {name} well.",
            "change": f"Apply {name}. [lever: {name}]",
            "expected_speedup": round(math.exp(min(3.0, max(-1.0, mind.belief(lever, left, seen)))), 3),
            "implementation_risk": round(_risk(fails), 2),
            "performance_risk": round(_risk(1 - share[p.TARGETS[lever]]), 2),
        })  # fmt: skip
    return _json({"hypotheses": hypotheses}), p.TEXT_TOKENS


def summary(mind: Mind, messages: list[Message], seen: Seen, rng: random.Random) -> tuple[str, int]:
    """Return a lesson for each hypothesis whose outcome the prompt describes."""
    lessons = []
    for outcome in _OUTCOME.finditer(messages[-1]["content"]):
        lever, expected = outcome["lever"].strip(), outcome["expected"]
        if lever in p.LEVERS:
            got = outcome["got"].split("x")[0]
            worked = got.replace(".", "", 1).isdigit() and float(got) > 1.0
            end = f"worked, expected {expected}x and got {got}x" if worked else f"failed, expected {expected}x"
            lessons.append(f"[lesson {mind.problem.id} {lever}: {end}]")
    return _json({"lessons": lessons, "next": ""}), p.TEXT_TOKENS


def selection(mind: Mind, messages: list[Message], seen: Seen, rng: random.Random) -> tuple[str, int]:
    """Return the name of the strategy that appeals most."""
    (lever,) = mind.choose(_base(seen), seen, 1, rng)
    return f"That limits it most.\n{p.LEVERS[lever]}", p.TEXT_TOKENS


def _base(seen: Seen) -> Left:
    """Return what is left of the levers in the kernel that a prompt shows; all of them without one."""
    if seen.base is None:
        return (1.0,) * len(p.LEVERS)
    return seen.base.before if seen.base.fault or seen.base.drag > 1 else seen.base.left


def _risk(chance: float) -> float:
    """Return a chance of failure on the scale of risks."""
    low, high = _RISKS
    return low + (high - low) * chance


def _json(data: dict) -> str:
    return f"```json\n{json.dumps(data)}\n```"


FORMS: dict[str | None, Form] = {
    "implement": code,
    "reflect": reflection,
    # KernelBand, where the model selects
    "select": selection,
    # MANTIS
    "analyze": analysis,
    "nominate": nomination,
    "summarize": summary,
}
