"""A worker's profile and times are taken apart before they are believed, and never make an interval that is none."""

import math

import pytest
import torch

from harness.judge.cross_check import kernel_profile
from harness.judge.session import number
from harness.result import CandidateFailure, Status
from harness.timing import Round
from harness.timing.cuda_events import CudaEvents
from harness.timing.interleaved import CANDIDATE, InterleavedTiming
from harness.timing.wall_clock import WallClock

KERNEL = {"name": "k", "launches": 1, "ms": 0.1, "registers": 8, "shared_bytes": 0, "grid": [1], "block": [32]}
ANSWER = {"span_ms": 0.1, "launches": 1, "side_launches": 0, "kernels": [KERNEL]}


class AsOnAGpu(WallClock):
    """A host's clock with the doubt between two runs that a GPU's has."""

    between_runs = CudaEvents.run_to_run_rel


def timed(candidate_ms, baseline_ms, launches):
    def play(calls, first, waits):
        sides = {CANDIDATE: candidate_ms, "eager": baseline_ms}
        return {name: Round([], [], [ms] * calls) for name, ms in sides.items()}

    contest = InterleavedTiming(play, AsOnAGpu(torch.device("cpu")), torch.device("cpu"), 0.01)
    contest.run(calls=1)
    contest.launches = {CANDIDATE: launches, "eager": 1}
    return contest.comparison("eager")


@pytest.mark.parametrize("launches", [0, 1, 100, 10**11])
@pytest.mark.parametrize("candidate_ms", [1e-12, 0.01, 1e11])
def test_an_interval_is_positive_and_holds_its_ratio_whatever_a_worker_reports(candidate_ms, launches):
    found = timed(candidate_ms, 0.02, launches)
    low, high = found["interval"]
    assert 0 < low <= found["speedup"] <= high < math.inf
    assert math.isfinite(math.log(high / low))


def test_no_more_launches_are_believed_than_fit_the_time_of_a_call():
    assert kernel_profile.believed_launches(100, call_ms=0.01) == 10
    assert kernel_profile.believed_launches(100, call_ms=10.0) == 100
    assert kernel_profile.believed_launches(0, call_ms=10.0) == kernel_profile.believed_launches(7, call_ms=1e-6) == 1


def test_many_launches_that_a_worker_makes_up_do_not_hide_that_it_is_twice_as_slow():
    believed = kernel_profile.believed_launches(100, call_ms=0.01)
    assert timed(0.01, 0.005, believed)["verdict"] == "slower"


@pytest.mark.parametrize(
    "changed",
    [{"launches": value} for value in (-1, math.nan, math.inf, 1e12, 10**400, "1", None, True, [])]
    + [{"side_launches": -1}, {"side_launches": None}]
    + [{"span_ms": -0.1}, {"kernels": None}, {"kernels": [KERNEL] * 101}, {"kernels": [KERNEL | {"ms": math.nan}]}]
    + [{"kernels": [KERNEL | {"grid": [-1]}]}, {"kernels": ["k"]}],
    ids=repr,
)
def test_what_is_no_profile_is_the_candidates_failure(changed):
    assert kernel_profile.checked(ANSWER) == ANSWER
    with pytest.raises(CandidateFailure) as failure:
        kernel_profile.checked(ANSWER | changed)
    assert failure.value.status is Status.CRASHED


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, 1e12, 10**400, "1", None, True, [1.0]], ids=repr)
def test_what_is_no_time_is_the_candidates_failure(value):
    with pytest.raises(CandidateFailure):
        number(value)


def test_names_of_kernels_are_text_that_can_be_sent_and_shown():
    named = KERNEL | {"name": "k\n\ud800\x1b[2J" + "x" * 1000}
    kernel, = kernel_profile.checked(ANSWER | {"kernels": [named]})["kernels"]
    assert kernel["name"].startswith(r"k \ud800\x1b[2Jxx") and len(kernel["name"]) < 600
