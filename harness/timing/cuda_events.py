"""Device time of a call by CUDA events, with the queue kept full and a cold L2.

Before a call a spin kernel holds the device until the host has enqueued all of
it, so that launch latency is not in the figure, and a buffer of twice the L2 is
written. A candidate that synchronises inside its call drains the queue, and one
with more launches than the queue holds waits for it; their figures then contain
launches, and ``queue_full`` says so.

No two calls are in the queue at once. The device fetches launches ahead, a few at
a time; with some twenty behind it a call of one kernel took 0.5 or 1.5 us longer
on an H100, by its place in the queue.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch

from harness import cuda_driver
from harness.timing import cupti
from harness.timing.cupti import Activity

_MIN_SPIN_S, _MAX_SPIN_S = 0.5e-3, 0.1
_SPIN_MARGIN = 1.5
_CALIBRATION_CALLS = 16
_CALIBRATION_GROUPS = 8
_CALIBRATION_TRIES = 40
# How far two processes that do the same may differ: scripts/bench/timing_spread.py. A launch takes one of two times
# that are 0.17 to 0.25 us apart on an H100 and an H200, by the hardware channel that a stream has: a process's luck.
_BETWEEN_RUNS, _BETWEEN_LAUNCHES_MS = 0.005, 0.25e-3

_unforeseeable = random.SystemRandom()


class CudaEvents:
    method = "cuda_events"
    limits = {"target": 0.005, "max_seconds": 2.5}
    noise = 0.10  # interquartile range over median, above which a series is not stable

    def __init__(self, device: torch.device):
        properties = torch.cuda.get_device_properties(device)
        self._clock_hz = getattr(properties, "clock_rate", 2_000_000) * 1e3
        self._flush = torch.empty(2 * properties.L2_cache_size, dtype=torch.int8, device=device)
        self._host_s = 0.001  # what the host takes to enqueue a call; learned call by call
        self._device = device

    @cached_property
    def overhead_ms(self) -> float:
        """What two events around a kernel add to it: their own time and the gap before the kernel begins.

        Measured with a kernel of one element against CUPTI's word on how long that took; 0
        where there is no CUPTI, or the host too busy to keep the queue full even once.
        """
        if not cupti.available():
            return 0.0
        tiny = torch.zeros(1, device=self._device)
        nothing = [lambda: None] * _CALIBRATION_CALLS
        call = lambda _: tiny.add_(1)  # noqa: E731
        means: list[float] = []
        for _ in range(_CALIBRATION_TRIES):
            *_, times_ms, queue_full = self.run(call, [list] * len(nothing), nothing)
            if queue_full:  # otherwise a busy host's launches are in it
                means.append(statistics.mean(times_ms))
            if len(means) == _CALIBRATION_GROUPS:
                break
        own = [sum(kernel.ms for kernel in kernels) for kernels in self.profile(call, [[]] * len(nothing), nothing)]
        return max(0.0, statistics.median(means) - statistics.mean(own)) if means and own else 0.0

    @cached_property
    def _flushing(self) -> tuple:
        """What a flush looks like among activities."""
        with cupti.recording() as activities:
            self._flush.zero_()
        return _like(activities[-1])

    def between_runs(self, median_ms: float, launches: int) -> float:
        """How far two runs of the same call, of so many launches, may differ; relative."""
        return _BETWEEN_RUNS + launches * _BETWEEN_LAUNCHES_MS / median_ms

    def describe(self) -> dict[str, Any]:
        return {
            "method": self.method, "cache": "cold", "flush_bytes": self._flush.numel(),
            "overhead_ms": round(self.overhead_ms, 6),
        }  # fmt: skip

    def run(
        self, call: Callable, draws: list[Callable[[], list]], before: list[Callable]
    ) -> tuple[list[list], list, list[float], bool]:
        """Inputs, outputs and milliseconds of one call for each of ``draws``, and whether the queue stayed full.

        All are drawn ahead, to keep the queue full, and in an order of their own, so that a call's place in
        the round does not tell its addresses. ``before`` holds what is to be done right before each call,
        outside of its time.
        """
        order = _unforeseeable.sample(range(len(draws)), len(draws))
        drawn = {i: draws[i]() for i in order}
        inputs = [drawn[i] for i in range(len(draws))]
        outputs, times_ms, queue_full = [], [], True
        for arguments, prepare in zip(inputs, before):
            output, ms, full = self._time(call, arguments, prepare)
            outputs.append(output)
            times_ms.append(ms)
            queue_full = queue_full and full
        return inputs, outputs, times_ms, queue_full

    def _time(self, call: Callable, arguments: list, prepare: Callable) -> tuple[Any, float, bool]:
        """Output and milliseconds of one call, and whether the device waited until all of it was enqueued."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        cuda_driver.library().cuCtxResetPersistingL2Cache()
        spin_s = min(max(_SPIN_MARGIN * self._host_s, _MIN_SPIN_S), _MAX_SPIN_S)
        torch.cuda._sleep(int(spin_s * self._clock_hz))
        begin = time.perf_counter()
        prepare()
        self._flush.zero_()
        start.record()
        output = call(arguments)
        end.record()
        full = not start.query()  # has not begun yet
        host_s = time.perf_counter() - begin
        # a call that waits for the device has waited for the spin too: a longer one would be waited for as well
        self._host_s = host_s if full else max(self._host_s, host_s - spin_s)
        torch.cuda.synchronize()
        return output, start.elapsed_time(end), full

    def profile(self, call: Callable, inputs: list[list], before: list[Callable]) -> list[list[Activity]]:
        """What the device ran in each call, in the conditions of ``run``: between its flush and the next spin."""
        _ = self._flushing  # not to be found out while recording
        host_s = self._host_s
        with cupti.recording() as activities:
            self._time(call, inputs[0], before[0])  # learns how much slower recorded launches are
            for arguments, prepare in zip(inputs, before):
                self._time(call, arguments, prepare)
            torch.cuda._sleep(1)  # a spin behind the last call too
        self._host_s = host_s
        calls: list[list[Activity]] = []
        for activity in activities:
            if _like(activity) == self._flushing:
                calls.append([])
            elif calls:
                calls[-1].append(activity)
        return [ran[:-1] for ran in calls[1:]]

    def launch_bound_ms(self, call: Callable, inputs: list[list]) -> float:
        """Wall time a call, back to back and hot: what a caller pays who launches one after the other."""
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for arguments in inputs:
            call(arguments)
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) * 1e3 / len(inputs)


def _like(activity: Activity) -> tuple:
    return activity.name, activity.bytes, activity.grid, activity.block
