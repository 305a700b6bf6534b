"""How long one call takes: sampling on a device, statistics, when to stop.

A timing method is one module with a class that has ``method``, ``limits`` (for
``Convergence``), ``run`` and ``describe``, and its line in ``METHODS``.
"""

from __future__ import annotations

import torch

from harness.timing.cuda_events import CudaEvents
from harness.timing.wall_clock import WallClock

METHODS = {"cuda": CudaEvents, "cpu": WallClock}


def timer_for(device: torch.device):
    """The timing method of a device."""
    return METHODS[device.type](device)
