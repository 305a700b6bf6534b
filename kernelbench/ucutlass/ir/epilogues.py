"""Operations of an epilogue, in the order of application, and expressions of a custom one."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelbench.ucutlass.ir.position import Position, at_field
from kernelbench.ucutlass.ir.words import ActivationKind, Extent


@dataclass(frozen=True)
class Activation:
    kind: ActivationKind
    at: Position | None = at_field()


@dataclass(frozen=True)
class LeakyRelu:
    alpha: float
    at: Position | None = at_field()


@dataclass(frozen=True)
class Elu:
    alpha: float = 1.0
    at: Position | None = at_field()


@dataclass(frozen=True)
class Clip:
    """min(max(x, min), max); ``clip`` and ``clamp`` are the same."""

    min: float
    max: float
    at: Position | None = at_field()


@dataclass(frozen=True)
class Bias:
    """Add a vector: one element a column of a GEMM (N), or an output channel of a convolution."""

    at: Position | None = at_field()


@dataclass(frozen=True)
class PerChannelScale:
    """Multiply by a vector of N elements; N is the output channels of a convolution."""

    at: Position | None = at_field()


@dataclass(frozen=True)
class PerRowScale:
    """Multiply by a vector of M elements."""

    at: Position | None = at_field()


@dataclass(frozen=True)
class PerColScale:
    """Multiply by a vector of N elements."""

    at: Position | None = at_field()


@dataclass(frozen=True)
class RowBroadcast:
    """Add the named row vector, N elements, to every row."""

    name: str
    at: Position | None = at_field()


@dataclass(frozen=True)
class ColumnBroadcast:
    """Add the named column vector, M elements, to every column."""

    name: str
    at: Position | None = at_field()


@dataclass(frozen=True)
class Scale:
    alpha: float
    at: Position | None = at_field()


@dataclass(frozen=True)
class AuxStore:
    """Write the value at this point of the chain to the named M x N tensor of the output's type and layout."""

    name: str
    at: Position | None = at_field()


@dataclass(frozen=True)
class AuxLoad:
    """Add the named M x N tensor of the output's type and layout."""

    name: str
    at: Position | None = at_field()


@dataclass(frozen=True)
class Number:
    value: float


@dataclass(frozen=True)
class Variable:
    """``x``, the value at this point of the chain, or an input of the custom epilogue."""

    name: str


@dataclass(frozen=True)
class Call:
    """A function of `FUNCTIONS`; operators are calls too."""

    function: str
    arguments: tuple[Expression, ...]


Expression = Number | Variable | Call

# Function of a custom expression -> number of arguments. Comparisons give 1 or 0; where(c, a, b) is c != 0 ? a : b.
FUNCTIONS = {
    "add": 2, "sub": 2, "mul": 2, "div": 2, "neg": 1, "lt": 2, "le": 2, "gt": 2, "ge": 2, "eq": 2, "ne": 2, "where": 3,
    "min": 2, "max": 2, "abs": 1, "exp": 1, "log": 1, "log1p": 1, "sqrt": 1, "rsqrt": 1, "pow": 2, "sin": 1, "cos": 1,
    "tanh": 1, "erf": 1, "sigmoid": 1, "relu": 1, "gelu": 1, "silu": 1, "softplus": 1, "floor": 1, "ceil": 1,
}  # fmt: skip


@dataclass(frozen=True)
class CustomInput:
    name: str
    extent: Extent


@dataclass(frozen=True)
class Custom:
    """Replace the value x by an expression of x and of named inputs."""

    expression: Expression
    inputs: tuple[CustomInput, ...] = ()
    text: str = field(default="", compare=False)
    at: Position | None = at_field()


EpilogueOp = (
    Activation | LeakyRelu | Elu | Clip | Bias | PerChannelScale | PerRowScale | PerColScale
    | RowBroadcast | ColumnBroadcast | Scale | AuxStore | AuxLoad | Custom
)  # fmt: skip
