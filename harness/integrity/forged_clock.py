"""Rule ``forged_clock``: the times that a worker reports must agree with the judge's own clock.

Where they do not, the judge's figure less its uncertainty counts. Far apart, the candidate is rejected.

The judge's burst is hot and the worker's calls are cold, so an honest call takes less in a burst. Where the reference
takes longer in a burst than in its rounds, a candidate may too: a CPU is shared, and inputs elsewhere in a GPU's
memory cost up to an eighth. 56 honest records of an H100 exceed their claim by 0.31 ms a burst at most, and 207 of
H100 and H200, by an earlier form of this clock, by 2.6 %.
"""

from __future__ import annotations

from harness.result import CandidateFailure, Status

RULE = "forged_clock"
RELATIVE = {"cuda": 0.03, "cpu": 0.5}
# The gap between two kernels, and what is not known of it; on a CPU what Python takes to answer a request, 0.03 to 0.1.
ABSOLUTE_MS = {"cuda": 0.003, "cpu": 0.1}
BURST_MS = {"cuda": 0.4, "cpu": 0.0}  # of a whole burst: until the device begins it, and until its outputs are read
BURST_SHARE = 0.35  # of a call, at most: how many of them make a burst depends on what the candidate says
# A candidate may see to it that the reference takes long. On a CPU it excuses waiting for a core, not work.
MOST_LOAD = {"cuda": 1.12, "cpu": 4.0}
# So many times what is allowed is no accident. On a CPU others' work, which comes and goes within a burst, has been
# seen to make it 1.9 for an honest candidate (a test run of two processes on two cores, 2026-11-23).
FORGED = {"cuda": 1.5, "cpu": 3.0}
# So many times what is allowed, by CPU time too. Where others take turns on one core, an honest call had 1.04 times as
# much (a test run beside an attack, 2026-11-24). Below it nobody is accused, and the judge's figure counts.
FORGED_WORK = 2.0
# The share of the cores that others have, from which on nobody is accused, and has no speedup: an honest candidate had
# 3.3 ms, and twice its CPU time, for a claim of 0.07 ms (two cores beside seven busy programs, 2026-11-28).
BUSY = 0.6
UNHELD_MS = 0.2  # where launches could not be kept out; the judge's figure is the one that counts then
UNHELD_SHARE = 0.02  # of it, and one reading is as good as the next


def allowed_ms(claimed_ms: float, calls: int, held: bool, device_type: str, load: float | None) -> float:
    """Return what each of so many calls may take by the judge's clock.

    ``load`` is how much longer the reference took in a burst than in its rounds; None where it had no rounds.
    """
    if not held:
        return 2 * claimed_ms + UNHELD_MS
    most = MOST_LOAD[device_type]
    if load is None:
        load = most if device_type == "cuda" else 1.0
    absolute_ms = max(ABSOLUTE_MS[device_type], min(BURST_MS[device_type] / calls, BURST_SHARE * claimed_ms))
    return (claimed_ms * (1 + RELATIVE[device_type]) + absolute_ms) * min(max(1.0, load), most)


def free_ms(claimed_ms: float, allowed_ms: float, held: bool) -> float:
    """Return what of a call's time by the judge's clock is not added to what its process reports."""
    return allowed_ms if held else claimed_ms


def agree(claimed_ms: float, judged_ms: float, allowed_ms: float, held: bool) -> bool:
    """Return whether another reading could change nothing that matters: work of others only ever adds time."""
    share = 0.0 if held else UNHELD_SHARE
    return judged_ms <= (1 + share) * free_ms(claimed_ms, allowed_ms, held)


def is_forged(judged_ms: float, allowed_ms: float, held: bool, device_type: str, worked_ms: float | None) -> bool:
    """Return whether a call took far longer than is allowed.

    ``worked_ms`` is the least that it can have taken on a CPU by its CPU time. Where that is not much, the call waited
    for a core that others had.
    """
    too_long = judged_ms > (FORGED[device_type] if held else 1.0) * allowed_ms
    return too_long and (worked_ms is None or worked_ms > FORGED_WORK * allowed_ms)


def check(
    claimed_ms: float,
    judged_ms: float,
    calls: int,
    allowed_ms: float,
    held: bool,
    device_type: str,
    worked_ms: float | None = None,
) -> None:
    """Raise CandidateFailure where each of ``calls`` in a row took far longer than is allowed, by ``is_forged``."""
    if is_forged(judged_ms, allowed_ms, held, device_type, worked_ms):
        raise CandidateFailure(
            Status.REJECTED,
            f"its process reports {claimed_ms:.4g} ms a call, but {calls} calls in a row took {judged_ms:.4g} ms each "
            f"by the judge's clock, from when their inputs existed until their outputs were there; "
            f"up to {allowed_ms:.4g} ms would agree",
            rule=RULE,
        )
