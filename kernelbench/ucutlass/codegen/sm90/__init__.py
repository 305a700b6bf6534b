"""Hopper: CUTLASS 3.x kernels through the collective builders, with a visitor tree for the epilogue."""

from __future__ import annotations

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.codegen.call import KernelCode
from kernelbench.ucutlass.codegen.sm90 import conv, gemm, grouped


def generate(kernel: ir.Kernel, namespace: str) -> KernelCode:
    """Return the code of one kernel; raises Unsupported."""
    if not kernel.is_gemm:
        return conv.generate(kernel, namespace)
    if kernel.operation.form is ir.GemmForm.GROUPED:
        return grouped.generate(kernel, namespace)
    return gemm.generate(kernel, namespace)
