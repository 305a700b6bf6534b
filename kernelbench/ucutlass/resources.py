"""Resources of a streaming multiprocessor that a kernel needs: shared memory, pipeline stages, registers, threads.

Estimates from the configuration alone; the compiler and the driver have the last word.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.ir import Arch, DType, EpilogueSchedule, KernelSchedule
from kernelbench.ucutlass.operands import Reads, side_dtype

KIB = 1 << 10
WARP_GROUP = 128  # threads that issue one wgmma
# Shared memory that one thread block may have, bytes: CUDA C Programming Guide, "Technical Specifications per
# Compute Capability", less 1 KiB that the system reserves. On SM90 the whole 228 KiB are the formula's start.
BLOCK_SHARED_BYTES = {Arch.SM70: 96 * KIB, Arch.SM80: 163 * KIB, Arch.SM86: 99 * KIB, Arch.SM89: 99 * KIB,
                      Arch.SM90: 227 * KIB, Arch.SM90A: 227 * KIB, Arch.SM100: 227 * KIB}  # fmt: skip
_SM90_SHARED_BYTES = 228 * KIB
_SM90_RESERVED_BYTES = 8 * KIB  # barriers, tensor maps, scheduler state
SM_REGISTERS = 1 << 16  # 32-bit registers of one SM, same guide
SM_THREADS = 2048
MAX_REGISTERS = 255  # of one thread
_FURTHER_REGISTERS = 56  # addresses, predicates and fragments of operands, beside the accumulators
_MAX_STAGES = 12  # more hide no further latency, and cost start-up time
# Accumulator registers of one thread beyond which the compiler spills: 255, less about 50 for addresses, operands
# and the epilogue. A 256 x 256 tile (256 of them) was seen to spill; 128 x 192 of one warp group (192) is at the edge.
MAX_ACCUMULATORS = 200


@dataclass(frozen=True)
class Resources:
    """Needs of one kernel; sizes in bytes, registers of one thread."""

    threads: int
    stage_bytes: int
    epilogue_bytes: int
    stages: int
    stages_that_fit: int
    shared_bytes: int
    shared_limit_bytes: int
    accumulator_registers: int
    register_estimate: int
    blocks_per_sm: int
    compile_seconds: float
    compile_memory_bytes: int


def estimate(kernel: ir.Kernel) -> Resources | None:
    """The resources of a complete kernel; None of a depthwise convolution, which has no tile."""
    if kernel.tile is None:
        return None
    stage, epilogue = stage_bytes(kernel), epilogue_bytes(kernel)
    fit, limit, threads = stages_that_fit(kernel), BLOCK_SHARED_BYTES[kernel.arch], threads_of(kernel)
    staged = stage * (kernel.stages or 1)
    # SM90 keeps both; before, the epilogue overwrites the stages.
    shared = staged + epilogue if kernel.arch.is_sm90_or_later else max(staged, epilogue)
    accumulators = accumulator_registers(kernel)
    registers = min(MAX_REGISTERS, accumulators + _FURTHER_REGISTERS)
    # Warp-specialised kernels get an equal share at launch and pass registers from loading to computing warps.
    launched = min(registers, SM_REGISTERS // threads // 8 * 8) if kernel.arch.is_sm90_or_later else registers
    seconds, memory = compile_cost(kernel)
    return Resources(
        threads=threads, stage_bytes=stage, epilogue_bytes=epilogue, stages=kernel.stages or 1, stages_that_fit=fit,
        shared_bytes=shared, shared_limit_bytes=limit, accumulator_registers=accumulators,
        register_estimate=registers,
        blocks_per_sm=min(limit // max(shared, 1), SM_REGISTERS // (launched * threads), SM_THREADS // threads),
        compile_seconds=seconds, compile_memory_bytes=memory,
    )  # fmt: skip


def stage_bytes(kernel: ir.Kernel) -> int:
    """Shared memory of one pipeline stage: a tile of A and one of B."""
    tile = kernel.cta_tile
    return (tile.m + tile.n) * tile.k * kernel.dtypes.input.bytes


def epilogue_bytes(kernel: ir.Kernel) -> int:
    """Shared memory of the epilogue.

    On SM90 the TMA epilogue stages the output in pieces of 64 x 32 elements, 128 x 32 where two warp groups
    cooperate. CUTLASS's builder takes two buffers for what is stored and four for each matrix that is loaded; the
    first of these shares the output's where an element has two bytes or more. Vectors lie there whole. Before SM90
    the epilogue overwrites the mainloop's memory with pieces of the tile; that never decides.
    """
    if not kernel.arch.is_sm90_or_later:
        return 0
    schedule = kernel.scheduler
    if schedule and schedule.epilogue is EpilogueSchedule.NO_SMEM:
        return 0
    tile, size = kernel.cta_tile, kernel.dtypes.output.bytes
    rows = max(1, min(128 if schedule and schedule.kernel and schedule.kernel.is_cooperative else 64, tile.m))
    pieces = max(1, tile.m // rows) * max(1, tile.n // 32)
    reads = Reads.of(kernel)
    buffers = min(pieces, 2)
    if reads.matrices:
        first = max(min(pieces, 4), 3)
        buffers = first if size > 1 else buffers + first
        buffers += (reads.matrices - 1) * min(pieces, 4)
    buffers += reads.stores * min(pieces, 2)
    vectors = (reads.rows * tile.n + reads.columns * tile.m) * side_dtype(kernel).bytes
    return buffers * rows * min(32, tile.n) * size + vectors


def stages_that_fit(kernel: ir.Kernel) -> int:
    """The most pipeline stages that shared memory holds; on SM90 (228 KB - epilogue - 8 KB) / bytes of a stage."""
    if kernel.arch.is_sm90_or_later:
        room = _SM90_SHARED_BYTES - epilogue_bytes(kernel) - _SM90_RESERVED_BYTES
    else:
        room = BLOCK_SHARED_BYTES[kernel.arch]
    return min(max(room, 0) // max(stage_bytes(kernel), 1), _MAX_STAGES)


def consumer_threads(kernel: ir.Kernel) -> int:
    """Threads that share the accumulators of one tile."""
    if kernel.arch.is_sm90_or_later:
        cooperative = kernel.scheduler and kernel.scheduler.kernel and kernel.scheduler.kernel.is_cooperative
        return WARP_GROUP * (2 if cooperative else 1)
    return 32 * warps_of(kernel)


def warps_of(kernel: ir.Kernel) -> int:
    """Warps of a thread block before SM90: 2 x 2, or 4 x 2 for large tiles and for 128 x 128 on CUDA cores."""
    tile = kernel.cta_tile
    outputs = tile.m * tile.n
    large = outputs >= 128 * 128 if kernel.dtypes.input is DType.FP32 else outputs > 128 * 128
    return 8 if large else 4


def threads_of(kernel: ir.Kernel) -> int:
    """Threads of a thread block, those that only load included."""
    if not kernel.arch.is_sm90_or_later:
        return consumer_threads(kernel)
    schedule = kernel.scheduler.kernel if kernel.scheduler else None
    if schedule in (KernelSchedule.TMA, KernelSchedule.AUTO, None):
        return 2 * WARP_GROUP
    return 3 * WARP_GROUP


def accumulator_registers(kernel: ir.Kernel) -> int:
    """32-bit registers that the accumulators of one thread take."""
    tile = kernel.cta_tile
    return -(-tile.m * tile.n * _words(kernel) // consumer_threads(kernel))


def _words(kernel: ir.Kernel) -> int:
    """32-bit registers of one accumulator."""
    return 2 if kernel.dtypes.acc is DType.FP64 else 1


def compile_cost(kernel: ir.Kernel) -> tuple[float, int]:
    """Seconds and bytes of memory that compiling one kernel takes; nvcc 13.0 with CUTLASS 4.2 on two cores."""
    if kernel.arch.is_sm90_or_later:
        return 45.0, 4 << 30
    has_visitor_tree = kernel.is_gemm and bool(kernel.epilogue)
    return (15.0 if has_visitor_tree else 6.0), 640 << 20
