"""Time the baselines once more when the candidate has ended: was one slower beside it?"""

from __future__ import annotations

import statistics

from harness.baselines import EAGER
from harness.integrity import slowed_baseline
from harness.judge.idle_cores import wait_for_idle_cores
from harness.judge.reference.session import ReferenceSession
from harness.judge.time_candidate import Timed
from harness.problem.inputs import fresh_seeds
from harness.result import Result
from harness.timing.interleaved import PLACES, net_times_ms
from harness.timing.speedup import Series

_PATIENCE_S = 10.0  # chosen: what the kernel frees after a candidate's end was seen to take seconds
_ROUNDS_ALONE, _ROUNDS_ALONE_ON_CPU = 5, 3  # whose median counts; chosen: one or two may be disturbed


def time_alone(judge: ReferenceSession, result: Result, timed: Timed) -> None:
    """Time baselines alone, and write it into ``result``.

    On a CPU, and where launches are in the times, the lower of the two figures counts, and of compiled baselines
    everywhere. On a GPU an eager one that is faster alone wherever its tensors lie raises CandidateFailure, rule
    ``slowed_baseline``.
    """
    if judge.conditions.device.type == "cpu":
        if judge.prepared.cores_rest:  # else others work there, who may stay
            wait_for_idle_cores(_PATIENCE_S)
        _lower(result, timed, {name: _alone_on_cpu_ms(judge, timed, name) for name in timed.baselines})
        return
    alone = {name: _alone_ms(judge, timed, name, _ROUNDS_ALONE) for name in timed.baselines}
    if EAGER not in alone:
        _lower(result, timed, alone)
        return
    beside = timed.interleaved.series[EAGER]
    beside_ms, alone_ms = statistics.median(beside.full_means_ms), alone[EAGER]
    if slowed_baseline.slowed(beside_ms, alone_ms):  # by where its tensors lay, or by its host, maybe
        alone_ms = max(alone_ms, *(_alone_elsewhere_ms(judge, timed) for _ in range(PLACES)))
        judge.release_caches()
    alone[EAGER] = alone_ms
    counts = EAGER in timed.interleaved.waits
    if lower := {name: ms for name, ms in alone.items() if counts or name != EAGER}:
        _lower(result, timed, lower)
    if counts:
        return
    result.baselines[EAGER]["alone_ms"] = alone_ms
    if any(beside.full):  # else the host was busy then, and launches are in its times
        slowed_baseline.check(beside_ms, alone_ms)


def _lower(result: Result, timed: Timed, alone_ms: dict[str, float]) -> None:
    """Have the lower of two figures of each baseline count, so that nobody gains by slowing it."""
    lowered_ms, with_speedups = {}, any("speedup" in result.baselines[name] for name in alone_ms)
    for name, ms in alone_ms.items():
        beside_ms = statistics.median(timed.interleaved.series[name].full_means_ms)
        slowed = slowed_baseline.slowed(beside_ms, ms)
        lowered_ms[name] = beside_ms - ms if slowed else 0.0
        timed.interleaved.scale(name, ms / beside_ms if slowed else 1.0)
    timed.write(result, with_speedups)
    for name, ms in alone_ms.items():
        result.baselines[name] |= {"alone_ms": ms, "lowered_ms": round(lowered_ms[name], 6)}


def _alone_on_cpu_ms(judge: ReferenceSession, timed: Timed, name: str) -> float:
    """Return ms of a call of a baseline, in a few rounds like those beside the candidate."""
    means_ms = []
    for _ in range(_ROUNDS_ALONE_ON_CPU):
        seeds = fresh_seeds(len(timed.interleaved.series[name].rounds_ms[0]))
        means_ms.append(statistics.mean(judge.time_model(timed.baselines[name], seeds).times_ms))
    return statistics.median(means_ms)


def _alone_ms(judge: ReferenceSession, timed: Timed, name: str, rounds: int) -> float:
    """Return ms of a call of a baseline, in so many rounds like those beside the candidate."""
    alone, held = Series(), name not in timed.interleaved.waits
    for _ in range(rounds):
        seeds = fresh_seeds(len(timed.interleaved.series[name].rounds_ms[0]))
        is_eager = name == EAGER
        played = judge.time_reference(seeds, held) if is_eager else judge.time_model(timed.baselines[name], seeds, held)
        played.release()
        alone.add(net_times_ms(played, judge.timer.overhead_ms(played.empty_ms)), played.queue_full, False)
    return statistics.median(alone.full_means_ms)


def _alone_elsewhere_ms(judge: ReferenceSession, timed: Timed) -> float:
    judge.reshuffle()
    _alone_ms(judge, timed, EAGER, 1)  # allocates
    return _alone_ms(judge, timed, EAGER, _ROUNDS_ALONE)
