"""Check that a time is possible, and that the work is the solution's own."""

from __future__ import annotations

from pathlib import Path

from harness.compile.artefact import Artefact
from harness.integrity import below_floor, library_only
from harness.integrity.origin import Origin
from harness.result import Result
from harness.solution.discover import Solution


def check_plausible(
    result: Result, solution: Solution, artefact: Artefact, built: list[Path], needs_own_kernels: bool, device_type: str
) -> None:
    """Apply the rules ``below_floor`` and ``library_only`` to a timed result; ``built`` are its extensions.

    Raises CandidateFailure.
    """
    median_ms, profile = result.timing["median_ms"], result.timing.get("profile")
    result.integrity["sol_ceiling"] = below_floor.under_ceiling(median_ms, result.sol)
    below_floor.check(median_ms, result.sol)
    result.integrity["faster_than_direct"] = below_floor.between_bounds(median_ms, result.sol)
    if profile:
        own, share = library_only.own_kernels(profile, _origin(solution, artefact, built))
        result.integrity |= {"own_kernels": own, "own_share": share}
    if device_type == "cpu":
        result.integrity["built_own"] = bool(built) or artefact.library is not None
    if not needs_own_kernels:
        return
    if device_type == "cuda" and profile:
        library_only.check(profile, share)
    elif device_type == "cpu":
        library_only.check_on_cpu(result.integrity["built_own"])


def _origin(solution: Solution, artefact: Artefact, built: list[Path]) -> Origin | None:
    """Return what can be the solution's own; None where its source is gone by now, and names have to do."""
    try:
        return Origin.of(solution, [*built, *filter(None, [artefact.library])])
    except OSError:
        return None
