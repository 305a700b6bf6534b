"""Clauses that configure a kernel: types, layouts, tiles, schedules."""

from __future__ import annotations

from dataclasses import dataclass

from kernelbench.ucutlass.ir.position import Position, at_field
from kernelbench.ucutlass.ir.words import (
    ConvTensor,
    DType,
    EpilogueSchedule,
    KernelSchedule,
    Matrix,
    RasterOrder,
    SplitKMode,
    TileScheduler,
)


@dataclass(frozen=True)
class DTypes:
    input: DType
    acc: DType
    output: DType
    at: Position | None = at_field()


@dataclass(frozen=True)
class GemmLayout:
    """Layouts of A [M, K], B [K, N], C and D [M, N]. A PyTorch weight [N, K] is a ColumnMajor B."""

    a: Matrix
    b: Matrix
    c: Matrix
    at: Position | None = at_field()


@dataclass(frozen=True)
class ConvLayout:
    input: ConvTensor
    filter: ConvTensor
    output: ConvTensor
    at: Position | None = at_field()


@dataclass(frozen=True)
class Tile:
    """Tile as written: ``with_tile`` is a thread block's; of ``with_threadblockshape``, m is the whole cluster's.

    `Kernel.cta_tile` is what one thread block computes.
    """

    m: int
    n: int
    k: int
    is_threadblockshape: bool = False
    at: Position | None = at_field()


@dataclass(frozen=True)
class Alignment:
    """Elements that every row start of A, B and C is a multiple of."""

    a: int
    b: int
    c: int
    at: Position | None = at_field()


@dataclass(frozen=True)
class Cluster:
    m: int
    n: int
    k: int
    at: Position | None = at_field()

    @property
    def size(self) -> int:
        return self.m * self.n * self.k


@dataclass(frozen=True)
class Scheduler:
    """Each part is None where the program leaves it out. ``splits`` is of stream-K; ``raster`` is an extension."""

    tile: TileScheduler | None = None
    kernel: KernelSchedule | None = None
    epilogue: EpilogueSchedule | None = None
    splits: int | None = None
    raster: RasterOrder | None = None
    max_swizzle: int | None = None  # extension: thread blocks that are visited together, 1, 2, 4 or 8
    at: Position | None = at_field()


@dataclass(frozen=True)
class Scaling:
    """D = alpha · (A · B) + beta · C, before the epilogue."""

    alpha: float = 1.0
    beta: float = 0.0
    at: Position | None = at_field()


@dataclass(frozen=True)
class SplitK:
    mode: SplitKMode
    slices: int
    at: Position | None = at_field()
