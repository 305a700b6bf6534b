"""Features of each architecture: clauses, operations, types."""

from collections.abc import Iterator

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.ir import Arch, ConvForm, Direction, DType, GemmForm
from kernelbench.ucutlass.rules.registry import Breach, Subject, place, rule


@rule("arch-sm90a", "without the a the compiler has no wgmma and no warp specialisation, for any schedule",
      Subject.WRITTEN)  # fmt: skip
def _sm90a(kernel: ir.Kernel) -> Iterator[Breach]:
    if kernel.arch is Arch.SM90:
        yield "the architecture is sm_90", "write .with_arch(sm_90a)", place(kernel, "arch")


_NOT_GENERATED = {
    Arch.SM70: "nvcc 13 builds for compute capability 7.5 and later",
    Arch.SM100: "Blackwell multiplies by tcgen05, for which no code is generated",
}


@rule("arch-generated", "code is generated for what CUTLASS 4.2 and nvcc 13 build here", Subject.WRITTEN)
def _generated(kernel: ir.Kernel) -> Iterator[Breach]:
    if kernel.arch in _NOT_GENERATED:
        yield (f"{kernel.arch}: {_NOT_GENERATED[kernel.arch]}", "write .with_arch(sm_90a), or sm_80, sm_86 or sm_89",
               place(kernel, "arch"))  # fmt: skip


# clause -> spelling, first architecture, last architecture
_CLAUSES = {
    "swizzle": (".with_swizzle(...)", 70, 89, "use .with_scheduler(...), which orders tiles on SM90"),
    "iterator": (".with_iterator(...)", 70, 89, "remove it: TMA loads the operands on SM90"),
    "split_k": (".with_split_k(...)", 70, 89, "for a GEMM use .with_scheduler(tile=stream_k, splits=2)"),
    "cluster": (".with_cluster(...)", 90, 999, "remove it, or use .with_arch(sm_90a)"),
    "scheduler": (".with_scheduler(...)", 90, 999, "use .with_swizzle(pattern=Identity2), or .with_arch(sm_90a)"),
    "operand_swap": (".with_operand_swap(...)", 90, 999, "remove it, or use .with_arch(sm_90a)"),
}


@rule("arch-clause", "the two generations of CUTLASS kernels are configured by different choices", Subject.WRITTEN)
def _clause(kernel: ir.Kernel) -> Iterator[Breach]:
    if kernel.arch is None:
        return
    for clause, (spelling, first, last, fix) in _CLAUSES.items():
        if getattr(kernel, clause) is not None and not first <= kernel.arch.number <= last:
            known = f"SM{first}-{last}" if last < 999 else f"SM{first} and later"
            yield f"{spelling} is for {known}, the architecture is {kernel.arch}", fix, place(kernel, clause)


@rule("tile-clause", ".with_tile is a thread block's tile, .with_threadblockshape a cluster's", Subject.WRITTEN)
def _tile(kernel: ir.Kernel) -> Iterator[Breach]:
    tile, arch = kernel.tile, kernel.arch
    if tile is None or arch is None or tile.is_threadblockshape == arch.is_sm90_or_later:
        return
    sizes = f"(m={tile.m}, n={tile.n}, k={tile.k})"
    wrong, right = ".with_tile", ".with_threadblockshape"
    if tile.is_threadblockshape:
        wrong, right = right, wrong
    yield f"{wrong}(...) is not for {arch}", f"write {right}{sizes}", place(kernel, "tile")


_FIRST_ARCH = {
    DType.BF16: (80, "tensor cores have BF16 from SM80 on"),
    DType.TF32: (80, "tensor cores have TF32 from SM80 on"),
    DType.FP8_E4M3: (90, "kernels for FP8 are generated from SM90 on"),
    DType.FP8_E5M2: (90, "kernels for FP8 are generated from SM90 on"),
}


@rule("dtype-arch", "a type needs instructions that older architectures lack", Subject.WRITTEN)
def _dtype(kernel: ir.Kernel) -> Iterator[Breach]:
    if kernel.arch is None or kernel.dtypes is None:
        return
    for dtype in dict.fromkeys((kernel.dtypes.input, kernel.dtypes.acc, kernel.dtypes.output)):
        first, reason = _FIRST_ARCH.get(dtype, (0, ""))
        if kernel.arch.number < first:
            other = "fp16" if first == 80 else "fp16 or bf16"
            yield (f"{dtype} is not for {kernel.arch}: {reason}",
                   f"use {other}, or .with_arch(sm_{first}{'a' if first == 90 else ''})",
                   place(kernel, "dtypes"))  # fmt: skip
        if dtype is DType.FP64 and kernel.arch.number > 80:
            yield (f"{dtype} is not for {kernel.arch}: only the tensor cores of SM80 are built for it",
                   "use .with_arch(sm_80), or fp32", place(kernel, "dtypes"))  # fmt: skip


@rule("operation-arch", "CUTLASS has no kernel of this form for this architecture", Subject.WRITTEN)
def _operation(kernel: ir.Kernel) -> Iterator[Breach]:
    if kernel.arch is None:
        return
    operation, number = kernel.operation, kernel.arch.number
    word = f"{operation.word}(...)"
    at_80 = ".with_arch(sm_80), sm_86 or sm_89"
    if isinstance(operation, ir.Gemm):
        if operation.form is GemmForm.GROUPED and number < 90:
            yield f"{word} is generated for SM90a", "use .with_arch(sm_90a), or batched_gemm()", kernel.at
        return
    if operation.form is ConvForm.GROUPED and operation.rank == 3:
        yield f"{word} has no kernel in CUTLASS for any architecture", "use one conv3d_fprop(...) a group", kernel.at
    elif operation.form is ConvForm.GROUPED and not 80 <= number <= 89:
        yield f"{word} is for SM80-89", f"use {at_80}", kernel.at
    if operation.rank == 3 and operation.direction is Direction.WGRAD and number >= 90:
        yield f"{word} is for SM70-89", f"use {at_80}", kernel.at
