"""Rule ``runs_unasked``: nothing of a candidate may run while it owes no answer.

It is stopped then, but a stopped process can have itself continued, by a timer of its own or by what somebody
else does to its files. On a CPU, where it would work ahead of its clock or take the baseline's time, the judge
asks the kernel how much of the cores its processes have had. A hypervisor that takes a core away adds to that, but
it gives nobody a core again: where the kernel counts time slices, both must have grown.
"""

from __future__ import annotations

from harness.result import CandidateFailure, Status

RULE = "runs_unasked"
ALLOWED_MS = 0.5  # ms of CPU time; 0.3 were seen of processes that were only leaving their core, on a shared host


def check(then_ns: dict[int, int], now_ns: dict[int, int], resumed: bool) -> float:
    """Return the ms of CPU time that processes at rest have had.

    ``resumed`` says that a thread of them was given a core again, or that this is not known. Raises CandidateFailure
    where they are others now, or ran for long after they were resumed.
    """
    ran_ms = (sum(now_ns.values()) - sum(then_ns.values())) / 1e6
    if now_ns.keys() != then_ns.keys() or (resumed and ran_ms > ALLOWED_MS):
        raise CandidateFailure(
            Status.REJECTED,
            f"between an answer and the next request, when it is stopped, its {len(then_ns)} processes ran for "
            f"{ran_ms:.4g} ms, and are {len(now_ns)} now: it had itself continued",
            rule=RULE,
        )
    return max(0.0, ran_ms)
