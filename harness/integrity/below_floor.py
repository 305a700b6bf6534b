"""Rule ``below_floor``: no honest kernel is faster than the least work at the device's highest rates allows."""

from __future__ import annotations

from typing import Any

from harness.result import CandidateFailure, Status
from harness.sol.bounds import PLAUSIBLE

RULE = "below_floor"


def check(median_ms: float, sol: dict[str, Any]) -> None:
    """Raises CandidateFailure under 0.9 of ``t_floor_ms``; nothing where there is no bound."""
    floor_ms = sol.get("t_floor_ms")
    if floor_ms and median_ms < PLAUSIBLE * floor_ms:
        raise CandidateFailure(
            Status.REJECTED,
            f"{median_ms:.4g} ms is under {PLAUSIBLE:g} of the floor of {floor_ms:.4g} ms, which nothing that computes "
            f"this can beat on {sol['device']}; `kb sol` lists what the floor consists of",
            rule=RULE,
        )


def between_bounds(median_ms: float, sol: dict[str, Any]) -> bool:
    """Return whether a time is possible, but faster than the direct algorithm: something for a reviewer to read."""
    return bool(sol.get("t_sol_ms")) and median_ms < sol["t_sol_ms"]
