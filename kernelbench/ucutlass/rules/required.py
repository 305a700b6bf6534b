"""Clauses that every kernel needs."""

from collections.abc import Iterator

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.rules.registry import Breach, Subject, rule

_EXPLICIT = "the compiler does not guess types, architecture or layout: another one is another kernel"


@rule("required-dtype", _EXPLICIT, Subject.WRITTEN)
def _dtype(kernel: ir.Kernel) -> Iterator[Breach]:
    if kernel.dtypes is None and "dtypes" not in kernel.positions:
        yield (f"{kernel.operation.word}(...) has no .with_dtype(...)",
               "add .with_dtype(input=fp16, acc=fp32, output=fp16), or other types", kernel.at)  # fmt: skip


@rule("required-arch", _EXPLICIT, Subject.WRITTEN)
def _arch(kernel: ir.Kernel) -> Iterator[Breach]:
    if kernel.arch is None and "arch" not in kernel.positions:
        yield (f"{kernel.operation.word}(...) has no .with_arch(...)",
               "add .with_arch(sm_90a), or the architecture of your GPU", kernel.at)  # fmt: skip


@rule("required-layout", _EXPLICIT, Subject.WRITTEN)
def _layout(kernel: ir.Kernel) -> Iterator[Breach]:
    if kernel.is_gemm and kernel.layout is None and "layout" not in kernel.positions:
        yield (f"{kernel.operation.word}(...) has no .with_layout(...)",
               "add .with_layout(A=RowMajor, B=RowMajor, C=RowMajor); B=ColumnMajor for a weight [N, K] of PyTorch",
               kernel.at)  # fmt: skip
