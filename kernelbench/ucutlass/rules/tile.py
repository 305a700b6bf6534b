"""Tiles, stages, registers and clusters of SM90."""

from collections.abc import Iterator

from kernelbench.ucutlass import ir, resources
from kernelbench.ucutlass.ir import KernelSchedule
from kernelbench.ucutlass.rules.registry import Breach, Subject, place, rule

_PORTABLE_CLUSTER = 8  # thread blocks; CUDA C Programming Guide, "Thread Block Clusters"
_WGMMA_M, _WGMMA_MAX_N = 64, 256  # PTX ISA, wgmma.mma_async shapes: m64nNkK, N up to 256
_WGMMA_K_BYTES = 32


def cta(kernel: ir.Kernel) -> str:
    """The m of a thread block, with how it comes about."""
    tile = kernel.tile
    return f"m={tile.m} of the cluster / cluster m={kernel.cluster.m} = {kernel.cta_tile.m} per CTA"


def _is_hopper(kernel: ir.Kernel) -> bool:
    return kernel.arch.is_sm90_or_later and kernel.tile is not None and kernel.tile.is_threadblockshape


@rule("cluster-divides-m", "m of .with_threadblockshape is the whole cluster's: each CTA takes m / cluster m")
def _divides(kernel: ir.Kernel) -> Iterator[Breach]:
    if _is_hopper(kernel) and kernel.tile.m % kernel.cluster.m:
        yield (f"m={kernel.tile.m} is no multiple of cluster m={kernel.cluster.m}",
               f"write m={128 * kernel.cluster.m}", place(kernel, "tile"))  # fmt: skip


@rule("cluster-size", "8 thread blocks are the portable limit of a cluster, and TMA multicast needs powers of two")
def _size(kernel: ir.Kernel) -> Iterator[Breach]:
    if not kernel.arch.is_sm90_or_later or kernel.cluster is None:
        return
    cluster, at = kernel.cluster, place(kernel, "cluster")
    for name in ("m", "n"):
        extent = getattr(cluster, name)
        if extent not in (1, 2, 4, 8):
            yield f"cluster {name}={extent}", f"write {name}=1, 2, 4 or 8", at
    if cluster.k != 1:
        yield f"cluster k={cluster.k}", "write k=1: thread blocks of a cluster share operands, not sums over K", at
    if cluster.size > _PORTABLE_CLUSTER and cluster.k == 1:
        yield f"a cluster of {cluster.m} x {cluster.n} = {cluster.size}", "write .with_cluster(m=2, n=1, k=1)", at


@rule("cooperative-m", "two warp groups split a cooperative tile along m, 64 rows each: per-CTA m = tile m / cluster m")
def _cooperative(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _is_hopper(kernel) or not kernel.scheduler.kernel.is_cooperative:
        return
    m = kernel.cta_tile.m
    if m < 128 or m % 128:
        yield (f"{cta(kernel)}, and kernel={kernel.scheduler.kernel} needs a multiple of 128",
               f"write m={max(1, round(m / 128)) * 128 * kernel.cluster.m}, a smaller cluster m, "
               "or kernel=tma_pingpong",
               place(kernel, "tile"))  # fmt: skip


@rule("wgmma-tile", "wgmma multiplies 64 rows by up to 256 columns, 32 bytes of K at a time")
def _wgmma(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _is_hopper(kernel):
        return
    tile, at = kernel.cta_tile, place(kernel, "tile")
    if not kernel.scheduler.kernel.is_cooperative and (tile.m < _WGMMA_M or tile.m % _WGMMA_M):
        whole = max(1, round(tile.m / _WGMMA_M)) * _WGMMA_M
        yield f"{cta(kernel)}, no multiple of {_WGMMA_M}", f"write m={whole * kernel.cluster.m}", at
    if tile.n > _WGMMA_MAX_N or not (tile.n % 32 == 0 or tile.n in (8, 16)):
        whole = min(_WGMMA_MAX_N, max(1, round(tile.n / 32)) * 32)
        yield f"n={tile.n} is none of 8, 16 or a multiple of 32 up to {_WGMMA_MAX_N}", f"write n={whole}", at
    size = kernel.dtypes.input.bytes
    if tile.k * size % _WGMMA_K_BYTES:
        yield (f"k={tile.k} is {tile.k * size} bytes of {kernel.dtypes.input}, no multiple of {_WGMMA_K_BYTES}",
               f"write k={128 // size}, which is 128 bytes", at)  # fmt: skip


@rule("registers", "accumulators stay in registers; what does not fit goes to slow local memory")
def _registers(kernel: ir.Kernel) -> Iterator[Breach]:
    if kernel.tile is None:
        return
    registers = resources.accumulator_registers(kernel)
    if registers <= resources.MAX_ACCUMULATORS:
        return
    tile = kernel.cta_tile
    fix = "use a smaller tile, such as 128 x 128"
    if kernel.arch.is_sm90_or_later and not kernel.scheduler.kernel.is_cooperative and tile.m % 128 == 0:
        fix += ", or kernel=tma_cooperative, which has twice the threads"
    yield (f"a tile of {tile.m} x {tile.n} takes {registers} accumulator registers a thread, "
           f"more than {resources.MAX_ACCUMULATORS}", fix, place(kernel, "tile"))  # fmt: skip


@rule("cooperative-stages", "a cooperative kernel with as many stages as CUTLASS guesses may exceed shared memory",
      Subject.WRITTEN)  # fmt: skip
def _explicit(kernel: ir.Kernel) -> Iterator[Breach]:
    scheduler = kernel.scheduler
    if scheduler and scheduler.kernel is KernelSchedule.TMA_COOPERATIVE and kernel.stages is None:
        if "stages" not in kernel.positions:
            yield ("kernel=tma_cooperative without .with_stages(...)", "add .with_stages(2)",
                   place(kernel, "scheduler"))  # fmt: skip


@rule("stages-fit", "stages = (shared memory - epilogue - 8 KB on SM90) / bytes of one stage")
def _fit(kernel: ir.Kernel) -> Iterator[Breach]:
    if kernel.tile is None:
        return
    fit = resources.stages_that_fit(kernel)
    at = place(kernel, "stages" if "stages" in kernel.positions else "tile")
    if kernel.stages <= fit or (kernel.stages < 2 and fit):
        return
    stage, epilogue = resources.stage_bytes(kernel) / 1024, resources.epilogue_bytes(kernel) / 1024
    fix = f"write .with_stages({fit})" if fit >= 2 else "use a smaller tile, or a type with fewer bytes"
    yield (f"{kernel.stages} stages of {stage:g} KB and an epilogue of {epilogue:g} KB; {fit} fit "
           f"({resources.BLOCK_SHARED_BYTES[kernel.arch] // 1024} KB on {kernel.arch})", fix, at)  # fmt: skip


@rule("stages-least", "with one stage nothing is loaded while something is computed, and CUTLASS has no such kernel")
def _least(kernel: ir.Kernel) -> Iterator[Breach]:
    if kernel.stages is not None and kernel.stages < 2:
        yield f".with_stages({kernel.stages})", "write .with_stages(2)", place(kernel, "stages")
