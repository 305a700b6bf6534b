"""The search space of a program: tiles, clusters, schedules, stages and orders of tiles that the rules allow."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

from kernelbench.ucutlass import ir, resources
from kernelbench.ucutlass.canonical import digest
from kernelbench.ucutlass.defaults import complete, complete_kernel
from kernelbench.ucutlass.ir import (
    Cluster,
    EpilogueSchedule,
    KernelSchedule,
    RasterOrder,
    Scheduler,
    SplitK,
    SplitKMode,
    Swizzle,
    Tile,
    TileScheduler,
)
from kernelbench.ucutlass.validation import validate

# Of one thread block on SM90. Larger ones do not fit the registers, smaller ones feed a tensor core too slowly.
_CTA_M, _CTA_N = (64, 128, 256), (64, 128, 192, 256)
_CLUSTERS = ((1, 1), (2, 1), (1, 2), (2, 2), (4, 1))
_SCHEDULES = (
    (KernelSchedule.TMA_COOPERATIVE, TileScheduler.PERSISTENT),
    (KernelSchedule.TMA_COOPERATIVE, TileScheduler.STREAM_K),
    (KernelSchedule.TMA_PINGPONG, TileScheduler.PERSISTENT),
    (KernelSchedule.TMA, TileScheduler.DEFAULT),
)
_TILE_K_BYTES = (128, 64)  # a swizzle atom, and half of one for more stages
_SIDES = (64, 128, 256)  # before SM90
_SLICES = (2, 4, 8)
_SWIZZLES = (1, 2, 4, 8)


class NotTunable(ValueError):
    """A program without choices to search, and why."""


def structural_variants(program: ir.Program) -> list[ir.Program]:
    """Every legal variant of a program with other tiles, clusters, schedules and stages, each complete and once.

    Raises NotTunable for programs of several kernels and for depthwise convolutions.
    """
    kernel = _kernel(program)
    make = _sm90 if kernel.arch.is_sm90_or_later else _before_sm90
    return _legal(program, make(kernel))


def order_variants(program: ir.Program) -> list[ir.Program]:
    """Every legal variant that visits the tiles in another order, or has one stage less."""
    kernel = _kernel(program)
    if kernel.arch.is_sm90_or_later:
        orders = [replace(kernel, scheduler=replace(kernel.scheduler, raster=raster, max_swizzle=swizzle))
                  for raster, swizzle in itertools.product(RasterOrder, _SWIZZLES)]  # fmt: skip
    else:
        orders = [replace(kernel, swizzle=swizzle) for swizzle in Swizzle]
    fewer = [replace(kernel, stages=kernel.stages - 1)] if kernel.stages > 2 else []
    own = digest(program)
    return [one for one in _legal(program, iter([*orders, *fewer])) if digest(one) != own]


def ranked(programs: list[ir.Program], predict: Callable[[ir.Kernel], float]) -> list[tuple[float, ir.Program]]:
    """The programs with their predicted times in ms, the fastest first."""
    timed = [(predict(program.kernels[0]), program) for program in programs]
    return sorted(timed, key=lambda pair: (pair[0], digest(pair[1])))


def _kernel(program: ir.Program) -> ir.Kernel:
    kernels = program.kernels
    if len(kernels) != 1:
        raise NotTunable(f"the program has {len(kernels)} kernels: tune each in a program of its own")
    if kernels[0].tile is None:
        raise NotTunable("a depthwise convolution has no tile and no schedule to choose")
    return kernels[0]


def _legal(program: ir.Program, kernels: Iterator[ir.Kernel]) -> list[ir.Program]:
    found: dict[str, ir.Program] = {}
    for kernel in kernels:
        variant = _with(program, kernel)
        if not validate(variant):
            variant = complete(variant)
            found.setdefault(digest(variant), variant)
    return list(found.values())


def _with(program: ir.Program, kernel: ir.Kernel) -> ir.Program:
    if isinstance(program.body, ir.Kernel):
        return replace(program, body=kernel)
    stages = tuple(kernel if isinstance(stage, ir.Kernel) else stage for stage in program.stages)
    return replace(program, body=replace(program.body, stages=stages))


def _sm90(kernel: ir.Kernel) -> Iterator[ir.Kernel]:
    size = kernel.dtypes.input.bytes
    schedules = _SCHEDULES if kernel.is_gemm else _SCHEDULES[-1:]
    if not kernel.scheduler.kernel.is_tma:  # its alignment forbids TMA
        schedules = ((kernel.scheduler.kernel, kernel.scheduler.tile),)
    for (schedule, tiles), m, n, (along_m, along_n), k in itertools.product(
        schedules, _CTA_M, _CTA_N, _CLUSTERS, _TILE_K_BYTES
    ):
        epilogue = EpilogueSchedule.TMA_COOPERATIVE if schedule.is_cooperative else EpilogueSchedule.TMA
        if kernel.scheduler.epilogue is EpilogueSchedule.NO_SMEM:
            epilogue = EpilogueSchedule.NO_SMEM
        variant = replace(
            kernel, tile=Tile(m * along_m, n, k // size, is_threadblockshape=True),
            cluster=Cluster(along_m, along_n, 1),
            scheduler=Scheduler(tile=tiles, kernel=schedule, epilogue=epilogue), stages=None,
        )  # fmt: skip
        yield replace(variant, stages=resources.stages_that_fit(complete_kernel(variant)))


def _before_sm90(kernel: ir.Kernel) -> Iterator[ir.Kernel]:
    size = kernel.dtypes.input.bytes
    depths = (kernel.tile.k,) if kernel.tile.k * size < 64 else (64 // size, 32 // size)
    splits = [SplitK(SplitKMode.NONE, 1), *(SplitK(SplitKMode.SERIAL, slices) for slices in _SLICES)]
    for m, n, k, split in itertools.product(_SIDES, _SIDES, depths, splits):
        variant = replace(kernel, tile=Tile(m, n, k), split_k=split)
        fit = resources.stages_that_fit(variant)
        for stages in {2, min(3, fit), min(4, fit), min(5, fit)}:
            yield replace(variant, stages=stages)
