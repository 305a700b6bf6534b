"""Rule ``out_of_bounds``: a library may not write beside the buffers that it is given.

It is told by the process that the library runs in, so a hostile one can hide it; a mistake cannot.
"""

from __future__ import annotations

from typing import Any

from harness.result import CandidateFailure, Status

RULE = "out_of_bounds"
_MOST_NAMED = 5  # buffers in a message


def check(overruns: Any) -> None:
    """Raise CandidateFailure where a worker names buffers, as 'behind output 0', beside which was written."""
    if not overruns:
        return
    places = overruns if isinstance(overruns, list) else ["somewhere"]
    named = ", ".join(str(where)[:100] for where in places[:_MOST_NAMED])
    raise CandidateFailure(
        Status.REJECTED,
        f"it wrote outside of its buffers: {named}; check the bounds of loops and the last, partial block",
        rule=RULE,
    )
