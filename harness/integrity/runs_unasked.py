"""Rule ``runs_unasked``: nothing of a candidate may run while it owes no answer.

It is stopped then, but a stopped process can have itself continued, by a timer of its own or by what somebody
else does to its files. On a CPU, where it would work ahead of its clock or take the baseline's time, the judge
counts how often each of its threads has left a core: no thread can run and stop again without one more.
"""

from __future__ import annotations

from harness.host import Thread
from harness.result import CandidateFailure, Status

RULE = "runs_unasked"


def check(then: dict[int, Thread], now: dict[int, Thread]) -> None:
    """Raises CandidateFailure where threads that were at rest are others now, or have run meanwhile."""
    ran = [number for number in then | now if then.get(number) != now.get(number)]
    if ran:
        raise CandidateFailure(
            Status.REJECTED,
            f"{len(ran)} of its {len(then | now)} threads ran between an answer and the next request, when it owes "
            "none and is stopped: it had itself continued",
            rule=RULE,
        )
