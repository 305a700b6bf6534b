"""Which types of input, accumulator and output go together, and alignments in bytes."""

from collections.abc import Iterator

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.ir import DType, EpilogueSchedule, GemmForm, Matrix
from kernelbench.ucutlass.rules.registry import Breach, listed, place, rule

_FLOATS = (DType.FP16, DType.BF16, DType.FP32)
_FP8 = (DType.FP8_E4M3, DType.FP8_E5M2)
# input -> accumulators, outputs
_TRIPLES = {
    DType.FP64: ((DType.FP64,), (DType.FP64,)),
    DType.FP32: ((DType.FP32,), (DType.FP32,)),
    DType.TF32: ((DType.FP32,), (DType.FP32,)),
    DType.FP16: ((DType.FP32, DType.FP16), (DType.FP16, DType.FP32)),
    DType.BF16: ((DType.FP32,), (DType.BF16, DType.FP32)),
    DType.FP8_E4M3: ((DType.FP32,), (*_FLOATS, *_FP8)),
    DType.FP8_E5M2: ((DType.FP32,), (*_FLOATS, *_FP8)),
    DType.INT8: ((DType.INT32,), (DType.INT32, DType.INT8, DType.FP32)),
    DType.UINT8: ((DType.INT32,), (DType.INT32, DType.UINT8, DType.FP32)),
}


@rule("dtype-triple", "tensor cores multiply one type into certain accumulators, and the epilogue converts these")
def _triple(kernel: ir.Kernel) -> Iterator[Breach]:
    types = kernel.dtypes
    at = place(kernel, "dtypes")
    if types.input not in _TRIPLES:
        yield f"input={types.input} has no kernel", f"use input={listed(_TRIPLES)}", at
        return
    accumulators, outputs = _TRIPLES[types.input]
    if types.acc not in accumulators:
        yield f"input={types.input} with acc={types.acc}", f"use acc={listed(accumulators)}", at
    if types.output not in outputs:
        yield f"input={types.input} with output={types.output}", f"use output={listed(outputs)}", at


def sides(kernel: ir.Kernel) -> list[tuple[str, int, DType]]:
    """Operand, alignment in elements, and type, of A, B and C."""
    alignment, types = kernel.alignment, kernel.dtypes
    return [("A", alignment.a, types.input), ("B", alignment.b, types.input), ("C", alignment.c, types.output)]


@rule("tma-alignment", "TMA reads and writes pieces of 16 bytes: (alignment * element size) % 16 must be 0")
def _tma(kernel: ir.Kernel) -> Iterator[Breach]:
    if not kernel.arch.is_sm90_or_later or kernel.scheduler is None:
        return
    by_tma = {"A", "B"} if kernel.scheduler.kernel.is_tma and kernel.is_gemm else set()
    by_tma |= {"C"} if kernel.scheduler.epilogue is not EpilogueSchedule.NO_SMEM else set()
    by_tma_only = not kernel.is_gemm or kernel.operation.form is GemmForm.GROUPED
    for name, elements, dtype in sides(kernel):
        if name in by_tma and elements * dtype.bytes % 16:
            least = 16 // dtype.bytes
            other = "; or use kernel=cp_async" if name != "C" else "; or use epilogue=no_smem"
            yield (f"{name}={elements} is {elements * dtype.bytes} bytes of {dtype}",
                   f"write {name}={least}, or a multiple, in .with_alignment(...){'' if by_tma_only else other}",
                   place(kernel, "alignment"))  # fmt: skip


@rule("alignment-bytes", "a thread loads 1, 2, 4, 8 or 16 bytes at once; cp.async from 4 bytes on")
def _bytes(kernel: ir.Kernel) -> Iterator[Breach]:
    at = place(kernel, "alignment")
    tma = kernel.scheduler is not None and kernel.scheduler.kernel.is_tma
    cp_async = (kernel.stages or 2) > 2 or kernel.arch.is_sm90_or_later and kernel.scheduler is not None
    for name, elements, dtype in sides(kernel):
        size = elements * dtype.bytes
        if tma and size % 16 == 0:  # a multiple is a promise that TMA does not use
            continue
        if elements & (elements - 1) or size > 16:
            allowed = [n for n in (1, 2, 4, 8, 16) if n * dtype.bytes <= 16]
            yield f"{name}={elements} is {size} bytes of {dtype}", f"write {name}={listed(allowed)}", at
        elif cp_async and name != "C" and size < 4:
            least = 4 // dtype.bytes
            fix = f"write {name}={least} or more"
            fix += "" if kernel.arch.is_sm90_or_later else ", or .with_stages(2)"
            yield f"{name}={elements} is {size} bytes of {dtype}, too few for cp.async", fix, at


@rule("k-major", "tensor cores read 8-bit operands, and wgmma 32-bit ones, only with K contiguous")
def _k_major(kernel: ir.Kernel) -> Iterator[Breach]:
    size = kernel.dtypes.input.bytes
    if not kernel.is_gemm or size not in ((1, 4) if kernel.arch.is_sm90_or_later else (1,)):
        return
    at = place(kernel, "layout")
    dtype = kernel.dtypes.input
    if kernel.layout.a is not Matrix.ROW_MAJOR:
        yield f"A is ColumnMajor with input={dtype}: K is not contiguous", "write A=RowMajor; transpose A before", at
    if kernel.layout.b is not Matrix.COLUMN_MAJOR and not kernel.operand_swap:
        swap = ", write .with_operand_swap(true) where M == N," if size == 4 else ""
        yield (f"B is RowMajor with input={dtype}: K is not contiguous",
               f"write B=ColumnMajor and pass B as [N, K]{swap} or begin a pipeline with transpose(weight, NCL, NLC)",
               at)  # fmt: skip
