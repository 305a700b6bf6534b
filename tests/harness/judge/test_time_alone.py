"""What the baseline's time once the candidate has ended does to a result of a GPU, here a pretended one."""

import itertools
from types import SimpleNamespace

import pytest
import torch

from harness.baselines import EAGER
from harness.judge.time_alone import time_alone
from harness.judge.time_candidate import Timed
from harness.result import CandidateFailure
from harness.timing import Round
from harness.timing.interleaved import CANDIDATE, PLACES, InterleavedTiming
from harness.timing.wall_clock import WallClock

BESIDE_MS = 1.5
CPU = torch.device("cpu")


def written(timed):
    result = SimpleNamespace(timing={}, baselines={}, conditions={})
    timed.write(result)
    return result


@pytest.fixture
def timed_alone():
    """The eager baseline's record where it took 1.5 ms beside a candidate of 1 ms, and ``alone_ms`` in rounds alone.

    The last of these goes on; the first five are where its tensors lay, and six each in every other place.
    """

    def time(alone_ms, waits=frozenset()):
        def play(calls, first, waiting):
            times = {CANDIDATE: 1.0, EAGER: BESIDE_MS}
            return {name: Round([], [], [ms] * calls, name not in waits) for name, ms in times.items()}

        *known, last = alone_ms
        left, moved = itertools.chain(known, itertools.repeat(last)), []
        judge = SimpleNamespace(
            timer=WallClock(CPU),
            conditions=SimpleNamespace(device=torch.device("cuda"), baselines=[EAGER]),
            time_reference=lambda seeds, held: Round([], [], [next(left)] * len(seeds), held),
            reshuffle=lambda: moved.append(1),
            release_caches=lambda: None,
        )
        interleaved = InterleavedTiming(play, judge.timer, CPU, 0.01, set(waits))
        interleaved.run(calls=2)
        timed = Timed(interleaved, {EAGER: None})
        result, rule = written(timed), None
        try:
            time_alone(judge, result, timed)
        except CandidateFailure as failure:
            rule = failure.rule
        return result.baselines[EAGER] | {"places_alone": len(moved), "rule": rule}

    return time


@pytest.mark.parametrize(("alone_ms", "speedup"), [(1.0, 1.0), (1.45, 1.5), (3.0, 1.5)])
def test_on_a_cpu_the_lower_figure_of_a_baseline_counts(alone_ms, speedup):
    def play(calls, first, waiting):
        return {name: Round([], [], [ms] * calls) for name, ms in {CANDIDATE: 1.0, "compile": BESIDE_MS}.items()}

    judge = SimpleNamespace(
        conditions=SimpleNamespace(device=CPU, baselines=["compile"]),
        prepared=SimpleNamespace(cores_rest=False),
        time_model=lambda model, seeds: Round([], [], [alone_ms] * len(seeds)),
    )
    interleaved = InterleavedTiming(play, WallClock(CPU), CPU, 0.01)
    interleaved.run(calls=2)
    timed = Timed(interleaved, {"compile": None})
    result = written(timed)
    time_alone(judge, result, timed)
    record = result.baselines["compile"]
    assert record["speedup"] == pytest.approx(speedup) and record["alone_ms"] == alone_ms


def test_one_that_is_as_fast_alone_stays(timed_alone):
    record = timed_alone([1.4])
    assert (record["alone_ms"], record["rule"], record["places_alone"]) == (1.4, None, 0)
    assert record["speedup"] == pytest.approx(BESIDE_MS)


def test_one_that_is_faster_alone_wherever_it_lies_gives_the_candidate_away(timed_alone):
    record = timed_alone([1.2])
    assert (record["alone_ms"], record["rule"], record["places_alone"]) == (1.2, "slowed_baseline", PLACES)


def test_one_that_is_as_slow_alone_in_some_place_accuses_nobody(timed_alone):
    record = timed_alone([1.2] * (5 + 6) + [1.45] * 6 + [1.2])
    assert (record["alone_ms"], record["rule"], record["places_alone"]) == (1.45, None, PLACES)
    assert record["speedup"] == pytest.approx(BESIDE_MS)


def test_with_launches_in_its_times_nobody_is_accused_and_nobody_gains(timed_alone):
    record = timed_alone([1.0], waits={EAGER})
    assert (record["alone_ms"], record["rule"]) == (1.0, None)
    assert record["lowered_ms"] == pytest.approx(BESIDE_MS - 1.0)
    assert record["speedup"] == pytest.approx(1.0) and record["median_ms"] == pytest.approx(1.0)


def test_with_launches_in_its_times_a_host_that_is_as_slow_again_costs_nothing(timed_alone):
    record = timed_alone([1.0] * (5 + 6) + [1.45] * 6 + [1.0], waits={EAGER})
    assert record["lowered_ms"] == 0 and record["speedup"] == pytest.approx(BESIDE_MS)


@pytest.mark.parametrize("names", [["compile"], ["compile", EAGER], [EAGER, "compile"]])
def test_on_a_gpu_each_baseline_is_timed_again_whichever_comes_first(names):
    """A candidate that slowed a compiled one was told ten times as fast."""

    def play(calls, first, waiting):
        times = {CANDIDATE: 1.0, EAGER: 1.0, "compile": 10.0}
        return {name: Round([], [], [times[name]] * calls) for name in (CANDIDATE, *names)}

    judge = SimpleNamespace(
        timer=WallClock(CPU),
        conditions=SimpleNamespace(device=torch.device("cuda"), baselines=names),
        time_reference=lambda seeds, held: Round([], [], [1.0] * len(seeds), held),
        time_model=lambda model, seeds, held: Round([], [], [1.0] * len(seeds), held),
    )
    interleaved = InterleavedTiming(play, judge.timer, CPU, 0.01)
    interleaved.run(calls=2)
    timed = Timed(interleaved, dict.fromkeys(names))
    result = written(timed)
    time_alone(judge, result, timed)
    compiled = result.baselines["compile"]
    assert compiled["speedup"] == pytest.approx(1.0) and compiled["lowered_ms"] == pytest.approx(9.0)
    assert all(result.baselines[name]["alone_ms"] == 1.0 for name in names)
