"""Rule ``slowed_baseline``: nothing of the candidate may run on the GPU while the baseline is timed.

What takes longer beside the candidate than after its end tells: the baseline, or where the host's launches are in
its times, copies that are timed right before or after it. Those are the device's work alone; a host has been seen
to become faster by a quarter from one second to the next, with nobody but its hypervisor to blame. A call takes up to
a fifth longer by where its tensors lie, too, so who is accused may have the baseline's slowest place alone.

On a host's cores nothing of a candidate can run then: the judge waits until all of its processes have come to rest,
and ``runs_unasked`` finds out whether they stayed there. For a CPU that is all there is.
"""

from __future__ import annotations

from harness.result import CandidateFailure, Status

RULE = "slowed_baseline"
RELATIVE, ABSOLUTE_MS = 0.10, 0.005


def is_slower(beside_ms: float, alone_ms: float) -> bool:
    """Whether it took longer beside the candidate by more than chance."""
    return beside_ms > alone_ms * (1 + RELATIVE) + ABSOLUTE_MS


def check(beside_ms: float, alone_ms: float, what: str) -> None:
    """Raises CandidateFailure where ``what`` was slower beside the candidate than after its end."""
    if is_slower(beside_ms, alone_ms):
        raise CandidateFailure(
            Status.REJECTED,
            f"{what} took {beside_ms:.4g} ms in turn with the candidate and {alone_ms:.4g} ms once it had ended: "
            "something of it runs on when it should be idle",
            rule=RULE,
        )
