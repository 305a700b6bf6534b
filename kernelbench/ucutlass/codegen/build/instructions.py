"""The instructions that a program's schedule promises, looked up in its PTX.

A kernel may be right and miss them: the compiler serialises wgmma without a word, and a fallback runs on CUDA cores.
Names are of NVIDIA's PTX ISA, https://docs.nvidia.com/cuda/parallel-thread-execution/.
"""

from __future__ import annotations

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.ir import ConvForm, DType

WGMMA, TMA, ASYNC_COPY, MMA = "wgmma.mma_async", "cp.async.bulk.tensor", "cp.async.c", "mma.sync"


def promised(kernel: ir.Kernel) -> tuple[str, ...]:
    """Return the beginnings of PTX instructions that a complete kernel must contain."""
    if not kernel.is_gemm and kernel.operation.form is ConvForm.DEPTHWISE:
        return ("fma.rn",)
    if kernel.arch.is_sm90_or_later:
        main = kernel.scheduler.kernel if kernel.scheduler else None
        return (WGMMA, TMA) if main is None or main.is_tma or not kernel.is_gemm else (WGMMA, ASYNC_COPY)
    compute = "fma.rn.f32" if kernel.dtypes.input is DType.FP32 else MMA
    # two stages keep the next tile in registers, more take cp.async
    return (compute, ASYNC_COPY) if (kernel.stages or 0) > 2 else (compute,)


def missing(program: ir.Program, ptx: str) -> list[str]:
    """Return what a program promises and its PTX does not hold."""
    wanted = dict.fromkeys(name for kernel in program.kernels for name in promised(kernel))
    return [name for name in wanted if name not in ptx]
