"""Findings about a program: a finding names the rule, says what and why, and what to change."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from kernelbench.ucutlass.ir import Position


@dataclass(frozen=True)
class Finding:
    """One broken rule, at a place in the source.

    ``what`` states the fact with its values, ``why`` the reason for the rule, and ``fix`` what to write instead.
    """

    rule: str
    what: str
    why: str
    fix: str
    at: Position | None = None

    def __str__(self) -> str:
        place = f"{self.at.line}:{self.at.column}: " if self.at else ""
        return f"{place}[{self.rule}] {self.what}\n  why: {self.why}\n  fix: {self.fix}"

    def as_json(self) -> dict[str, Any]:
        """The finding as JSON, with ``line`` and ``column`` from 1, or null."""
        data = asdict(self)
        del data["at"]
        return data | {"line": self.at.line if self.at else None, "column": self.at.column if self.at else None}


class ProgramError(Exception):
    """A program that breaks rules; ``findings`` has them all, in the order of the source."""

    def __init__(self, findings: list[Finding]):
        self.findings = in_order(findings)
        super().__init__("\n".join(map(str, self.findings)))


class LibraryMissing(Exception):
    """A package of the extra ``cutlass`` is not installed."""

    def __init__(self, package: str):
        super().__init__(f"{package} is not installed: pip install 'kernelbench[cutlass]'")


def in_order(findings: list[Finding]) -> list[Finding]:
    """The findings without repetition, in the order of the source; those without a place come last."""
    last = (1 << 30, 0)
    return sorted(
        dict.fromkeys(findings), key=lambda finding: (finding.at.line, finding.at.column) if finding.at else last
    )
