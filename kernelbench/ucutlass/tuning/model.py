"""A first guess of a kernel's time, from its configuration and the device's limits.

It decides only what is measured first. It knows tensor-core rate, quantisation to waves, traffic of L2 and of device
memory, start-up and the part of the epilogue that nothing hides; it knows nothing of clocks, bank conflicts and
instruction issue.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelbench.ucutlass import ir, resources
from kernelbench.ucutlass.ir import DType, GemmForm, KernelSchedule, RasterOrder, SplitKMode, Swizzle, TileScheduler
from kernelbench.ucutlass.operands import Reads

# L2 to SM bandwidth over that of device memory, 3.35 TB/s on an H100: tiles of 128 x 128 in clusters of two, which load
# half as much again as 128 x 256, took 1 % longer at 4096 cubed and 15 % longer at 8192 (results/h100/ucutlass).
_L2_RATIO = 2.2
_SHARED_BYTES_PER_CLOCK = 128  # of one SM; CUDA C Programming Guide, 32 banks of 4 bytes
_CLUSTER_COST = 0.002  # of each further thread block: all wait for the slowest; it also decides ties
_GPC_SHARE = 128 / 132
_STREAM_K_COST = 1.05  # stream-K took 7 % longer than the persistent kernel at 4096 cubed, 2 % at 8192, as above
_STEP_US = 0.02  # barriers of one step of K, some 35 clocks
_LAUNCH_US = 3.0  # launch, first loads and last stores of a kernel, as seen for empty ones
_PAYLOAD = 0.7  # of the quoted rate: cuBLAS reached 0.66 to 0.68 in FP16 under the power limit (results/h100/ucutlass)


@dataclass(frozen=True)
class Size:
    """One matrix product: D[M, N] = A[M, K] · B[K, N], ``batch`` times."""

    m: int
    n: int
    k: int
    batch: int = 1


def sizes_of(kernel: ir.Kernel, extents: dict[str, int]) -> Size:
    """The matrix product that a kernel computes, of a convolution as an implicit one."""
    if kernel.is_gemm:
        return Size(extents["M"], extents["N"], extents["K"], extents.get("L", 1))
    pixels = extents["N"] * math.prod(extents[axis] for axis in "ZPQ"[3 - kernel.operation.rank :])
    inner = math.prod(extents[axis] for axis in "DHW"[3 - kernel.operation.rank :]) * extents["N"]
    taps = math.prod(kernel.operation.kernel)
    channels, filters = extents["C"], extents["K"]
    direction = kernel.operation.direction
    if direction is ir.Direction.FPROP:
        return Size(pixels, filters, channels * taps // kernel.operation.groups)
    if direction is ir.Direction.DGRAD:
        return Size(inner, channels, filters * taps)
    return Size(filters, channels * taps, pixels)


def predicted_ms(kernel: ir.Kernel, size: Size, limits) -> float:
    """Predicted milliseconds of one call; ``limits`` is a `harness.sol.hardware.Limits`."""
    tile, found = kernel.cta_tile, resources.estimate(kernel)
    slices = kernel.split_k.slices if kernel.split_k else 1
    tiles = math.ceil(size.m / tile.m) * math.ceil(size.n / tile.n) * size.batch * slices
    cluster = kernel.cluster or ir.Cluster(1, 1, 1)
    # A cluster lies within one GPC, of 16 or 18 SMs on an H100: clusters of four and eight leave some idle.
    usable = limits.multiprocessors if cluster.size < 4 else limits.multiprocessors * _GPC_SHARE
    at_once = int(usable // cluster.size * cluster.size) * max(1, found.blocks_per_sm)
    compute = _tile_us(kernel, size.k / slices, limits) / max(1, found.blocks_per_sm)
    stream_k = (kernel.scheduler and kernel.scheduler.tile is TileScheduler.STREAM_K) or (
        kernel.swizzle is Swizzle.STREAM_K
    )
    waves = tiles / at_once if stream_k and tiles > at_once / 8 else math.ceil(tiles / at_once)
    ends = math.ceil(tiles / at_once)
    exposed = _epilogue_us(kernel, limits)
    overlap = kernel.scheduler is not None and kernel.scheduler.kernel is KernelSchedule.TMA_PINGPONG
    total = waves * max(1, found.blocks_per_sm) * compute + exposed * (1 if overlap else ends)
    if stream_k:
        sums = 2 * 4 / kernel.dtypes.output.bytes  # written and read in FP32
        total = total * _STREAM_K_COST + sums * exposed + _LAUNCH_US / 2
    if slices > 1:
        total += exposed * (slices if kernel.split_k.mode is SplitKMode.SERIAL else 2)
    memory = _memory_us(kernel, size, limits)
    filling = min(1.0, found.stages / 3)  # fewer than three stages do not hide the latency of memory
    return (max(total, memory) / (0.7 + 0.3 * filling) + _LAUNCH_US) / 1e3 * (1 + _CLUSTER_COST * (cluster.size - 1))


def _rate(kernel: ir.Kernel, limits) -> float:
    """FLOP a microsecond of one SM."""
    given = kernel.dtypes.input
    if given in (DType.FP32, DType.TF32):
        on_cores = given is DType.FP32 and not kernel.arch.is_sm90_or_later
        tflops = limits.fp32 if on_cores else limits.tf32 or limits.fp32
    elif given.bytes == 1:
        tflops = 2 * limits.fp16
    else:
        tflops = limits.fp32 / 2 if given is DType.FP64 else limits.fp16
    return _PAYLOAD * tflops * 1e6 / limits.multiprocessors


def _tile_us(kernel: ir.Kernel, depth: float, limits) -> float:
    """Microseconds of one tile's products on one SM, limited by its tensor cores or by its shared memory."""
    tile, size = kernel.cta_tile, kernel.dtypes.input.bytes
    compute = 2 * tile.m * tile.n * depth / _rate(kernel, limits)
    # each warp group (SM90: 64 rows) or warp (64 x 64 before) reads its rows of A and all of its columns of B
    rows, columns = (64, tile.n) if kernel.arch.is_sm90_or_later else (min(64, tile.m), min(64, tile.n))
    reads = (tile.m * tile.n / (rows * columns)) * (rows + columns) * depth * size
    clocks = reads / _SHARED_BYTES_PER_CLOCK
    return max(compute, clocks / limits.quoted_mhz) + depth / tile.k * _STEP_US


def _epilogue_us(kernel: ir.Kernel, limits) -> float:
    """Microseconds in which one SM writes its tile, and reads what the epilogue needs of its shape."""
    tile, reads = kernel.cta_tile, Reads.of(kernel)
    matrices = 1 + reads.matrices + reads.stores
    share = limits.gbps * _L2_RATIO * 1e3 / limits.multiprocessors  # bytes a microsecond
    return tile.m * tile.n * kernel.dtypes.output.bytes * matrices / share


def _memory_us(kernel: ir.Kernel, size: Size, limits) -> float:
    """Microseconds that L2 and device memory need at least."""
    tile, cluster = kernel.cta_tile, kernel.cluster or ir.Cluster(1, 1, 1)
    given, made = kernel.dtypes.input.bytes, kernel.dtypes.output.bytes
    tiles = math.ceil(size.m / tile.m) * math.ceil(size.n / tile.n) * size.batch
    loads = tiles * size.k * (tile.m / cluster.n + tile.n / cluster.m) * given  # multicast shares loads
    matrices = 1 + Reads.of(kernel).matrices + Reads.of(kernel).stores
    once = ((size.m + size.n) * size.k * given + size.m * size.n * made * matrices) * size.batch
    wave = _wave_bytes(kernel, size, limits)
    again = 1.0 if wave < limits.l2_bytes else min(2.0, wave / limits.l2_bytes)
    return max(loads / (limits.gbps * _L2_RATIO * 1e3), once * again / (limits.gbps * 1e3))


def _wave_bytes(kernel: ir.Kernel, size: Size, limits) -> float:
    """Bytes of A and B that the tiles of one wave read: the order of tiles decides how square the wave is."""
    tile = kernel.cta_tile
    across = math.ceil(size.n / tile.n)
    down = math.ceil(size.m / tile.m)
    at_once = min(limits.multiprocessors, across * down)
    band = 1
    if kernel.scheduler:
        band = kernel.scheduler.max_swizzle
        if kernel.scheduler.raster is RasterOrder.ALONG_N:
            across, down = down, across
            tile = ir.CtaTile(tile.n, tile.m, tile.k)
    elif kernel.swizzle and kernel.swizzle is not Swizzle.STREAM_K:
        band = int(kernel.swizzle.value.removeprefix("Identity"))
    columns = min(across, band)
    rows = min(down, math.ceil(at_once / max(1, columns)))
    if kernel.is_gemm and kernel.operation.form is GemmForm.BATCHED:
        rows = min(rows, down)
    return (rows * tile.m + columns * tile.n) * size.k * kernel.dtypes.input.bytes
