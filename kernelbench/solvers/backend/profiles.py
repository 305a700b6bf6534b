"""A ``Profile`` from what a judge recorded: counters of ``ncu``, activities of CUPTI, or figures of a CPU."""

from __future__ import annotations

from typing import Any

from harness.result import Result
from kernelbench.machine import ncu
from kernelbench.machine.occupancy import occupancy_percent
from kernelbench.solvers.backend.interface import Profile

_MERGED = ("sm_percent", "dram_percent", "l2_percent", "occupancy_percent", "registers", "shared_bytes", "block_size")


def profile_of(record: dict[str, Any], result: Result) -> Profile:
    """Return the profile of an attempt.

    Parameters
    ----------
    record
        ``tool``, ``kernels`` as of ``harness.timing.cupti.breakdown``, ``ncu_output``, ``facts``, ``note``.
    result
        Of the attempt, with its shares of the device's peaks.
    """
    note = record.get("note", "")
    capability = result.device.get("compute_capability", "")
    kernels = [_of_cupti(kernel, capability) for kernel in record.get("kernels", [])]
    tool = record["tool"]
    if output := record.get("ncu_output"):
        try:
            kernels, tool = _with_counters(ncu.by_kernel(ncu.read(output)), kernels), "ncu"
        except ncu.NsightError as error:
            note = f"no counters: {error}"
    sol = result.sol or {}
    return Profile(
        tool,
        **merged(kernels),
        compute_percent=_percent(sol.get("compute_share")),
        bandwidth_percent=_percent(sol.get("bandwidth_share")),
        kernels=kernels,
        facts=record.get("facts", {}),
        note=note,
    )


def merged(kernels: list[dict[str, Any]]) -> dict[str, float | None]:
    """Return the mean of each figure over the kernels that have it, weighted by their time."""
    found: dict[str, float | None] = {}
    for name in _MERGED:
        known = [(kernel[name], kernel["ms"]) for kernel in kernels if kernel.get(name) is not None and kernel["ms"]]
        total_ms = sum(ms for _, ms in known)
        found[name] = sum(value * ms for value, ms in known) / total_ms if total_ms else None
    return found


def _of_cupti(kernel: dict[str, Any], capability: str) -> dict[str, Any]:
    """Return one kernel with its block size and theoretical occupancy; copies and fills have neither."""
    block = kernel.get("block") or []
    if not block:
        return {"name": kernel["name"], "launches": kernel["launches"], "ms": kernel["ms"]}
    size = 1
    for threads in block:
        size *= threads
    occupancy = occupancy_percent(capability, size, int(kernel["registers"]), int(kernel["shared_bytes"]))
    return {**kernel, "block_size": size, "occupancy_percent": occupancy}


def _with_counters(counted: list[dict[str, Any]], kernels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what ncu counted of each kernel, with launch parameters of the kernel of the same name from CUPTI."""
    by_name = {kernel["name"]: kernel for kernel in kernels}
    return [
        {**by_name.get(kernel["name"], {}), **kernel, "ms": kernel.get("ns", 0.0) / 1e6} for kernel in counted
    ]


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share
