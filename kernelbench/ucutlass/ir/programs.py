"""Kernels, pipelines, and whole programs."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelbench.ucutlass.ir.clauses import (
    Alignment,
    Cluster,
    ConvLayout,
    DTypes,
    GemmLayout,
    Scaling,
    Scheduler,
    SplitK,
    Tile,
)
from kernelbench.ucutlass.ir.epilogues import EpilogueOp
from kernelbench.ucutlass.ir.operations import Gemm, Operation
from kernelbench.ucutlass.ir.position import Position, at_field
from kernelbench.ucutlass.ir.words import Arch, Axes, DType, Iterator, Swizzle, TensorRef


@dataclass(frozen=True)
class CtaTile:
    """Tile that one thread block computes."""

    m: int
    n: int
    k: int


@dataclass(frozen=True)
class Kernel:
    """One kernel: an operation, its configuration, and its epilogue."""

    operation: Operation
    dtypes: DTypes | None = None
    layout: GemmLayout | ConvLayout | None = None
    arch: Arch | None = None
    tile: Tile | None = None
    stages: int | None = None
    alignment: Alignment | None = None
    cluster: Cluster | None = None
    swizzle: Swizzle | None = None
    scheduler: Scheduler | None = None
    scaling: Scaling | None = None
    iterator: Iterator | None = None
    split_k: SplitK | None = None
    operand_swap: bool | None = None
    epilogue: tuple[EpilogueOp, ...] = ()
    # clause -> where it is written, as in {"arch": Position(4, 3)}
    positions: dict[str, Position] = field(default_factory=dict, compare=False, repr=False)
    at: Position | None = at_field()

    @property
    def is_gemm(self) -> bool:
        return isinstance(self.operation, Gemm)

    @property
    def cta_tile(self) -> CtaTile | None:
        """Tile of one thread block: m of ``with_threadblockshape`` is divided by the cluster's m."""
        if self.tile is None:
            return None
        shared = self.cluster.m if self.cluster and self.tile.is_threadblockshape and self.cluster.m else 1
        return CtaTile(self.tile.m // shared, self.tile.n, self.tile.k)


@dataclass(frozen=True)
class Transpose:
    """Change the order of axes, the type, or both, of a whole tensor before or after a kernel."""

    tensor: TensorRef
    source: Axes
    target: Axes
    source_dtype: DType | None = None  # both or none
    target_dtype: DType | None = None
    at: Position | None = at_field()


Stage = Kernel | Transpose


@dataclass(frozen=True)
class Pipeline:
    """Stages that run one after the other; each kernel's first operand is what the one before computed."""

    stages: tuple[Stage, ...]
    at: Position | None = at_field()

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(stage for stage in self.stages if isinstance(stage, Kernel))


@dataclass(frozen=True)
class Bound:
    """One operand or argument, and what it is bound to: a tensor or scalar of the problem by name, or a number."""

    name: str
    value: str | int | float
    at: Position | None = at_field()


@dataclass(frozen=True)
class Program:
    """A whole source: one kernel or pipeline, and how its operands bind to a problem's tensors."""

    body: Kernel | Pipeline
    bindings: tuple[Bound, ...] = ()
    source: str = field(default="", compare=False, repr=False)

    @property
    def stages(self) -> tuple[Stage, ...]:
        return self.body.stages if isinstance(self.body, Pipeline) else (self.body,)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(stage for stage in self.stages if isinstance(stage, Kernel))

    @property
    def arch(self) -> Arch | None:
        """Architecture of the program; a rule demands that all its kernels have the same."""
        return self.kernels[0].arch if self.kernels else None
