"""Rule ``below_floor``: no honest kernel is faster than the least work at the device's highest rates allows."""

from __future__ import annotations

from typing import Any

from harness.result import CandidateFailure, Status

RULE = "below_floor"
PLAUSIBLE = 0.9  # a time below this share of a bound is no measurement of that work; views read it without PyTorch


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


def under_ceiling(median_ms: float | None, sol: dict[str, Any] | None) -> bool | None:
    """Return whether a time lies more than 10 % below t_SOL with FP16: the label ``sol_ceiling``; None without a bound.

    It rejects nothing: a rewriting may do less work than the direct algorithm that t_SOL counts.

    References
    ----------
    The muCUTLASS paper, sections 4.4 and 5.8.
    """
    ceiling_ms = (sol or {}).get("t_sol_fp16_ms")
    return median_ms < PLAUSIBLE * ceiling_ms if median_ms and ceiling_ms else None


def between_bounds(median_ms: float, sol: dict[str, Any]) -> bool:
    """Return whether a time is possible, but faster than the direct algorithm: something for a reviewer to read."""
    return bool(sol.get("t_sol_ms")) and median_ms < sol["t_sol_ms"]
