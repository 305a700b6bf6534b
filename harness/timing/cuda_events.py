"""Device time of a call by CUDA events, with the queue kept full and a cold L2.

Before a call a spin kernel holds the device until the host has enqueued all of
it, so that launch latency is not in the figure, and a buffer of twice the L2 is
written. A candidate that synchronises inside its call drains the queue, and one
with more launches than the queue holds waits for it. Launches cannot be kept out of
their figures, so nothing holds the device and all of them are in; ``queue_full`` says so.

Events add 2 to 3 us to a call, by the hardware channel that a process's stream happens to
have: a call of an empty kernel is timed before each, in the same process, for that to be known.

No two calls are in the queue at once. The device fetches launches ahead, a few at
a time; with some twenty behind it a call of one kernel took 0.5 or 1.5 us longer
on an H100, by its place in the queue.
"""

from __future__ import annotations

import ctypes
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from harness.memory import cuda_driver
from harness.sol.hardware import limits_of_product
from harness.timing import Round, cupti
from harness.timing.cupti import Activity
from harness.timing.queue_fill import LEAST_S, HostTimes
from harness.timing.stability import NOISE
from harness.timing.statistics import trimmed_mean

_EMPTY_CALLS = 64  # of which the trimmed mean is taken
_EMPTY_TRIES = 5  # an interrupted host spoils one
_PROCESSES_APART_MS = 1e-3  # what events add is 2.2 to 2.7 us in processes on an H100
_COPIES, _COPIES_TRIES = 200, 5  # 8 ms of an H100; the host enqueues them in one or two, or in 13
_FEW_COPIES = 10  # 0.4 ms of an H100: short enough to ask for before each side's turn
_PERSISTING_L2_LIMIT = 6  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE
_SETTLED = 1.05  # times what few take at least; right after memory was given back an H100 took 1.16 times as long
_SETTLE_S, _LEARN_S = 0.25, 0.3  # seconds; clearing 64 GiB takes 0.16 (results/h100/timing/memory.json)
# How far two processes that do the same may differ: scripts/bench/timing_spread.py. A launch takes one of two times
# that are 0.17 to 0.25 us apart on an H100 and an H200, by the hardware channel that a stream has: a process's luck.
_BETWEEN_RUNS, _BETWEEN_LAUNCHES_MS = 0.005, 0.25e-3

_unforeseeable = random.SystemRandom()


@dataclass(frozen=True)
class _Timed:
    """One call: whether the device waited until all of it was enqueued, and what the host took to do so."""

    output: Any
    ms: float
    full: bool
    host_s: float


class CudaEvents:
    method = "cuda_events"
    limits = {"max_seconds": 2.5}
    noise = NOISE[method]

    def __init__(self, device: torch.device):
        properties = torch.cuda.get_device_properties(device)
        self._clock_hz = getattr(properties, "clock_rate", 2_000_000) * 1e3
        self._flush = torch.empty(2 * properties.L2_cache_size, dtype=torch.int8, device=device)
        self._limits = limits_of_product(properties.name)
        self._empties_ms: deque[float] = deque(maxlen=_EMPTY_CALLS)
        self._host_times = HostTimes()
        self._copy_host_times = {_COPIES: HostTimes(), _FEW_COPIES: HostTimes()}

    def overhead_ms(self, empty_ms: float) -> float:
        """Return what events add to a call in a process where an empty call takes ``empty_ms`` by events.

        That is a candidate's word: more than what two processes may be apart is not believed.
        """
        return min(self._added_ms(empty_ms), self.own_overhead_ms + _PROCESSES_APART_MS)

    @cached_property
    def own_overhead_ms(self) -> float:
        """Return the same in this process."""
        for _ in range(_EMPTY_CALLS):
            self._time_empty()
        return self._added_ms(trimmed_mean(self._empties_ms))

    def _added_ms(self, empty_ms: float) -> float:
        """The events' own time and the gap before the kernel; 0 without CUPTI to tell them from the kernel."""
        return max(0.0, empty_ms - self._empty_kernel_ms) if self._empty_kernel_ms else 0.0

    @cached_property
    def _empty_kernel_ms(self) -> float | None:
        if not cupti.available():
            return None
        nothing = [lambda: None] * _EMPTY_CALLS
        calls = self.profile(self._empty, [[]] * _EMPTY_CALLS, nothing)
        return trimmed_mean([sum(kernel.ms for kernel in kernels) for kernels in calls]) if calls else None

    def bandwidth_fraction(self) -> float | None:
        """Bytes a second that copies read and write now, of what the data sheet of the device says; None without one.

        A GPU that something else is on, or that is not in order, shows here: one that ran kernels 2 to 13 times
        slower than usual, call by call, did so at full clocks.
        """
        if self._limits is None:
            return None
        copied = 2 * (self._flush.numel() // 2) * _COPIES
        return copied / self._copies_ms(_COPIES) / 1e6 / self._limits.gbps

    def wait_for_bandwidth(self) -> None:
        """Wait until the device copies about as fast as it ever did; not for long, for others may be on it.

        Memory that a process gives back, or leaves at its end, the driver clears with a copy engine, and goes on
        with it while others work: what needs the memory's bandwidth then takes longer.
        """
        until = time.monotonic() + _SETTLE_S
        while time.monotonic() < until and self._copies_ms(_FEW_COPIES) > _SETTLED * self._least_copies_ms:
            pass

    @cached_property
    def _least_copies_ms(self) -> float:
        """Return the least time of a few copies, over longer than the driver is at work for."""
        until = time.monotonic() + _LEARN_S
        least = self._copies_ms(_FEW_COPIES)
        while time.monotonic() < until:
            least = min(least, self._copies_ms(_FEW_COPIES))
        return least

    def _copies_ms(self, copies: int) -> float:
        """Return what so many take, with the queue full if the host lets it."""
        for _ in range(_COPIES_TRIES):
            timed = self._time_held(self._copy, [copies], lambda: None, self._copy_host_times[copies])
            if timed.full:
                break
        return timed.ms

    def _copy(self, arguments: list) -> None:
        copies, half = *arguments, self._flush.numel() // 2
        for _ in range(copies):
            self._flush[half:].copy_(self._flush[:half])

    def _empty(self, arguments: list) -> None:
        """A call of the least kernel there is: one that touches no memory, whose time would depend on its place."""
        torch.cuda._sleep(0)

    def _time_empty(self) -> None:
        """One more empty call; where the host was too slow for it, and a launch is in it, again with more time."""
        for attempt in range(_EMPTY_TRIES):
            timed = self._time(self._empty, [], lambda: None, LEAST_S * 3**attempt)
            if timed.full:
                break
        if timed.full or not self._empties_ms:
            self._empties_ms.append(timed.ms)

    @cached_property
    def _flushing(self) -> tuple:
        """Return what a flush looks like among activities."""
        with cupti.recording() as activities:
            self._flush.zero_()
        return _like(activities[-1])

    def run_to_run_rel(self, median_ms: float, launches: int) -> float:
        """Return how far two runs of the same call, of so many launches, may differ; relative."""
        return _BETWEEN_RUNS + launches * _BETWEEN_LAUNCHES_MS / median_ms

    def describe(self) -> dict[str, Any]:
        return {"method": self.method, "cache": "cold", "flush_bytes": self._flush.numel()}

    def run(
        self, call: Callable, draws: list[Callable[[], list]], before: list[Callable], held: bool = True
    ) -> Round:
        """One call for each of ``draws``, and an empty one before each.

        All are drawn ahead, to keep the queue full, and in an order of their own, so that a call's place in
        the round does not tell its addresses. ``before`` holds what is to be done right before each call,
        outside of its time. With ``held`` the device waits until a call is enqueued, else the call for its launches.
        """
        order = _unforeseeable.sample(range(len(draws)), len(draws))
        drawn = {i: draws[i]() for i in order}
        inputs = [drawn[i] for i in range(len(draws))]
        timed = []
        self._host_times.begin()
        for arguments, prepare in zip(inputs, before):
            self._time_empty()
            if held:
                timed.append(self._time_held(call, arguments, prepare, self._host_times))
            else:
                timed.append(self._time(call, arguments, prepare, spin_s=0))
        return Round(
            inputs,
            [one.output for one in timed],
            [one.ms for one in timed],
            all(one.full for one in timed),
            trimmed_mean(self._empties_ms),
        )

    def _time_held(self, call: Callable, arguments: list, prepare: Callable, host_times: HostTimes) -> _Timed:
        spin_s = host_times.spin_s
        timed = self._time(call, arguments, prepare, spin_s)
        host_times.learn(spin_s, timed.host_s, timed.full)
        return timed

    def _time(self, call: Callable, arguments: list, prepare: Callable, spin_s: float) -> _Timed:
        """One call, for which the device is held so long; not at all with 0, and then launches are in its time."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        _clear_persisting_l2()
        if spin_s:
            torch.cuda._sleep(int(spin_s * self._clock_hz))
        begin = time.perf_counter()
        prepare()
        self._flush.zero_()
        if not spin_s:
            torch.cuda.synchronize()
        start.record()
        output = call(arguments)
        end.record()
        full = spin_s > 0 and not start.query()  # has not begun yet
        host_s = time.perf_counter() - begin
        torch.cuda.synchronize()
        return _Timed(output, start.elapsed_time(end), full, host_s)

    def profile(self, call: Callable, inputs: list[list], before: list[Callable]) -> list[list[Activity]]:
        """Return what the device ran in each call, under the conditions of ``run``."""
        _ = self._flushing  # not to be found out while recording
        with cupti.recording() as activities:
            # recorded launches are slower: how much is learned first
            host_times = HostTimes(self._host_times.expected_s, calls=1)
            self._time_held(call, inputs[0], before[0], host_times)
            for arguments, prepare in zip(inputs, before):
                self._time_held(call, arguments, prepare, host_times)
            torch.cuda._sleep(1)  # a spin behind the last call too
        calls: list[list[Activity]] = []
        for activity in activities:
            if _like(activity) == self._flushing:
                stream = activity.stream
                calls.append([])
            elif calls:
                calls[-1].append(replace(activity, aside=activity.stream != stream))
        return [ran[:-1] for ran in calls[1:]]

    def launch_bound_ms(self, call: Callable, inputs: list[list]) -> float:
        """Wall time a call, back to back and hot: what a caller pays who launches one after the other.

        One more is made before, because the first allocates.
        """
        call(inputs[0])
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for arguments in inputs:
            call(arguments)
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) * 1e3 / len(inputs)


def _like(activity: Activity) -> tuple:
    return activity.name, activity.bytes, activity.grid, activity.block


def _clear_persisting_l2() -> None:
    """Take back what a candidate has set aside of L2, too: what it keeps there is the same in all calls."""
    cuda_driver.library().cuCtxResetPersistingL2Cache()
    cuda_driver.library().cuCtxSetLimit(_PERSISTING_L2_LIMIT, ctypes.c_size_t(0))
