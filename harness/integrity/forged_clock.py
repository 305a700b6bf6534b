"""Rule ``forged_clock``: the times that a worker reports must agree with the judge's own clock."""

from __future__ import annotations

from harness.result import CandidateFailure, Status

RULE = "forged_clock"
# How much longer a call may take by the judge's clock than by the worker's. The burst is hot and
# the worker's calls are cold, so an honest one takes rather less. Of a CPU others may take a share.
RELATIVE = {"cuda": 0.15, "cpu": 0.5}
ABSOLUTE_MS = {"cuda": 0.003, "cpu": 0.05}  # the gap between two kernels, and what is not known of it
UNHELD_MS = 0.2  # and where launches could not be kept out


def allowed_ms(claimed_ms: float, held: bool, device_type: str, load: float = 1.0) -> float:
    """What a call may take by the judge's clock; ``load`` is how much longer the reference took meanwhile."""
    if not held:
        return 2 * claimed_ms + UNHELD_MS
    return (claimed_ms * (1 + RELATIVE[device_type]) + ABSOLUTE_MS[device_type]) * max(1.0, load)


def check(claimed_ms: float, judged_ms: float, calls: int, allowed_ms: float) -> None:
    """Raises CandidateFailure where a burst of ``calls`` took longer, for each, than is allowed."""
    if judged_ms > allowed_ms:
        raise CandidateFailure(
            Status.REJECTED,
            f"its process reports {claimed_ms:.4g} ms a call, but {calls} calls in a row took {judged_ms:.4g} ms each "
            f"by the judge's clock, from when their inputs existed until their outputs were in the judge's memory; "
            f"up to {allowed_ms:.4g} ms would agree",
            rule=RULE,
        )
