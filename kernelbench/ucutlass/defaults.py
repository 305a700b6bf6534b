"""Defaults of clauses that a program leaves out, so that code generation, rules and the hash see every choice."""

from __future__ import annotations

from dataclasses import replace

from kernelbench.ucutlass import ir, resources
from kernelbench.ucutlass.ir import (
    Alignment,
    Cluster,
    ConvLayout,
    ConvTensor,
    DType,
    EpilogueSchedule,
    Iterator,
    KernelSchedule,
    RasterOrder,
    Scaling,
    Scheduler,
    SplitK,
    SplitKMode,
    Swizzle,
    Tile,
    TileScheduler,
)

_VECTOR_BYTES = 16  # the widest load, and what TMA demands
_TILE_K_BYTES = 128  # of SM90: a whole swizzle atom
_FIRST_STAGES = 3  # of SM80 to SM89, where they fit
# A depthwise convolution multiplies no matrices: its kernel has no tile and no schedule. A rule refuses these clauses.
NOT_OF_DEPTHWISE = ("tile", "stages", "cluster", "scheduler", "swizzle", "split_k", "operand_swap")
BEFORE_SM90, FROM_SM90 = ("swizzle", "iterator", "split_k"), ("cluster", "scheduler", "operand_swap")
_PERSISTENT = (KernelSchedule.TMA_COOPERATIVE, KernelSchedule.TMA_PINGPONG)


def complete(program: ir.Program) -> ir.Program:
    """The program with every clause of every kernel filled in; its kernels must have a type and an architecture."""
    body = program.body
    if isinstance(body, ir.Kernel):
        return replace(program, body=complete_kernel(body))
    stages = tuple(complete_kernel(stage) if isinstance(stage, ir.Kernel) else stage for stage in body.stages)
    return replace(program, body=replace(body, stages=stages))


def complete_kernel(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with every clause that its architecture and its operation know filled in."""
    given, made = kernel.dtypes.input, kernel.dtypes.output
    widest = [_VECTOR_BYTES // dtype.bytes for dtype in (given, given, made)]
    kernel = replace(kernel, alignment=kernel.alignment or Alignment(*widest), scaling=kernel.scaling or Scaling())
    if kernel.layout is None and not kernel.is_gemm:
        tensor = ConvTensor.NDHWC if kernel.operation.rank == 3 else ConvTensor.NHWC
        kernel = replace(kernel, layout=ConvLayout(tensor, tensor, tensor))
    if not kernel.is_gemm and kernel.operation.form is ir.ConvForm.DEPTHWISE:
        return replace(kernel, **dict.fromkeys(NOT_OF_DEPTHWISE))
    if kernel.arch.is_sm90_or_later:
        return _sm90(replace(kernel, **dict.fromkeys(BEFORE_SM90)))
    return _before_sm90(replace(kernel, **dict.fromkeys(FROM_SM90)))


def _sm90(kernel: ir.Kernel) -> ir.Kernel:
    cluster = kernel.cluster or Cluster(1, 1, 1)
    size = kernel.dtypes.input.bytes
    tile = kernel.tile or Tile(128 * cluster.m, 128, _TILE_K_BYTES // size, is_threadblockshape=True)
    kernel = replace(kernel, cluster=cluster, tile=tile, operand_swap=bool(kernel.operand_swap))
    kernel = replace(kernel, scheduler=_scheduler(kernel))
    if kernel.stages is None:
        kernel = replace(kernel, stages=max(2, resources.stages_that_fit(kernel)))
    return kernel


def _scheduler(kernel: ir.Kernel) -> Scheduler:
    written = kernel.scheduler or Scheduler()
    schedule = written.kernel or KernelSchedule.AUTO
    if schedule is KernelSchedule.AUTO:
        schedule = _kernel_schedule(kernel, written)
    epilogue = written.epilogue or EpilogueSchedule.AUTO
    if epilogue is EpilogueSchedule.AUTO:
        epilogue = EpilogueSchedule.TMA_COOPERATIVE if schedule.is_cooperative else EpilogueSchedule.TMA
    tile = written.tile or TileScheduler.DEFAULT
    if tile is TileScheduler.DEFAULT and schedule in _PERSISTENT:
        tile = TileScheduler.PERSISTENT
    return replace(written, tile=tile, kernel=schedule, epilogue=epilogue,
                   splits=written.splits or 1, raster=written.raster or RasterOrder.HEURISTIC,
                   max_swizzle=written.max_swizzle or 1)  # fmt: skip


def _kernel_schedule(kernel: ir.Kernel, written: Scheduler) -> KernelSchedule:
    """The schedule for `auto`: cooperative where two warp groups have work, else ping-pong, else one warp group."""
    if not kernel.is_gemm:
        return KernelSchedule.TMA
    narrow = min(kernel.alignment.a, kernel.alignment.b) * kernel.dtypes.input.bytes < _VECTOR_BYTES
    cooperative = kernel.cta_tile.m % 128 == 0 and written.epilogue is not EpilogueSchedule.TMA
    if narrow:
        return KernelSchedule.CP_ASYNC_COOPERATIVE if cooperative else KernelSchedule.CP_ASYNC
    if cooperative or written.tile is TileScheduler.STREAM_K:
        return KernelSchedule.TMA_COOPERATIVE
    return KernelSchedule.TMA_PINGPONG


def _before_sm90(kernel: ir.Kernel) -> ir.Kernel:
    simt = uses_simt(kernel)
    given = kernel.dtypes.input
    tile = Tile(64, 64, 16) if given is DType.FP64 else Tile(128, 128, 8 if simt else 64 // given.bytes)
    kernel = replace(kernel, tile=kernel.tile or tile, swizzle=kernel.swizzle or Swizzle.IDENTITY1,
                     split_k=kernel.split_k or SplitK(SplitKMode.NONE, 1))  # fmt: skip
    if not kernel.is_gemm and kernel.iterator is None:
        kernel = replace(kernel, iterator=Iterator.OPTIMIZED)
    if kernel.stages is None:
        first = 2 if simt else _FIRST_STAGES
        kernel = replace(kernel, stages=max(2, min(first, resources.stages_that_fit(kernel))))
    return kernel


def uses_simt(kernel: ir.Kernel) -> bool:
    """Return whether a kernel before SM90 runs on CUDA cores: FP32, which tensor cores have only as TF32."""
    return kernel.dtypes.input is DType.FP32
