"""Time of one call: sampling on a device, statistics, when to stop.

A timing method is one module with a class that has ``method``, ``limits`` (for
``Convergence``), ``noise`` (for ``stability``), ``run_to_run_rel`` (for ``paired``),
``run``, ``wait_for_bandwidth``, ``overhead_ms``, ``own_overhead_ms``, ``bandwidth_fraction`` and ``describe``, and
its lines in ``METHODS`` and ``stability.NOISE``.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass, field
from typing import Any

METHODS = {"cuda": "harness.timing.cuda_events:CudaEvents", "cpu": "harness.timing.wall_clock:WallClock"}


@dataclass
class Round:
    """Calls that were timed one after the other.

    ``queue_full`` says that no launch was waited for. ``empty_ms`` is what a call that does next to nothing
    took lately in the same process: what the method adds, once the work of such a call is taken off. ``waited`` is how
    many times as long as they worked its threads took, because others had the cores; 1 where nobody counted that.
    """

    inputs: list[list]  # of each call, as the call left them
    outputs: list[Any]
    times_ms: list[float]
    queue_full: bool = True
    empty_ms: float = 0.0
    waited: float = 1.0
    structures: list[str] = field(default_factory=list)  # of each call's output, before it is flattened

    def take(self, call: int) -> tuple[list, Any]:
        """Return inputs and output of one call, and release those of all."""
        taken = self.inputs[call], self.outputs[call]
        self.release()
        return taken

    def release(self) -> Round:
        """Release the memory of inputs and outputs; the times stay."""
        self.inputs, self.outputs = [], []
        return self


@functools.cache
def timer_for(device):
    """The timing method of a ``torch.device``, one a process: what it finds out about itself stays known."""
    module, _, name = METHODS[device.type].partition(":")
    return getattr(importlib.import_module(module), name)(device)
