"""Time of a call on a CPU by ``perf_counter_ns``.

Inputs are sampled right before their call, after the caches were flushed, so that a thread of the candidate finds
nothing to compute ahead. The cache then holds of them what sampling leaves there; weights are cold. Flushing reads,
because a call would have to write back what a flush had written.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from harness.timing import Round
from harness.timing.stability import NOISE

_LEAST_CACHE_BYTES = 32 << 20  # flushed where the system does not name its caches; chosen, as server CPUs have it
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # parameters of mallopt, from malloc.h


class WallClock:
    method = "perf_counter_ns"
    limits = {"max_seconds": 0.6}  # seconds; on shared cores longer sampling does not help
    noise = NOISE[method]
    own_overhead_ms = 0.0

    def __init__(self, device: torch.device):
        # Large blocks from the heap, and kept there: fresh pages for every output would be most of the noise.
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, 1 << 30)
        libc.mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)
        self._flush = torch.ones(last_level_caches_bytes() // 8, dtype=torch.int64)  # written, so that there are pages

    def overhead_ms(self, empty_ms: float) -> float:
        """The clock is read within a microsecond."""
        return 0.0

    def bandwidth_fraction(self) -> None:
        """No data sheet says what a CPU should reach."""

    def wait_for_bandwidth(self) -> None:
        """Return at once: a CPU has no clearing of memory in the background to wait for."""

    def run_to_run_rel(self, median_ms: float, launches: int) -> float:
        """Return how far two runs of the same call may differ; relative."""
        return 0.03

    def describe(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "cache": "cold but for the inputs",
            "flush_bytes": self._flush.nbytes,
            "threads": torch.get_num_threads(),
        }

    def run(
        self, call: Callable, draws: list[Callable[[], list]], before: list[Callable], held: bool = True
    ) -> Round:
        """One call for each of ``draws``; a CPU has no queue to keep full, ``held`` or not.

        ``before`` holds what is to be done right before each call, outside of its time.
        """
        inputs, outputs, times = [], [], []
        for draw, prepare in zip(draws, before):
            self._flush.sum()
            arguments = draw()
            prepare()
            begin = time.perf_counter_ns()
            output = call(arguments)
            times.append((time.perf_counter_ns() - begin) / 1e6)
            inputs.append(arguments)
            outputs.append(output)
        return Round(inputs, outputs, times)


def last_level_caches_bytes(cpus: Path = Path("/sys/devices/system/cpu")) -> int:
    """Size of all that the CPUs of this process have, as the kernel reports them; at least 32 MiB."""
    caches: dict[str, int] = {}
    for cpu in os.sched_getaffinity(0):
        levels = list(cpus.glob(f"cpu{cpu}/cache/index*/size"))
        if levels:
            size, shared_by = max((_bytes(path.read_text()), path.with_name("shared_cpu_list")) for path in levels)
            caches[shared_by.read_text()] = size
    return max(_LEAST_CACHE_BYTES, sum(caches.values()))


def _bytes(text: str) -> int:
    """Return bytes of a size like '107520K'."""
    text = text.strip()
    return int(text[:-1]) << {"K": 10, "M": 20, "G": 30}[text[-1]]
