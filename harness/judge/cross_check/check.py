"""Compare the times that a worker reports with the device's profile and the judge's own clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from harness.baselines import EAGER
from harness.integrity import forged_clock, overwritten_inputs
from harness.judge.cross_check import kernel_profile
from harness.judge.cross_check.base import Called, Claim, NotHeld, NotRead, Reading, WallClockCheck
from harness.judge.session import EvaluationSession, Left, number
from harness.judge.time_candidate import Timed
from harness.problem.inputs import fresh_seeds, tensors_of
from harness.process.procfs import usable_cores
from harness.result import CandidateFailure, Result, Status
from harness.tensors.dtypes import is_finite
from harness.timing import cupti
from harness.timing.interleaved import CANDIDATE
from harness.timing.rounds import outputs_of

_LAUNCH_BOUND_CALLS = 20  # back to back; chosen: an interruption of the host is a small part of them
_PROFILED_CALLS = 5  # of which the one with the median span is kept


def cross_check(clock: WallClockCheck, result: Result, timed: Timed) -> None:
    """Write into ``result`` what CUPTI and the judge's own clock say about the candidate's time.

    Where the judge's clock says more, the difference is added to the candidate's times. Where it cannot be read,
    the result has no speedup. Raises NotHeld where the candidate's launches cannot be kept out of its calls, and
    CandidateFailure, rule ``forged_clock``, where the times are far apart.
    """
    session, timing = clock.session, result.timing
    if session.conditions.device.type == "cuda":
        _profile_launches(session, result, timed)
        if CANDIDATE not in timed.interleaved.waits and timing.get("profile", {}).get("side_launches"):
            raise NotHeld
        if any(map(timed.interleaved.is_close, timed.baselines)):
            timed.interleaved.rerun_with_new_placement(session.reshuffle)
            session.release_caches()
            timed.write(result)
    try:
        reading = _read(clock, result, timed)
        _check_cores_are_free(result, reading, session.conditions.device.type)
    except NotRead as error:
        timed.write(result, with_speedups=False)
        timing["cross_check"] = f"not read: {error}"
        return
    allowed_ms = _allowed_ms(result, reading, session.conditions.device.type)
    timing["cross_check"] = reading.to_json() | {"allowed_ms": round(allowed_ms, 6)}
    claimed_ms, kind = _claimed_ms(timing), session.conditions.device.type
    forged_clock.check(
        claimed_ms, reading.call_ms, reading.calls, allowed_ms, reading.held, kind, _worked_ms(reading)
    )
    waited_more = _waited_more(result, reading, timed.interleaved.waited(CANDIDATE))
    judged, held = _judged(result, reading, kind, waited_more), reading.held
    timing["cross_check"]["waited_more"] = round(waited_more, 6)
    penalty_ms = max(0.0, *(ms - forged_clock.free_ms(claimed_ms, most_ms, held) for ms, most_ms in judged))
    timing["cross_check"]["penalty_ms"] = round(penalty_ms, 6)
    if penalty_ms > 0:
        timed.interleaved.add_penalty(CANDIDATE, penalty_ms)
        timed.write(result)


def _profile_launches(session: EvaluationSession, result: Result, timed: Timed) -> None:
    """Learn how many launches a call of each side has: a verdict allows for what lies between them."""
    calls = result.timing["calls_a_round"]
    answer = session.ask(op="launch_bound", seeds=fresh_seeds(min(_LAUNCH_BOUND_CALLS, calls)))
    result.timing["launch_bound_ms"] = number(answer.get("wall_ms"))
    if not cupti.available():
        return
    profile = result.timing["profile"] = _profile(session, calls)
    models = {EAGER: session.reference.timed_model(), **timed.baselines}
    launches = {name: session.count_launches(model) for name, model in models.items()}
    launches[CANDIDATE] = kernel_profile.believed_launches(profile["launches"], result.timing["median_ms"])
    timed.interleaved.launches = launches
    timed.write(result)


def _profile(session: EvaluationSession, calls_a_round: int) -> dict[str, Any]:
    """Return what the device runs in a call, of a few the one with the median span."""
    calls = min(_PROFILED_CALLS, calls_a_round)
    found = []
    for _ in range(-(-_PROFILED_CALLS // calls)):
        found.append(kernel_profile.checked(session.ask(op="profile", seeds=fresh_seeds(calls))))
    return sorted(found, key=lambda one: one["span_ms"])[len(found) // 2]


def _read(clock: WallClockCheck, result: Result, timed: Timed) -> Reading:
    """Read the judge's clock on bursts of as many calls as fit.

    Raises NotHeld, and NotRead where not even a burst of one call fits the memory, and not for want of the
    candidate's.
    """
    session, interleaved = clock.session, timed.interleaved
    claimed_ms, kind = _claimed_ms(result.timing), session.conditions.device.type
    held = CANDIDATE not in interleaved.waits
    calls = clock.calls(claimed_ms, interleaved.launches.get(CANDIDATE, 1), held)

    def claim_by(reading: Reading) -> Claim:
        waited_more = _waited_more(result, reading, interleaved.waited(CANDIDATE))
        judged, held = _judged(result, reading, kind, waited_more), reading.held
        if all(forged_clock.agree(claimed_ms, ms, most_ms, held) for ms, most_ms in judged):
            return Claim.AGREES
        allowed_ms = _allowed_ms(result, reading, kind)
        is_forged = forged_clock.is_forged(reading.call_ms, allowed_ms, held, kind, _worked_ms(reading))
        return Claim.FORGED if is_forged else Claim.DIFFERS

    made_room = False
    while calls > 0:
        try:
            reference_launches = interleaved.launches.get(EAGER, 1)
            return clock.read(calls, held, reference_launches, lambda call: _compare(clock, call), claim_by)
        except NotHeld:
            if calls == 1:
                raise
            calls //= 2  # it may only have more launches than the queue holds
            continue
        except torch.OutOfMemoryError:
            pass  # the judge's
        except CandidateFailure as failure:
            # On a CPU its memory does not depend on how many calls there are: it would only have another try.
            out_of_memory = failure.status is Status.OUT_OF_MEMORY and kind == "cuda"
            if not out_of_memory or made_room and calls == 1 and clock.leaves_room():
                raise
        session.release_caches()
        if made_room:
            calls //= 2
        made_room = True
    session.check_memory_hog()
    raise NotRead("a call's inputs and outputs, once more, do not fit the memory")


def _check_cores_are_free(result: Result, reading: Reading, device_type: str) -> None:
    """Raise NotRead where the candidate would be rejected, and others have the cores: it may have waited for them.

    Its threads have CPU time while they wait for each other, so that what it worked shows less there.
    """
    allowed_ms = _allowed_ms(result, reading, device_type)
    if reading.others >= forged_clock.BUSY and forged_clock.is_forged(
        reading.call_ms, allowed_ms, reading.held, device_type, _worked_ms(reading)
    ):
        raise NotRead(
            f"a call took {reading.call_ms:.4g} ms where {allowed_ms:.4g} ms would agree, while other programs had "
            f"{reading.others:.0%} of the cores; evaluate again when they are free"
        )


def _claimed_ms(timing: dict[str, Any]) -> float:
    """Return the lower of median and mean: both are told, and of a fifth of the rounds a median shows nothing."""
    return min(timing["median_ms"], timing["mean_ms"])


def _worked_ms(reading: Reading) -> float | None:
    """Return the least ms that a call can have taken by its CPU time; None where nobody counts that."""
    return None if reading.cpu_ms is None else max(reading.cpu_ms / usable_cores(), reading.busiest_ms)


def _cold_ms(result: Result, reading: Reading, device_type: str) -> float:
    """Return what cold inputs cost a call of the reference, where the judge's own hot figure is the time.

    A candidate whose calls could not be held reads the same inputs, and its rounds, which are cold, do not count.
    """
    eager_ms = result.baselines.get(EAGER, {}).get("median_ms")
    if reading.held or device_type != "cuda" or not eager_ms or not reading.reference_ms:
        return 0.0
    return max(0.0, eager_ms - reading.reference_ms)


def _waited_more(result: Result, reading: Reading, waited: float) -> float:
    """Return how many times as long a call took in its rounds as in the burst, because others had the cores.

    In its rounds the candidate's threads took ``waited`` times as long as they worked: it may leave that out of its
    claim, and in a quiet burst nobody waits. The reference tells how much busier the rounds were.
    """
    load = _load(result, reading)
    return min(waited, max(1.0, 1 / load)) if load else waited


def _judged(result: Result, reading: Reading, device_type: str, waited_more: float) -> list[tuple[float, float]]:
    """Return the judge's figures for a call, as long as it takes in a round, each with what would agree.

    On a CPU there are two: its time, which is longer on a busy machine, and the least that it worked, which is not.
    """
    call_ms = (reading.call_ms + _cold_ms(result, reading, device_type)) * waited_more
    judged = [(call_ms, _allowed_ms(result, reading, device_type))]
    if (worked_ms := _worked_ms(reading)) is not None:
        judged.append((worked_ms * waited_more, _allowed_ms(result, replace(reading, reference_ms=None), device_type)))
    return judged


def _allowed_ms(result: Result, reading: Reading, device_type: str) -> float:
    load = _load(result, reading)
    return forged_clock.allowed_ms(_claimed_ms(result.timing), reading.calls, reading.held, device_type, load)


def _load(result: Result, reading: Reading) -> float | None:
    """Return by how much longer the reference took in the burst than in its rounds; None where nobody asked."""
    eager_ms, in_a_burst_ms = result.baselines.get(EAGER, {}).get("median_ms"), reading.reference_ms
    return in_a_burst_ms / eager_ms if eager_ms and in_a_burst_ms else None


def _compare(clock: WallClockCheck, call: Called) -> None:
    """Compare the outputs of one call of a burst, and what became of its inputs, as they were after it."""
    session, setting, case = clock.session, clock.setting, call.trial
    expected = outputs_of(clock.reference, setting, call.inputs, call.seed)
    if case == setting.rare and not all(map(is_finite, expected)):
        return  # the function has no value there
    for index, (actual, tensor) in enumerate(zip(call.outputs, expected)):
        which = "the output of a call in a row" if len(expected) == 1 else f"output {index} of a call in a row"
        left = Left(lambda actual=actual: actual, lambda actual=actual: actual)
        session.check_output(left, tensor, which, case, index, call.drawn)
    if setting.workload.problem.overwrites_inputs:
        return  # they are outputs
    for index, (left, tensor) in enumerate(zip(call.inputs_left, tensors_of(call.inputs))):
        overwritten_inputs.check(left, tensor, index)
