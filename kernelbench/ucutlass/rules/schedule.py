"""Schedules of SM90: which kernel, epilogue and tile schedules go together."""

from collections.abc import Iterator

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.ir import EpilogueSchedule, GemmForm, KernelSchedule, Matrix, RasterOrder, TileScheduler
from kernelbench.ucutlass.operands import Reads
from kernelbench.ucutlass.rules.registry import Breach, place, rule


def _hopper(kernel: ir.Kernel) -> bool:
    return kernel.arch.is_sm90_or_later and kernel.scheduler is not None


@rule("cooperative-epilogue", "kernel and epilogue must split a tile alike: MMA_TILE_M must divide EPI_TILE_M")
def _epilogue(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _hopper(kernel):
        return
    schedule, epilogue = kernel.scheduler.kernel, kernel.scheduler.epilogue
    at = place(kernel, "scheduler")
    if schedule is KernelSchedule.TMA_COOPERATIVE and epilogue is not EpilogueSchedule.TMA_COOPERATIVE:
        yield f"kernel={schedule} with epilogue={epilogue}", "write epilogue=tma_cooperative, or epilogue=auto", at
    elif schedule is KernelSchedule.CP_ASYNC_COOPERATIVE and epilogue is EpilogueSchedule.TMA:
        yield f"kernel={schedule} with epilogue={epilogue}", "write epilogue=tma_cooperative, or epilogue=auto", at
    elif epilogue is EpilogueSchedule.TMA_COOPERATIVE and not schedule.is_cooperative:
        yield f"epilogue={epilogue} with kernel={schedule}", "write epilogue=tma, or kernel=tma_cooperative", at


@rule("stream-k-cooperative", "of CUTLASS's kernels only the cooperative ones can share one tile's sum over K")
def _stream_k(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _hopper(kernel) or kernel.scheduler.tile is not TileScheduler.STREAM_K:
        return
    schedule, at = kernel.scheduler.kernel, place(kernel, "scheduler")
    if schedule is not KernelSchedule.TMA_COOPERATIVE:
        yield (f"tile=stream_k with kernel={schedule}",
               "write kernel=tma_cooperative and .with_stages(2), or tile=default", at)  # fmt: skip
    if kernel.is_gemm and kernel.operation.form is GemmForm.GROUPED:
        yield "tile=stream_k with grouped_gemm", "write tile=persistent", at


@rule("persistent-schedule", "a kernel with one consumer warp group ends with its tile; the others take the next one")
def _persistent(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _hopper(kernel) or not kernel.is_gemm or kernel.scheduler.tile is not TileScheduler.PERSISTENT:
        return
    schedule = kernel.scheduler.kernel
    if schedule in (KernelSchedule.TMA, KernelSchedule.CP_ASYNC):
        yield (f"tile=persistent with kernel={schedule}",
               "write kernel=tma_cooperative or kernel=tma_pingpong, or tile=default",
               place(kernel, "scheduler"))  # fmt: skip


@rule("splits-stream-k", "splits say into how many parts stream-K cuts the sum over K")
def _splits(kernel: ir.Kernel) -> Iterator[Breach]:
    if _hopper(kernel) and kernel.scheduler.splits > 1 and kernel.scheduler.tile is not TileScheduler.STREAM_K:
        yield (f"splits={kernel.scheduler.splits} with tile={kernel.scheduler.tile}",
               "write tile=stream_k, or remove splits", place(kernel, "scheduler"))  # fmt: skip


@rule("max-swizzle", "CUTLASS visits 1, 2, 4 or 8 neighbouring tiles together")
def _max_swizzle(kernel: ir.Kernel) -> Iterator[Breach]:
    if _hopper(kernel) and kernel.scheduler.max_swizzle not in (1, 2, 4, 8):
        yield (f"max_swizzle={kernel.scheduler.max_swizzle}", "write max_swizzle=1, 2, 4 or 8",
               place(kernel, "scheduler"))  # fmt: skip


@rule("raster-gemm", "the order of tiles is an argument of the kernels of gemm() and batched_gemm() alone")
def _raster(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _hopper(kernel) or (kernel.is_gemm and kernel.operation.form is not GemmForm.GROUPED):
        return
    if kernel.scheduler.raster is not RasterOrder.HEURISTIC or kernel.scheduler.max_swizzle > 1:
        yield (f"raster={kernel.scheduler.raster}, max_swizzle={kernel.scheduler.max_swizzle} of "
               f"{kernel.operation.word}(...)", "remove raster and max_swizzle",
               place(kernel, "scheduler"))  # fmt: skip


@rule("cp-async-cluster", "cp.async loads for one thread block: only TMA multicasts to a cluster")
def _cp_async(kernel: ir.Kernel) -> Iterator[Breach]:
    if _hopper(kernel) and not kernel.scheduler.kernel.is_tma and kernel.cluster.size > 1:
        yield (f"kernel={kernel.scheduler.kernel} with a cluster of {kernel.cluster.size}",
               "write .with_cluster(m=1, n=1, k=1), or kernel=tma", place(kernel, "cluster"))  # fmt: skip


@rule("grouped-schedule", "kernels that read pointers from the device are persistent: cooperative or ping-pong")
def _grouped(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _hopper(kernel) or not kernel.is_gemm or kernel.operation.form is not GemmForm.GROUPED:
        return
    if kernel.scheduler.kernel not in (KernelSchedule.TMA_COOPERATIVE, KernelSchedule.TMA_PINGPONG):
        yield (f"grouped_gemm with kernel={kernel.scheduler.kernel}",
               "write kernel=tma_cooperative with .with_stages(2), or kernel=tma_pingpong",
               place(kernel, "scheduler"))  # fmt: skip
    if kernel.scheduler.epilogue is EpilogueSchedule.NO_SMEM:
        yield "grouped_gemm with epilogue=no_smem", "write epilogue=auto", place(kernel, "scheduler")


@rule("grouped-operands", "the rows of all experts lie one after the other, so they and D have no pointer for each")
def _grouped_operands(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _hopper(kernel) or not kernel.is_gemm or kernel.operation.form is not GemmForm.GROUPED:
        return
    if kernel.layout.a is not Matrix.ROW_MAJOR or kernel.layout.c is not Matrix.ROW_MAJOR:
        yield (f"grouped_gemm with A={kernel.layout.a}, C={kernel.layout.c}", "write A=RowMajor, C=RowMajor",
               place(kernel, "layout"))  # fmt: skip
    reads = Reads.of(kernel)
    if reads.columns or reads.matrices or reads.stores:
        at = place(kernel, "scaling") if kernel.scaling.beta else kernel.epilogue[0].at
        yield ("grouped_gemm whose epilogue reads or stores something for each row",
               "write beta=0, and keep to bias(), row vectors and scalars", at)  # fmt: skip


@rule("operand-swap",
      "(A B)^T = B^T A^T needs no copy only for a square FP32 GEMM: M == N, which is checked at run time")  # fmt: skip
def _swap(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _hopper(kernel) or not kernel.operand_swap:
        return
    at = place(kernel, "operand_swap")
    remove = "remove .with_operand_swap(true)"
    if not kernel.is_gemm or kernel.operation.form is not GemmForm.STANDARD:
        yield f"{kernel.operation.word}(...) with an operand swap", f"{remove}: it is for gemm()", at
        return
    if kernel.dtypes.input.value not in ("fp32", "tf32"):
        yield (f"input={kernel.dtypes.input} with an operand swap",
               f"{remove}: 16-bit operands need no swap", at)  # fmt: skip
    if kernel.layout.c is not Matrix.ROW_MAJOR:
        yield "C is ColumnMajor with an operand swap", "write C=RowMajor", at
