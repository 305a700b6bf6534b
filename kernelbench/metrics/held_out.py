"""Return whether a solution generalises: what its held-out workloads say together. Pure functions over records.

A held-out workload has sizes around the published ones, or the published sizes with inputs of another structure. It is
drawn after the candidate was written (``harness.integrity.held_out``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from harness.result import Result, Status
from kernelbench.metrics import settled

KEPT, SLOWER, BROKEN, SPECIALISED = "kept", "slower", "broken", "specialised"
VERDICTS = (KEPT, SLOWER, SPECIALISED, BROKEN)  # the worst last


def verdict(result: Result) -> str | None:
    """Return what became of a solution on its held-out workloads; None where none was evaluated.

    - ``broken``: it fails at the published sizes, on inputs of another structure.
    - ``specialised``: it fails at other sizes only.
    - ``slower``: right everywhere, not slower than the baseline on the published workload, and slower on the others.
    - ``kept``: none of these.

    Of a solution on several published workloads it is the worst.
    """
    found = [_verdict(part) for part in getattr(result, "parts", [result]) if part.held_out]
    return max(found, key=VERDICTS.index, default=None)


def failures(result: Result) -> list[dict[str, Any]]:
    """Return the held-out workloads on which a solution fails."""
    parts = getattr(result, "parts", [result])
    return [one for part in parts for one in part.held_out or [] if one["status"] != Status.OK.value]


def counts(results: Iterable[Result]) -> dict[str, int]:
    """Return how many solutions got each verdict; empty where none was held out."""
    counted = Counter(map(verdict, results))
    return {word: counted[word] for word in VERDICTS if counted[word]}


def _verdict(part: Result) -> str:
    failed = failures(part)
    if any(one["draw"] for one in failed):
        return BROKEN
    if failed:
        return SPECIALISED
    return SLOWER if settled.verdict(part) != settled.SLOWER and _slower_in_total(part.held_out or []) else KEPT


def _slower_in_total(workloads: Sequence[dict[str, Any]]) -> bool:
    """Return whether the summed times are above the baseline's, and one of them is so beyond doubt.

    A sum and no count, because calls of the smallest sizes take as long as their launches. An interval that ends below
    1 is beyond doubt where the verdict is unstable, too: a candidate may vary its work where it is slow.
    """
    timed = [one for one in workloads if one["median_ms"] and one["baseline_ms"]]
    total = sum(one["median_ms"] for one in timed) > sum(one["baseline_ms"] for one in timed)
    return total and any(one["verdict"] == settled.SLOWER or (one.get("interval") or [1])[-1] < 1 for one in timed)
