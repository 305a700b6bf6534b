"""Rule ``slowed_baseline``: nothing of the candidate may run on the GPU while the baseline is timed.

On a CPU nothing can: the judge waits until all of its processes have come to rest, and ``runs_unasked`` finds
out whether they stayed there.
"""

from __future__ import annotations

from harness.result import CandidateFailure, Status

RULE = "slowed_baseline"
RELATIVE, ABSOLUTE_MS = 0.10, 0.005


def check(beside_ms: float, alone_ms: float) -> None:
    """Raises CandidateFailure where the baseline was slower beside the candidate than after its end."""
    if beside_ms > alone_ms * (1 + RELATIVE) + ABSOLUTE_MS:
        raise CandidateFailure(
            Status.REJECTED,
            f"the baseline took {beside_ms:.4g} ms in turn with the candidate and {alone_ms:.4g} ms once it had ended: "
            "something of it runs on when it should be idle",
            rule=RULE,
        )
