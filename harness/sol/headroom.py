"""Headroom: distance of a measured time from the speed of light, as a record holds it."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import torch

from harness.problem.module import ProblemError, Workload
from harness.sol.bounds import Analysis, analyse, floor, speed_of_light
from harness.sol.clock import Clock, choose
from harness.sol.hardware import Limits, limits_at_hand

REACHED = ("g", "percent_of_sol", "compute_share", "bandwidth_share")  # fields that say what a time reached

def headroom(
    workload: Workload,
    dtype: torch.dtype,
    device: torch.device,
    median_ms: float,
    conditions: dict[str, Any],
    clock_mhz: float | None = None,
) -> dict[str, Any]:
    """``compare`` on the device at hand, at the clocks of ``conditions``, or at ``clock_mhz`` where it is given.

    Where there is no bound, because the device is in no table or the reference
    cannot be traced, the only field is ``unavailable``, with the reason.
    """
    try:
        limits = limits_at_hand(device)  # first: an analysis takes longer
        clock = choose(limits, conditions, clock_mhz)
    except ValueError as error:
        return {"unavailable": str(error)}
    try:
        analysis = _analysed(workload.problem.module, workload, dtype)
        return compare(analysis, limits, median_ms, clock)
    except ProblemError as error:
        return {"unavailable": str(error)}
    except Exception as error:  # a bound is not worth a lost result
        return {"unavailable": f"the analysis of problem {workload.problem.id} failed: {type(error).__name__}: {error}"}


@functools.lru_cache(maxsize=256)
def _analysed(module: ModuleType, workload: Workload, dtype: torch.dtype) -> Analysis:
    """Analyse a workload of a loaded module once for all its candidates: a network of level 3 takes a second."""
    return analyse(workload, dtype)


def compare(analysis: Analysis, limits: Limits, median_ms: float, clock: Clock) -> dict[str, Any]:
    """The bounds beside a measured time; times in ms.

    Peaks are those of ``clock``. ``g`` is time over t_SOL, ``percent_of_sol`` its inverse; ``compute_share``
    and ``bandwidth_share`` are what was reached of the peak and of the bandwidth.
    """
    clocks = {"sm_mhz": clock.sm_mhz, "memory_mhz": clock.memory_mhz}
    bound = speed_of_light(analysis, limits, **clocks)
    return {
        "device": limits.name,
        **clocks,
        "clock": clock.source,
        "t_sol_ms": bound.ms,
        "t_sol_fp16_ms": speed_of_light(analysis, limits, fp16=True, **clocks).ms,
        "t_floor_ms": floor(analysis, limits).ms,
        "g": median_ms / bound.ms if bound.ms else None,
        "percent_of_sol": 100 * bound.ms / median_ms,
        "bottleneck": bound.bottleneck,
        "peak_type": bound.peak_type,
        "compute_share": analysis.direct.flops / median_ms / (bound.peak_tflops * 1e9),
        "bandwidth_share": analysis.direct.bytes / median_ms / (bound.gbps * 1e6),
    }
