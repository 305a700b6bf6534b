"""The GPU that a prompt speaks of: the one at hand, or any of the table. Its facts and its clock, as text."""

from __future__ import annotations

from typing import Any

from harness.sol.clock import GIVEN, OBSERVED, Clock
from harness.sol.datasheet import ARCHITECTURES, DATASHEETS
from harness.sol.hardware import Limits, limits_of


def facts(limits: Limits, at_hand: dict[str, Any] | None) -> dict[str, Any]:
    """Return the values that ``hardware.md`` is filled in with.

    Parameters
    ----------
    limits
        Of the GPU.
    at_hand
        The GPU as results record it, whose own memory counts; None where it is another one.
    """
    sheet = DATASHEETS[limits.name]
    architecture = ARCHITECTURES[sheet.capability]
    fields = ("registers_per_sm", "registers_per_thread", "shared_kb_per_sm", "shared_kb_per_block",
              "blocks_per_sm", "threads_per_sm", "threads_per_block", "instructions")  # fmt: skip
    return {
        "device": limits.title,
        "architecture": architecture.name,
        "capability": sheet.capability,
        "memory": sheet.memory,
        "memory_gb": f"{at_hand['memory_bytes'] / 1e9:.0f}" if at_hand else sheet.memory_gb,
        "bandwidth": f"{limits.gbps:,.0f}",
        "rates": _rates(limits),
        "multiprocessors": limits.multiprocessors,
        "l2_mib": f"{limits.l2_bytes / 2**20:.0f}",
        **{field: getattr(architecture, field) for field in fields},
    }


def _rates(limits: Limits) -> str:
    """One line for each type that the GPU has units for."""
    sheet = DATASHEETS[limits.name]
    floating = {"FP32": limits.fp32, "TF32": limits.tf32, "FP16": limits.fp16, "BF16": limits.bf16, "FP8": limits.fp8}
    lines = [f"- {name}: {rate:,.4g} TFLOP/s" for name, rate in floating.items() if rate]
    if limits.fp16_accumulate:
        lines.append(f"- FP16 with sums in FP16: {limits.fp16_accumulate:,.4g} TFLOP/s")
    share = limits.fp32 / limits_of(limits.name).fp32  # of a partition, or of a cut-down card
    whole = {"INT8": sheet.int8, "INT4": sheet.int4}
    return "\n".join(lines + [f"- {name}: {rate * share:,.4g} TOP/s" for name, rate in whole.items() if rate])


def clock_text(clock: Clock, at_hand: bool) -> str:
    """Return the sentence that says which clock the bounds of a prompt are at, and why."""
    mhz = f"{clock.sm_mhz:g} MHz"
    if clock.source == GIVEN:
        return f"Bounds are at an SM clock of {mhz}, as asked for."
    if clock.source == OBSERVED:
        return f"Bounds are at the SM clock that was observed while the latest attempt was timed, {mhz}."
    why = "no attempt was timed yet" if at_hand else "this GPU is not at hand"
    return f"Bounds are at the rated SM clock, {mhz}, because none was observed: {why}."
