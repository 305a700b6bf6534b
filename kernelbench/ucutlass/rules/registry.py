"""Declaration of a rule: a name, a reason, and a function that yields what breaks it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.ir import Position
from kernelbench.ucutlass.language.findings import Finding

Breach = tuple[str, str, Position | None]  # what, fix, where
Check = Callable[..., Iterator[Breach]]


class Subject(enum.Enum):
    """Subject of a rule."""

    WRITTEN = "a kernel as it is written"
    COMPLETE = "a kernel with its defaults: only where a type, an architecture and a layout are given"
    PROGRAM = "a whole program as it is written"


@dataclass(frozen=True)
class Rule:
    """One rule; the name stands in messages, documents and tests."""

    name: str
    why: str
    subject: Subject
    check: Check

    def findings(self, subject: ir.Kernel | ir.Program) -> Iterator[Finding]:
        """Yield the findings that break the rule."""
        for what, fix, at in self.check(subject):
            yield Finding(self.name, what, self.why, fix, at)


RULES: dict[str, Rule] = {}


def rule(name: str, why: str, subject: Subject = Subject.COMPLETE) -> Callable[[Check], Check]:
    """Decorator: register a rule under its name, with the reason that its messages give."""

    def register(check: Check) -> Check:
        if name in RULES:
            raise ValueError(f"two rules have the name {name}")
        RULES[name] = Rule(name, why, subject, check)
        return check

    return register


def place(kernel: ir.Kernel, clause: str) -> Position | None:
    """Return the position of a clause, or else of its kernel."""
    return kernel.positions.get(clause, kernel.at)


def listed(words: Iterable[object]) -> str:
    """Words with commas and a last ``or``."""
    words = [str(word) for word in words]
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
