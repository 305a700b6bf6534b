"""What the baseline's time once the candidate has ended does to a result of a GPU, here a pretended one."""

import itertools
from types import SimpleNamespace

import pytest
import torch

from harness.baselines import EAGER
from harness.judge.reference import PUBLISHED
from harness.judge.time_candidate import Measurement
from harness.result import CandidateFailure
from harness.timing import Round
from harness.timing.interleaved import CANDIDATE, PLACES, InterleavedTiming
from harness.timing.wall_clock import WallClock

BESIDE_MS = 1.5


@pytest.fixture
def timed_alone():
    """The eager baseline's record where it took 1.5 ms beside a candidate of 1 ms, and ``alone_ms`` in rounds alone.

    The last of these goes on; the first five are where its tensors lay, and six each in every other place.
    """

    def time_alone(alone_ms, waits=frozenset()):
        def play(calls, first, waiting):
            times = {CANDIDATE: 1.0, EAGER: BESIDE_MS}
            return {name: Round([], [], [ms] * calls, name not in waits) for name, ms in times.items()}

        *known, last = alone_ms
        left, moved = itertools.chain(known, itertools.repeat(last)), []
        sides = SimpleNamespace(
            timer=WallClock(torch.device("cpu")),
            reference=SimpleNamespace(setting=SimpleNamespace(timed=PUBLISHED)),
            play_reference=lambda trial, seeds, held: Round([], [], [next(left)] * len(seeds), held),
            move=lambda: moved.append(1),
            trim=lambda: None,
        )
        contest = InterleavedTiming(play, sides.timer, torch.device("cpu"), 0.01, set(waits))
        contest.run(calls=2)
        conditions = SimpleNamespace(device=torch.device("cuda"), baselines=[EAGER])
        measurement = Measurement(sides, conditions, None, print)
        measurement._baselines = {EAGER: None}
        result = SimpleNamespace(timing={}, baselines={EAGER: contest.record(EAGER) | contest.comparison(EAGER)})
        try:
            measurement.time_alone(result, contest)
        except CandidateFailure as failure:
            return result.baselines[EAGER] | {"places_alone": len(moved), "rule": failure.rule}
        return result.baselines[EAGER] | {"places_alone": len(moved), "rule": None}

    return time_alone


@pytest.mark.parametrize(("alone_ms", "speedup"), [(1.0, 1.0), (1.45, 1.5), (3.0, 1.5)])
def test_on_a_cpu_the_lower_figure_of_a_baseline_counts(alone_ms, speedup):
    def play(calls, first, waiting):
        return {name: Round([], [], [ms] * calls) for name, ms in {CANDIDATE: 1.0, "compile": BESIDE_MS}.items()}

    timer, cpu = WallClock(torch.device("cpu")), torch.device("cpu")
    sides = SimpleNamespace(timer=timer, play=lambda model, seeds: Round([], [], [alone_ms] * len(seeds)))
    contest = InterleavedTiming(play, timer, cpu, 0.01)
    contest.run(calls=2)
    measurement = Measurement(sides, SimpleNamespace(device=cpu, baselines=["compile"]), None, print)
    measurement._baselines = {"compile": None}
    result = SimpleNamespace(timing={}, baselines={})
    measurement.time_alone(result, contest)
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
