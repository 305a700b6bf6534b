"""Claims of an archive: one record for each kernel, kept beside the solutions that were imported.

A claim is somebody else's word. It is compared with a measurement (``kernelbench.regrade``) and never
enters a result.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from harness.json_text import parse_json
from harness.limits import MAX_JSON_BYTES
from harness.record.shape import LINE
from harness.solution.includes import read_source

LOG = "claims.jsonl"


class ClaimsError(Exception):
    """Claims that cannot be read, and what to do about it."""


@dataclass(frozen=True)
class Claim:
    """Claims of an archive about one kernel.

    Attributes
    ----------
    solution
        Name of the file below the folder of solutions, as in a result.
    speedups
        Claimed speedup over each baseline; the first is the one that the archive leads with.
    status
        ``ok`` or another status of ``harness.result``; None where the archive does not say.
    ms
        Claimed time of one call; None where the archive does not say.
    origin
        Place in the archive.
    reference_sha256
        Digest of the problem definition that the claim is of; '' where the archive brings none.
    """

    problem: str
    solution: str
    sha256: str
    speedups: dict[str, float] = field(default_factory=dict)
    status: str | None = None
    ms: float | None = None
    origin: str = ""
    reference_sha256: str = ""

    @property
    def speedup(self) -> float | None:
        """The claimed speedup that the archive leads with; None where it claims none."""
        return next(iter(self.speedups.values()), None)

    @property
    def over(self) -> str:
        """The baseline of ``speedup``; '' without one."""
        return next(iter(self.speedups), "")


def number(value: Any) -> float | None:
    """Return a claimed time or speedup as a positive finite number; None for anything else."""
    try:
        claimed = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return claimed if not isinstance(value, bool) and math.isfinite(claimed) and claimed > 0 else None


def speedups(claimed: Mapping[str, Any]) -> dict[str, float]:
    """Return those of the claimed speedups that are numbers, in their order."""
    return {name: found for name, value in claimed.items() if (found := number(value)) is not None}


def to_text(claims: Iterable[Claim]) -> str:
    """Return the log: one line a claim."""
    return "".join(json.dumps(asdict(claim)) + "\n" for claim in claims)


def load(path: Path) -> list[Claim]:
    """Return the claims of a log. Raises ClaimsError where it cannot be read or a line is no claim."""
    try:
        lines = read_source(path, MAX_JSON_BYTES).splitlines()
    except OSError as error:
        raise ClaimsError(f"cannot read {path}: {error.strerror}; `kb import` writes it beside solutions/") from None
    found: dict[tuple[str, str], Claim] = {}
    for place, line in enumerate(lines, start=1):
        try:
            claim = _claim(parse_json(line))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ClaimsError(f"{path}, line {place}, is no claim; import the archive again") from None
        if found.setdefault((claim.problem, claim.solution), claim) is not claim:
            raise ClaimsError(f"{path}, line {place}, is a second claim of {claim.problem} {claim.solution}")
    return list(found.values())


def _claim(record: dict[str, Any]) -> Claim:
    known = {f.name for f in fields(Claim)}
    claim = Claim(**{key: value for key, value in record.items() if key in known})
    texts = claim.problem, claim.solution, claim.sha256, claim.origin, claim.reference_sha256
    if not all(map(LINE.takes, texts)) or not isinstance(claim.status, str | None):
        raise TypeError(record)
    if speedups(claim.speedups) != claim.speedups or number(claim.ms) != claim.ms:
        raise ValueError(record)
    return claim
