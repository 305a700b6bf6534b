"""The struct ``Call`` of a kernel: pointers, extents and scalars of one call, and how its code reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.codegen.elements import cpp
from kernelbench.ucutlass.operands import Operand, Role, of_kernel

SPATIAL = "dhw"


@dataclass(frozen=True)
class KernelCode:
    """C++ of one kernel, all of it inside its namespace.

    ``definitions`` declare ``size_t workspace_bytes(Call const&)``, ``int can_implement(Call const&)`` and
    ``int launch(Call const&, void* workspace, cudaStream_t)``; the integers are values of ``cutlass::Status``, or
    ``CUDA_ERROR`` plus a ``cudaError_t``.
    """

    includes: tuple[str, ...]
    definitions: str


def extents_of(kernel: ir.Kernel) -> tuple[str, ...]:
    """Return the names of the extents that a caller gives, in the order of the C interface."""
    if kernel.is_gemm:
        last = {ir.GemmForm.STANDARD: (), ir.GemmForm.BATCHED: ("L",), ir.GemmForm.GROUPED: ("E",)}
        return ("M", "N", "K", *last[kernel.operation.form])
    rank = kernel.operation.rank
    spatial = ("D", "H", "W")[3 - rank :]
    steps = [f"{what}_{axis}" for what in ("stride", "padding", "dilation") for axis in SPATIAL[3 - rank :]]
    return ("N", *spatial, "C", "K", *steps)


def call_struct(kernel: ir.Kernel) -> str:
    """Return the definition of ``Call``: ``p_`` pointers, ``n_`` extents, ``s_`` scalars, alpha and beta."""
    operands = of_kernel(kernel)
    pointers = [
        f"  {cpp(one.dtype)}{' const' if one.role is Role.INPUT else ''}* p_{one.name} = nullptr;"
        for one in operands
        if one.role is not Role.SCALAR
    ]
    scalars = [f"  float s_{one.name} = 0;" for one in operands if one.role is Role.SCALAR]
    extents = [f"  int64_t n_{name} = 1;" for name in extents_of(kernel)]
    scaling = kernel.scaling or ir.Scaling()
    factors = [f"  double alpha = {float(scaling.alpha)!r};", f"  double beta = {float(scaling.beta)!r};"]
    methods = [] if kernel.is_gemm else [output_extents(kernel)]
    return "\n".join(["struct Call {", *pointers, *extents, *factors, *scalars, *methods, "};"])


def output_extents(kernel: ir.Kernel) -> str:
    """Return methods for the output's spatial extents (Z, P, Q), from the input's and the kernel's."""
    conv = kernel.operation
    lines = []
    for axis, extent, output, size in zip(
        SPATIAL[3 - conv.rank :], ("D", "H", "W")[3 - conv.rank :], ("Z", "P", "Q")[3 - conv.rank :], conv.kernel
    ):
        lines.append(
            f"  CUTLASS_HOST_DEVICE int64_t out_{output}() const {{\n    return (n_{extent} + 2 * n_padding_{axis} - "
            f"n_dilation_{axis} * {size - 1} - 1) / n_stride_{axis} + 1;\n  }}"
        )
    return "\n".join(lines)


def extent_value(kernel: ir.Kernel, symbol: str, call: str = "c") -> str:
    """Return the C++ value of a symbolic extent of an operand, such as ``M``, ``C / groups`` or ``P``."""
    conv = kernel.operation
    if not kernel.is_gemm:
        sizes = dict(zip("TRS"[3 - conv.rank :], conv.kernel))
        if symbol in sizes:
            return str(sizes[symbol])
        if symbol in "ZPQ":
            return f"{call}.out_{symbol}()"
        symbol = symbol.replace("groups", str(conv.groups))
    return re.sub(r"\b([A-Z])\b", rf"{call}.n_\1", symbol)


def scalar(name: str) -> str:
    """Return the C++ value of a scalar that an epilogue reads."""
    return f"float(c.{name})" if name in ("alpha", "beta") else f"c.s_{name}"


def operand(kernel: ir.Kernel, name: str) -> Operand:
    """Return the operand of a kernel by name."""
    return next(one for one in of_kernel(kernel) if one.name == name)
