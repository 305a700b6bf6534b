"""Rule ``slowed_baseline``: nothing of the candidate may run on the GPU while the baseline is timed.

The baseline is timed beside the candidate and again after its end. A call also takes up to 28 % longer by where its
tensors lie, so an accused candidate is compared with the slowest of several placements. Where the host's launches are
in the times nobody is accused: a host has been seen to become faster by a quarter from one second to the next. The
lower of the two figures counts then.

The lower figure counts on a CPU too. The candidate's processes are suspended there (``runs_unasked``), but a suspended
process can still have the kernel work for it.
"""

from __future__ import annotations

from harness.result import CandidateFailure, Status

RULE = "slowed_baseline"
# Beside the candidate and alone, references of an H100 take the same within 1.6 % (results/README.md); a tenth leaves
# room for clocks, and 5 us for what a gap between two kernels may be.
RELATIVE, ABSOLUTE_MS = 0.10, 0.005


def slowed(beside_ms: float, alone_ms: float) -> bool:
    """Return whether the baseline was slower beside the candidate than after its end, beyond chance."""
    return beside_ms > alone_ms * (1 + RELATIVE) + ABSOLUTE_MS


def check(beside_ms: float, alone_ms: float) -> None:
    """Raises CandidateFailure where the baseline was slower beside the candidate than after its end."""
    if slowed(beside_ms, alone_ms):
        raise CandidateFailure(
            Status.REJECTED,
            f"the baseline took {beside_ms:.4g} ms in turn with the candidate and {alone_ms:.4g} ms once it had ended: "
            "something of it runs on when it should be idle",
            rule=RULE,
        )
