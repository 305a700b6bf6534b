"""Words that a program chooses from: types, architectures, layouts, schedules."""

from __future__ import annotations

import enum


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
    """Tensor that a transpose applies to: A or a convolution's input, B or its filter, D or its output."""

    INPUT = "input"
    WEIGHT = "weight"
    OUTPUT = "output"


class GemmForm(Word):
    STANDARD = "gemm"
    BATCHED = "batched_gemm"
    GROUPED = "grouped_gemm"


class Direction(Word):
    """Pass of a convolution: the output, or the gradient of its input or of its filter."""

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
