"""Statistics, when sampling stops, and that a clock measures what it says."""

import time

import pytest
import torch

from harness.timing.convergence import Convergence
from harness.timing.statistics import relative_standard_error, summarise
from harness.timing.wall_clock import WallClock, last_level_cache_bytes


def test_summary_of_a_case_worked_by_hand():
    summary = summarise([1.0, 2.0, 3.0, 4.0, 10.0])
    assert summary["median_ms"] == 3.0 and summary["mean_ms"] == 4.0
    assert summary["std_ms"] == pytest.approx((50 / 4) ** 0.5)
    assert summary["cv"] == pytest.approx((50 / 4) ** 0.5 / 4)
    assert summary["sem"] == pytest.approx((50 / 4) ** 0.5 / 4 / 5**0.5)
    assert (summary["min_ms"], summary["q1_ms"], summary["q3_ms"], summary["max_ms"]) == (1.0, 2.0, 4.0, 10.0)
    assert summary["samples"] == 5 and summary["samples_ms"] == [1.0, 2.0, 3.0, 4.0, 10.0]


def test_no_error_is_known_from_one_sample():
    assert relative_standard_error([1.0]) == float("inf")


def test_regular_samples_cannot_stop_before_the_floor():
    rule = Convergence(target=0.01, max_seconds=60, min_samples=20)
    assert rule.reason([1.0] * 19) is None
    assert rule.reason([1.0] * 20) == "converged"


def test_noise_takes_more_samples_up_to_the_ceiling():
    rule = Convergence(target=0.01, max_seconds=60, min_samples=20, max_samples=100)
    noisy = [1.0, 2.0] * 100
    assert rule.reason(noisy[:60]) is None
    assert rule.reason(noisy[:100]) == "max_samples"


def test_every_series_must_have_converged():
    rule = Convergence(target=0.01, max_seconds=60)
    assert rule.reason([1.0] * 50, [1.0, 2.0] * 25) is None


def test_time_runs_out():
    rule = Convergence(target=0.01, max_seconds=0.0)
    assert rule.reason([1.0, 2.0] * 10) == "max_seconds"


def test_wall_clock_times_the_call_and_nothing_else():
    clock = WallClock(torch.device("cpu"))
    slept = []
    before = [lambda: slept.append(time.sleep(0.1))] * 2
    outputs, times, _ = clock.run(lambda s: time.sleep(s) or s, [0.02, 0.04], before)
    assert outputs == [0.02, 0.04] and len(slept) == 2
    assert 20 <= times[0] < 40 <= times[1] < 100


def test_flush_is_larger_than_the_last_level_cache():
    assert WallClock(torch.device("cpu")).describe()["flush_bytes"] >= 2 * last_level_cache_bytes()


@pytest.mark.gpu
def test_events_time_a_known_sleep_with_the_queue_full():
    from harness.timing.cuda_events import CudaEvents

    timer = CudaEvents(torch.device("cuda", 0))
    clock_hz = torch.cuda.get_device_properties(0).clock_rate * 1e3
    call = lambda cycles: torch.cuda._sleep(cycles)  # noqa: E731
    cycles = [int(clock_hz * 1e-3)] * 8
    timer.run(call, cycles, [lambda: None] * 8)  # learns the host's time
    _, times, full = timer.run(call, cycles, [lambda: None] * 8)
    assert full and all(0.9 < t < 1.5 for t in times)


@pytest.mark.gpu
def test_a_call_that_synchronises_is_seen_to_drain_the_queue():
    from harness.timing.cuda_events import CudaEvents

    timer = CudaEvents(torch.device("cuda", 0))
    _, _, full = timer.run(lambda _: torch.cuda.synchronize(), [0] * 4, [lambda: None] * 4)
    assert not full
