"""Explanation of a program: every choice with those that were filled in, operands, resources, cost of the build."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.canonical import canonical, digest, kernel_text
from kernelbench.ucutlass.operands import operands
from kernelbench.ucutlass.operands.binding import Bound
from kernelbench.ucutlass.resources import KIB, Resources, estimate


def as_json(value: Any) -> Any:
    """A value of `ir` as JSON: an object with ``type`` for each class, the word of an enumeration; no positions."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, tuple):
        return [as_json(one) for one in value]
    if not dataclasses.is_dataclass(value):
        return value
    shown = [one for one in dataclasses.fields(value) if one.name not in ("at", "positions", "source", "text")]
    return {"type": type(value).__name__} | {one.name: as_json(getattr(value, one.name)) for one in shown}


def report(program: ir.Program, written: ir.Program, bound: Bound | None = None) -> dict[str, Any]:
    """Everything about a complete program as JSON; ``written`` is the same before it was completed."""
    return {
        "hash": digest(program),
        "canonical": canonical(program),
        "defaults": [line for line, is_default in marked(program, written) if is_default],
        "ir": as_json(program),
        "operands": [_operand(one) for one in operands(program)],
        "resources": [found and dataclasses.asdict(found) for found in map(estimate, program.kernels)],
        "binding": bound and {
            "arguments": [{"operand": one.operand.name, "value": one.value} for one in bound.arguments],
            "extents": list(bound.extents),
            "windows": list(bound.windows),
        },
    }  # fmt: skip


def _operand(one: Any) -> dict[str, Any]:
    return {"name": one.name, "role": one.role.value, "extents": list(one.extents), "dtype": str(one.dtype),
            "kernel": one.kernel}  # fmt: skip


def text(program: ir.Program, written: ir.Program, bound: Bound | None = None) -> str:
    """The same for people."""
    lines = [f"ucutlass_{digest(program)}", ""]
    lines += [f"{line:<100}  # default" if is_default else line for line, is_default in marked(program, written)]
    lines += ["", "Operands of kernel_ex, in order:"]
    values = {one.operand.name: one.value for one in bound.arguments} if bound else {}
    for one in operands(program):
        shape = f"[{', '.join(one.extents)}]" if one.extents else "by value"
        value = f"  = {values[one.name]}" if one.name in values else ""
        lines.append(f"  {one.role.value:<7} {one.name:<14} {str(one.dtype):<9} {shape}{value}")
    for place, kernel in enumerate(program.kernels):
        lines += ["", f"Resources of {kernel.operation.word}() (estimates):", *_resources(kernel, estimate(kernel))]
        if bound:
            extents = ", ".join(f"{name}={size}" for name, size in bound.extents[place].items())
            windows = ", ".join(f"{name} {size}" for name, size in bound.windows[place].items())
            lines.append(f"  sizes             {extents}{'; ' + windows if windows else ''}")
    return "\n".join(line.rstrip() for line in lines)


def marked(program: ir.Program, written: ir.Program) -> list[tuple[str, bool]]:
    """The lines of the canonical text, each with whether the program leaves its clause out."""
    given = [set(kernel_text(kernel).splitlines()) for kernel in written.kernels]
    clauses = [{line.partition("(")[0] for line in lines} for lines in given]
    found, place = [], -1
    for line in canonical(program).splitlines():
        if not line.startswith("  "):
            place += _starts_kernel(line)
        found.append((line, line.startswith("  .") and line.partition("(")[0] not in clauses[place]))
    return found


def _starts_kernel(line: str) -> bool:
    return line not in ("pipeline(", ")") and not line.startswith("transpose(")


def _resources(kernel: ir.Kernel, found: Resources | None) -> list[str]:
    if found is None:
        return ["  no tile and no schedule: a direct kernel"]
    tile = kernel.cta_tile
    return [
        f"  tile of a CTA     {tile.m} x {tile.n} x {tile.k}, {found.threads} threads, "
        f"{found.blocks_per_sm} at once on an SM",
        f"  shared memory     {found.shared_bytes / KIB:g} of {found.shared_limit_bytes / KIB:g} KB: "
        f"{found.stages} stages of {found.stage_bytes / KIB:g} KB, epilogue {found.epilogue_bytes / KIB:g} KB",
        f"  stages that fit   {found.stages_that_fit}",
        f"  registers         {found.accumulator_registers} a thread for accumulators, about "
        f"{found.register_estimate} in all",
        f"  build             about {found.compile_seconds:g} s and {found.compile_memory_bytes / (1 << 30):.1f} GiB",
    ]  # fmt: skip
