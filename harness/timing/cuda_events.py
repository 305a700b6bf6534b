"""Device time of a call by CUDA events, with the queue kept full and a cold L2.

Before a group of samples a spin kernel holds the device until the host has
enqueued them, so that launch latency is not in the figure. Before each call a
buffer of twice the L2 is written. A candidate that synchronises inside its call
drains the queue, and one with more launches than the queue holds waits for it;
their figures then contain launches, and ``queue_full`` says so.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import torch

_MAX_SPIN_S = 0.1
_SPIN_MARGIN = 1.5


class CudaEvents:
    method = "cuda_events"
    limits = {"target": 0.005, "max_seconds": 10.0}

    def __init__(self, device: torch.device):
        properties = torch.cuda.get_device_properties(device)
        self._clock_hz = getattr(properties, "clock_rate", 2_000_000) * 1e3
        self._flush = torch.empty(2 * properties.L2_cache_size, dtype=torch.int8, device=device)
        self._host_s = 0.001  # host time to enqueue one sample; learned round by round
        self._driver = ctypes.CDLL("libcuda.so.1")

    def describe(self) -> dict[str, Any]:
        return {"method": self.method, "cache": "cold", "flush_bytes": self._flush.numel()}

    def run(self, call: Callable, inputs: list[list], before: list[Callable]) -> tuple[list, list[float], bool]:
        """Outputs and milliseconds of one call for each list of inputs, and whether the queue stayed full.

        ``before`` holds what is to be done right before each call, outside of its time.
        """
        outputs, times_ms, queue_full = [], [], True
        at_once = max(1, int(_MAX_SPIN_S / (_SPIN_MARGIN * self._host_s)))
        for begin in range(0, len(inputs), at_once):
            group = slice(begin, begin + at_once)
            results, times, full = self._run_group(call, inputs[group], before[group])
            outputs += results
            times_ms += times
            queue_full = queue_full and full
        return outputs, times_ms, queue_full

    def _run_group(self, call: Callable, inputs: list[list], before: list[Callable]) -> tuple[list, list[float], bool]:
        """As many calls as one spin can cover."""
        events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in inputs]
        outputs, queue_full = [], True
        torch.cuda.synchronize()
        self._driver.cuCtxResetPersistingL2Cache()
        spin_s = min(_SPIN_MARGIN * self._host_s * len(inputs), _MAX_SPIN_S)
        torch.cuda._sleep(int(spin_s * self._clock_hz))
        begin = time.perf_counter()
        for arguments, prepare, (start, end) in zip(inputs, before, events):
            prepare()
            self._flush.zero_()
            start.record()
            outputs.append(call(arguments))
            end.record()
            # not begun when all of the call is enqueued: no launch latency in this sample
            queue_full = queue_full and not start.query()
        self._host_s = (time.perf_counter() - begin) / len(inputs)
        torch.cuda.synchronize()
        return outputs, [start.elapsed_time(end) for start, end in events], queue_full

    def launch_bound_ms(self, call: Callable, inputs: list[list]) -> float:
        """Wall time a call, back to back and hot: what a caller pays who launches one after the other."""
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for arguments in inputs:
            call(arguments)
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) * 1e3 / len(inputs)
