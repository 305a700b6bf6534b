"""The next hint: one sentence on what to change next, from the status, the profile and the bounds of a record."""

from __future__ import annotations

from typing import Any

from harness.result import Result, Status
from kernelbench.metrics import fast_p, settled

NEAR_BOUND_PERCENT = 90.0  # of SOL, from which little is left: between 90 % and 100 % lies what a DRAM refresh takes
LAUNCH_BOUND = 1.5  # wall time of back-to-back calls over time on the device, from which the host is the limit
_MAIN_KERNEL = 0.5  # of the device's time, from which one kernel is named
_NAME_CHARACTERS = 80

_OF_STATUS = {
    Status.BUILD_ERROR: "Repair the first error; later ones often follow from it.",
    Status.LOAD_ERROR: 'Define ModelNew in .py, or extern "C" void solution(...) in .cu and .cpp, as `kb starter` '
    "prints it.",
    Status.RUNTIME_ERROR: "Repair the exception at the named line.",
    Status.TIMEOUT: "Look for a deadlock, an endless loop, or far too little parallelism.",
    Status.OUT_OF_MEMORY: "Allocate less: reuse buffers, and release what is kept between calls.",
    Status.CRASHED: "Look for accesses outside of tensors, and for shared memory beyond the limit; "
    "`kb time FILE --sanitize` names the line on a GPU.",
    Status.WRONG_SHAPE: "Return the shape that the problem's Model returns.",
    Status.WRONG_DTYPE: "Return the dtype that the problem's Model returns.",
    Status.WRONG_VALUE: "Compare the index of the first mismatch with tile edges, strides and the order of arguments.",
    Status.NONFINITE: "Look for overflow, division by zero and memory that is not written.",
    Status.REJECTED: "Do all of the work in every call, with kernels of your own; the rule says what was found.",
}


def hint(result: Result) -> str:
    """Return one sentence on the next step; never empty."""
    if not result.correct:
        return _OF_STATUS[result.status]
    verdict = settled.verdict(result)
    if verdict is None:
        return f"There is no speedup: {settled.why_no_speedup(result)}."
    if verdict == settled.UNSTABLE:
        return "The times did not settle: try again on an idle machine."
    return _launches(result.timing) or _bound(result) or _without_bound(verdict)


def _launches(timing: dict[str, Any]) -> str:
    wall_ms = timing.get("launch_bound_ms")
    if not wall_ms or wall_ms <= LAUNCH_BOUND * fast_p.typical_ms(timing):
        return ""
    launches = (timing.get("profile") or {}).get("launches")
    counted = f" ({launches} a call)" if launches else ""
    return f"The host is the limit: launch fewer kernels{counted}, for example by fusing them."


def _bound(result: Result) -> str:
    sol = result.sol or {}
    if (percent := sol.get("percent_of_sol")) is None:
        return ""
    bottleneck = sol["bottleneck"]
    if percent >= NEAR_BOUND_PERCENT:
        return f"It runs at {percent:.0f} % of the speed of light: little is left to gain."
    reached = f"it reaches {sol['bandwidth_share']:.0%} of the bandwidth"
    advice = "read each input once, coalesced and in vectors of 16 bytes, and fuse what follows"
    if bottleneck == "compute":
        reached = f"it reaches {sol['compute_share']:.0%} of the {sol['peak_type']} peak"
        advice = "use tensor cores, larger tiles and asynchronous copies"
    where = _main_kernel(result.timing.get("profile") or {})
    return f"The bound is {bottleneck} ({sol['t_sol_ms']:.4g} ms) and {reached}: {advice}.{where}"


def _main_kernel(profile: dict[str, Any]) -> str:
    kernels = profile.get("kernels") or []
    total_ms = sum(kernel["ms"] for kernel in kernels)
    if not total_ms:
        return ""
    first = max(kernels, key=lambda kernel: kernel["ms"])
    share = first["ms"] / total_ms
    return f" {first['name'][:_NAME_CHARACTERS]} takes {share:.0%} of the time." if share >= _MAIN_KERNEL else ""


def _without_bound(verdict: str) -> str:
    why = "no bound is known for this device"
    if verdict == settled.FASTER:
        return f"It is faster than the baseline; {why}."
    return f"It is not faster than the baseline; {why}: look for passes over memory that can be merged."
