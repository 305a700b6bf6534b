"""Facts about a kernel: features for clustering from its launch, a signature from its profile (section 3.2)."""

from __future__ import annotations

import math

from harness.result import Result
from kernelbench.metrics import fast_p
from kernelbench.solvers.backend.interface import Profile
from kernelbench.solvers.backend.profiles import profile_of
from kernelbench.solvers.kernelband.bandit import Kernel, Signature
from kernelbench.solvers.kernelband.strategies import DRAM, L2, SM
from kernelbench.solvers.task import Task


def time_of(result: Result) -> float | None:
    """Return the median time in ms of a verified kernel; None of one that failed, or whose time is not believed."""
    return None if not result.correct or result.unconfirmed else fast_p.typical_ms(result.timing)


def kernel_of(task: Task, result: Result) -> Kernel | None:
    """Return a verified kernel with log(time over the baseline's), registers, shared memory, block size and occupancy.

    The last four are of the record, whose activities name them for every kernel; where a record has none they are
    those of a profile. None for a kernel that is not verified.
    """
    ms = time_of(result)
    if ms is None:
        return None
    baseline_ms = task.baseline["median_ms"] or ms
    launch = _launch(task, result)
    features = (math.log(ms / baseline_ms), launch.registers, launch.shared_bytes, launch.block_size,
                launch.occupancy_percent)  # fmt: skip
    return Kernel(result.solution["sample"], ms, features)


def _launch(task: Task, result: Result) -> Profile:
    if task.device["type"] != "cuda":
        return Profile("none")
    if recorded := (result.timing or {}).get("profile"):
        return profile_of({"tool": "cupti", "kernels": recorded["kernels"]}, result)
    return task.profile(result)


def signature_of(profile: Profile) -> Signature:
    """Return the share of each resource's peak that a profile knows, from 0 to 1.

    Without counters, compute and bandwidth over the peaks stand for SM and DRAM: what the problem needs at least over
    the time, which is no more than what the device did.
    """
    known = {
        SM: profile.sm_percent if profile.sm_percent is not None else profile.compute_percent,
        DRAM: profile.dram_percent if profile.dram_percent is not None else profile.bandwidth_percent,
        L2: profile.l2_percent,
    }
    return {resource: percent / 100 for resource, percent in known.items() if percent is not None}


def described(profile: Profile) -> str:
    """Return a profile as lines of text for a model."""
    figures = {
        "SM throughput": (profile.sm_percent, "% of peak"),
        "DRAM throughput": (profile.dram_percent, "% of peak"),
        "L2 throughput": (profile.l2_percent, "% of peak"),
        "occupancy": (profile.occupancy_percent, "%"),
        "registers a thread": (profile.registers, ""),
        "shared memory a block": (profile.shared_bytes, "bytes"),
        "threads a block": (profile.block_size, ""),
    }
    return "\n".join(
        f"{name}: {value:.4g} {unit}".rstrip() for name, (value, unit) in figures.items() if value is not None
    )
