"""Ampere and Ada: CUTLASS 2.x kernels."""

from __future__ import annotations

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.codegen.call import KernelCode
from kernelbench.ucutlass.codegen.sm80 import conv, gemm


def generate(kernel: ir.Kernel, namespace: str) -> KernelCode:
    """Return the code of one kernel; raises Unsupported."""
    return gemm.generate(kernel) if kernel.is_gemm else conv.generate(kernel)
