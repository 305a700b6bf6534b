"""Typed representation of a µCUTLASS program: one frozen class for each construct of the language.

A value of these classes may still break a rule; `kernelbench.ucutlass.check` says which. Positions take no part in
equality, so that two programs are equal if they say the same. An optional clause that is not written is None;
`kernelbench.ucutlass.defaults.complete` fills it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Word(enum.Enum):
    """A word of the language; its value is the canonical spelling."""

    def __str__(self) -> str:
        return self.value


class DType(Word):
    FP64 = "fp64"
    FP32 = "fp32"
    TF32 = "tf32"  # 32 bits in memory, 19 in the multiplication
    FP16 = "fp16"
    BF16 = "bf16"
    FP8_E4M3 = "fp8_e4m3"
    FP8_E5M2 = "fp8_e5m2"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"

    @property
    def bytes(self) -> int:
        """Size of one element in memory."""
        return _BYTES[self]

    @property
    def is_integer(self) -> bool:
        return "int" in self.value


_BYTES = {
    DType.FP64: 8, DType.FP32: 4, DType.TF32: 4, DType.FP16: 2, DType.BF16: 2, DType.FP8_E4M3: 1, DType.FP8_E5M2: 1,
    DType.INT8: 1, DType.INT16: 2, DType.INT32: 4, DType.UINT8: 1, DType.UINT16: 2, DType.UINT32: 4,
}  # fmt: skip


class Arch(Word):
    SM70 = "sm_70"
    SM80 = "sm_80"
    SM86 = "sm_86"
    SM89 = "sm_89"
    SM90 = "sm_90"  # known, and refused: the fix is sm_90a
    SM90A = "sm_90a"
    SM100 = "sm_100"

    @property
    def number(self) -> int:
        """Compute capability times ten, as in 90."""
        return int(self.value.removeprefix("sm_").removesuffix("a"))

    @property
    def is_sm90_or_later(self) -> bool:
        return self.number >= 90


class Matrix(Word):
    """Layout of a matrix of a GEMM."""

    ROW_MAJOR = "RowMajor"
    COLUMN_MAJOR = "ColumnMajor"


class ConvTensor(Word):
    """Layout of a tensor of a convolution."""

    NHWC = "TensorNHWC"
    NDHWC = "TensorNDHWC"


class Axes(Word):
    """Order of axes that a transpose converts from or to."""

    NCL = "NCL"
    NLC = "NLC"
    NCHW = "NCHW"
    NHWC = "NHWC"

    @property
    def rank(self) -> int:
        return len(self.value)


class TensorRef(Word):
    """What a transpose applies to: A or a convolution's input, B or its filter, D or its output."""

    INPUT = "input"
    WEIGHT = "weight"
    OUTPUT = "output"


class GemmForm(Word):
    STANDARD = "gemm"
    BATCHED = "batched_gemm"
    GROUPED = "grouped_gemm"


class Direction(Word):
    """What a convolution computes: the output, or the gradient of its input or of its filter."""

    FPROP = "fprop"
    DGRAD = "dgrad"
    WGRAD = "wgrad"


class ConvForm(Word):
    STANDARD = "conv"
    DEPTHWISE = "depthwise_conv"
    GROUPED = "group_conv"


class Swizzle(Word):
    IDENTITY1 = "Identity1"
    IDENTITY2 = "Identity2"
    IDENTITY4 = "Identity4"
    IDENTITY8 = "Identity8"
    STREAM_K = "StreamK"


class TileScheduler(Word):
    DEFAULT = "default"
    PERSISTENT = "persistent"
    STREAM_K = "stream_k"


class KernelSchedule(Word):
    AUTO = "auto"
    CP_ASYNC = "cp_async"
    CP_ASYNC_COOPERATIVE = "cp_async_cooperative"
    TMA = "tma"
    TMA_COOPERATIVE = "tma_cooperative"
    TMA_PINGPONG = "tma_pingpong"

    @property
    def is_tma(self) -> bool:
        return self.value.startswith("tma")

    @property
    def is_cooperative(self) -> bool:
        return self.value.endswith("cooperative")


class EpilogueSchedule(Word):
    AUTO = "auto"
    TMA = "tma"
    TMA_COOPERATIVE = "tma_cooperative"
    NO_SMEM = "no_smem"


class RasterOrder(Word):
    """Order in which tiles of the output are visited; an extension of the published grammar."""

    HEURISTIC = "heuristic"
    ALONG_M = "along_m"
    ALONG_N = "along_n"


class Iterator(Word):
    ANALYTIC = "analytic"
    OPTIMIZED = "optimized"
    FIXED_CHANNELS = "fixed_channels"
    FEW_CHANNELS = "few_channels"
    FIXED_STRIDE_DILATION = "fixed_stride_dilation"


class SplitKMode(Word):
    NONE = "none"
    SERIAL = "serial"
    PARALLEL = "parallel"


class ActivationKind(Word):
    RELU = "relu"
    GELU = "gelu"  # with erf, as torch.nn.functional.gelu
    SILU = "silu"
    MISH = "mish"
    SIGMOID = "sigmoid"
    TANH = "tanh"
    HARDSWISH = "hardswish"


class Extent(Word):
    """Shape of what an epilogue reads beside the accumulator, of an output of M rows and N columns."""

    SCALAR = "scalar"
    ROW = "row"  # N elements, the same for every row
    COLUMN = "column"  # M elements, the same for every column
    MATRIX = "matrix"  # M x N elements


@dataclass(frozen=True)
class Position:
    """Place in the source, from 1."""

    line: int
    column: int


def _at():
    return field(default=None, compare=False, repr=False, kw_only=True)


# --- operations ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gemm:
    """D[M, N] = A[M, K] · B[K, N], once, for each of a batch, or for each of ``expert_count`` problems."""

    form: GemmForm = GemmForm.STANDARD
    expert_count: int | None = None  # grouped only
    at: Position | None = _at()

    @property
    def word(self) -> str:
        return self.form.value


@dataclass(frozen=True)
class Conv:
    """A convolution (cross-correlation) of ``rank`` spatial dimensions; ``kernel`` is (d, h, w), (h, w) or (w,)."""

    kernel: tuple[int, ...]
    direction: Direction = Direction.FPROP
    form: ConvForm = ConvForm.STANDARD
    groups: int = 1  # grouped only; of a depthwise convolution, the channels
    at: Position | None = _at()

    @property
    def rank(self) -> int:
        return len(self.kernel)

    @property
    def word(self) -> str:
        name = f"{self.form.value}{self.rank}d"
        return f"{name}_{self.direction.value}" if self.form is ConvForm.STANDARD else name


Operation = Gemm | Conv


# --- configuration ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DTypes:
    input: DType
    acc: DType
    output: DType
    at: Position | None = _at()


@dataclass(frozen=True)
class GemmLayout:
    """Layouts of A [M, K], B [K, N], C and D [M, N]. A PyTorch weight [N, K] is a ColumnMajor B."""

    a: Matrix
    b: Matrix
    c: Matrix
    at: Position | None = _at()


@dataclass(frozen=True)
class ConvLayout:
    input: ConvTensor
    filter: ConvTensor
    output: ConvTensor
    at: Position | None = _at()


@dataclass(frozen=True)
class Tile:
    """Tile as written: ``with_tile`` is a thread block's; of ``with_threadblockshape``, m is the whole cluster's.

    `Kernel.cta_tile` is what one thread block computes.
    """

    m: int
    n: int
    k: int
    is_threadblockshape: bool = False
    at: Position | None = _at()


@dataclass(frozen=True)
class Alignment:
    """Elements that every row start of A, B and C is a multiple of."""

    a: int
    b: int
    c: int
    at: Position | None = _at()


@dataclass(frozen=True)
class Cluster:
    m: int
    n: int
    k: int
    at: Position | None = _at()

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
    at: Position | None = _at()


@dataclass(frozen=True)
class Scaling:
    """D = alpha · (A · B) + beta · C, before the epilogue."""

    alpha: float = 1.0
    beta: float = 0.0
    at: Position | None = _at()


@dataclass(frozen=True)
class SplitK:
    mode: SplitKMode
    slices: int
    at: Position | None = _at()


# --- epilogue, in the order of application ------------------------------------------------------------------------


@dataclass(frozen=True)
class Activation:
    kind: ActivationKind
    at: Position | None = _at()


@dataclass(frozen=True)
class LeakyRelu:
    alpha: float
    at: Position | None = _at()


@dataclass(frozen=True)
class Elu:
    alpha: float = 1.0
    at: Position | None = _at()


@dataclass(frozen=True)
class Clip:
    """min(max(x, min), max); ``clip`` and ``clamp`` are the same."""

    min: float
    max: float
    at: Position | None = _at()


@dataclass(frozen=True)
class Bias:
    """Add a vector: one element a column of a GEMM (N), or an output channel of a convolution."""

    at: Position | None = _at()


@dataclass(frozen=True)
class PerChannelScale:
    """Multiply by a vector of N elements; N is the output channels of a convolution."""

    at: Position | None = _at()


@dataclass(frozen=True)
class PerRowScale:
    """Multiply by a vector of M elements."""

    at: Position | None = _at()


@dataclass(frozen=True)
class PerColScale:
    """Multiply by a vector of N elements."""

    at: Position | None = _at()


@dataclass(frozen=True)
class RowBroadcast:
    """Add the named row vector, N elements, to every row."""

    name: str
    at: Position | None = _at()


@dataclass(frozen=True)
class ColumnBroadcast:
    """Add the named column vector, M elements, to every column."""

    name: str
    at: Position | None = _at()


@dataclass(frozen=True)
class Scale:
    alpha: float
    at: Position | None = _at()


@dataclass(frozen=True)
class AuxStore:
    """Write the value at this point of the chain to the named M x N tensor of the output's type and layout."""

    name: str
    at: Position | None = _at()


@dataclass(frozen=True)
class AuxLoad:
    """Add the named M x N tensor of the output's type and layout."""

    name: str
    at: Position | None = _at()


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
    at: Position | None = _at()


EpilogueOp = (
    Activation | LeakyRelu | Elu | Clip | Bias | PerChannelScale | PerRowScale | PerColScale
    | RowBroadcast | ColumnBroadcast | Scale | AuxStore | AuxLoad | Custom
)  # fmt: skip


# --- programs -----------------------------------------------------------------------------------------------------


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
    at: Position | None = _at()

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
    at: Position | None = _at()


Stage = Kernel | Transpose


@dataclass(frozen=True)
class Pipeline:
    """Stages that run one after the other; each kernel's first operand is what the one before computed."""

    stages: tuple[Stage, ...]
    at: Position | None = _at()

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(stage for stage in self.stages if isinstance(stage, Kernel))


@dataclass(frozen=True)
class Bound:
    """One operand or argument, and what it is bound to: a tensor or scalar of the problem by name, or a number."""

    name: str
    value: str | int | float
    at: Position | None = _at()


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
