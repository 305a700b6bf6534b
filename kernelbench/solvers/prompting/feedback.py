"""Feedback on a result to its author: execution (E) and profile (P), as text.

G, the generation itself, is the author's own text; see ``Task.feedback``.
"""

from __future__ import annotations

from typing import Any

from tabulate import tabulate

from harness.result import Result, Status
from kernelbench.metrics import fast_p, settled

PARTS = ("G", "E", "P")

_ADVICE = {
    Status.TIMEOUT: "A step of it took too long: look for a deadlock, an endless loop, or far too little parallelism.",
    Status.CRASHED: "Its process died: look for accesses outside of tensors, and for shared memory beyond the limit.",
}
_MOST_KERNELS, _NAME_CHARACTERS = 20, 80  # of a profile that a model is shown
_LAUNCH_BOUND = 1.5  # wall time of back-to-back calls, over the time on the device, from which the host is the limit


def execution(result: Result) -> str:
    """Return how the evaluation ended: the message of a failure, or times against the baseline."""
    if not result.correct:
        advice = _ADVICE.get(result.status)
        return "\n".join(filter(None, [f"status: {result.status}", result.message.strip(), advice]))
    if not result.timing:
        return "status: ok, every output is correct; this workload is not timed"
    lines = ["status: ok, every output is correct", f"time: {fast_p.typical_ms(result.timing):.4g} ms (median)"]
    if reason := settled.why_no_speedup(result):
        return "\n".join([*lines, f"speedup: none, because {reason}"])
    name, baseline = fast_p.baseline_of(result)
    return "\n".join([*lines, f"PyTorch ({name}): {fast_p.typical_ms(baseline):.4g} ms", _speedup(result)])


def _speedup(result: Result) -> str:
    """Return the speedup with what it may claim."""
    found = settled.interval(result)
    sure = f", 95 % interval {found.low:.3g} to {found.high:.3g}" if found else ""
    measured = f"{result.speedup:.3g}x{sure}"
    match settled.verdict(result):
        case settled.UNSTABLE:
            return f"speedup: unstable; measured as {measured}, but its times did not settle: it counts as no faster"
        case settled.TIE:
            return f"speedup: tie; measured as {measured}, which the noise can explain: it counts as 1"
        case verdict:
            return f"speedup: {verdict}; measured as {measured}"


def profile(result: Result) -> str:
    """Return what limits a correct candidate: rates, distance from t_SOL, time by kernel where it is known."""
    if not result.correct:
        return ""
    timing = result.timing or {}  # nothing is timed at a size that tells no time
    lines = [*_rates(result), *_headroom(result.sol or {}), *_launches(timing)]
    table = kernel_table(timing.get("profile") or {})
    return "\n".join(lines + ([table] if table else []))


def kernel_table(profile: dict[str, Any]) -> str:
    """Return what one call ran on the device, kernel by kernel, as the worker's CUPTI saw it; '' without a profile."""
    kernels = profile.get("kernels") or []
    total_ms = sum(kernel["ms"] for kernel in kernels)
    rows = [
        (
            kernel["name"][:_NAME_CHARACTERS],
            kernel["launches"],
            f"{kernel['ms']:.4g}",
            f"{kernel['ms'] / total_ms:.0%}" if total_ms else "",
            "x".join(map(str, kernel["grid"])),
            "x".join(map(str, kernel["block"])),
            kernel["registers"],
            kernel["shared_bytes"],
        )
        for kernel in kernels[:_MOST_KERNELS]
    ]
    headers = ("kernel", "launches", "ms", "share", "grid", "block", "registers", "shared bytes")
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True) if rows else ""


def _rates(result: Result) -> list[str]:
    lines = []
    if result.gflops:
        lines.append(f"arithmetic: {result.gflops:,.4g} GFLOP/s")
    if result.gbps:
        lines.append(
            f"traffic: {result.gbps:,.4g} GB/s, counting inputs, parameters and outputs once "
            f"({result.workload['bytes']:,} bytes)"
        )
    return lines


def _headroom(sol: dict[str, Any]) -> list[str]:
    if "t_sol_ms" not in sol:
        return []
    at = f" at {sol['sm_mhz']:g} MHz" if sol.get("sm_mhz") else ""
    return [
        f"speed of light: {sol['t_sol_ms']:.4g} ms{at}, which is {sol['percent_of_sol']:.3g} % of the time taken",
        f"bottleneck at the speed of light: {sol['bottleneck']}; reached: {sol['compute_share']:.1%} of the "
        f"{sol['peak_type']} peak, {sol['bandwidth_share']:.1%} of the memory bandwidth",
    ]


def _launches(timing: dict[str, Any]) -> list[str]:
    wall_ms = timing.get("launch_bound_ms")
    if not wall_ms:
        return []
    is_bound = wall_ms > _LAUNCH_BOUND * fast_p.typical_ms(timing)
    bound = "; the host is the limit: launch fewer kernels" if is_bound else ""
    return [f"wall time a call when calls are queued back to back: {wall_ms:.4g} ms{bound}"]
