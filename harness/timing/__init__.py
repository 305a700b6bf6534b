"""How long one call takes: sampling on a device, statistics, when to stop.

A timing method is one module with a class that has ``method``, ``limits`` (for
``Convergence``), ``noise`` (for ``stability``), ``overhead_ms``,
``between_runs`` (for ``paired``), ``run`` and ``describe``, and its line in ``METHODS``.
"""

from __future__ import annotations

import importlib

METHODS = {"cuda": "harness.timing.cuda_events:CudaEvents", "cpu": "harness.timing.wall_clock:WallClock"}


def timer_for(device):
    """The timing method of a ``torch.device``."""
    module, _, name = METHODS[device.type].partition(":")
    return getattr(importlib.import_module(module), name)(device)
