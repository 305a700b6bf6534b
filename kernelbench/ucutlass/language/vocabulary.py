"""The words of the language and their arguments: one table entry for each production of the grammar.

The parser's signatures, the messages about wrong arguments, the guide and the prompt all come from these tables.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.ir import (
    ActivationKind,
    Arch,
    Axes,
    ConvForm,
    ConvTensor,
    Direction,
    DType,
    EpilogueSchedule,
    GemmForm,
    Iterator,
    KernelSchedule,
    Matrix,
    RasterOrder,
    SplitKMode,
    Swizzle,
    TensorRef,
    TileScheduler,
)


class Kind(enum.Enum):
    """Kinds of an argument's value, other than a word of a list."""

    INTEGER = "an integer"
    NUMBER = "a number"
    NAME = "a name"
    STRING = "a quoted string"
    INPUTS = "inputs such as {'s': 'row'}"


BOOL = {"true": True, "false": False}


@dataclass(frozen=True)
class Parameter:
    """One argument; ``values`` is a kind, or the words that it may be with their meaning."""

    name: str
    values: Kind | dict[str, Any]
    required: bool = True
    keyword: bool = True
    least: int = 1  # of an integer

    @property
    def describes(self) -> str:
        """The values in words, as in ``RowMajor | ColumnMajor``."""
        return self.values.value if isinstance(self.values, Kind) else " | ".join(self.values)


@dataclass(frozen=True)
class Form:
    """A call of the language: its parameters, and the class or function that makes its value of them."""

    word: str
    parameters: tuple[Parameter, ...]
    build: Callable[..., Any]
    field: str = ""  # of a clause: the field of `ir.Kernel` that it fills
    summary: str = ""


def words(enumeration: type[enum.Enum], **aliases: Any) -> dict[str, Any]:
    """The spellings of an enumeration's members, and further ones."""
    return {member.value: member for member in enumeration} | aliases


DTYPES = words(DType, float64=DType.FP64, float32=DType.FP32, float16=DType.FP16, bfloat16=DType.BF16,
               e4m3=DType.FP8_E4M3, e5m2=DType.FP8_E5M2, s8=DType.INT8, s16=DType.INT16, s32=DType.INT32,
               u8=DType.UINT8, u16=DType.UINT16, u32=DType.UINT32)  # fmt: skip
ARCHS = words(Arch, **{arch.value.replace("_", ""): arch for arch in Arch})
TILE_SCHEDULERS = words(TileScheduler, streamk=TileScheduler.STREAM_K)
EXTENTS = words(ir.Extent)


def _integers(*names: str) -> tuple[Parameter, ...]:
    return tuple(Parameter(name, Kind.INTEGER) for name in names)


def _words(values: dict[str, Any], *names: str) -> tuple[Parameter, ...]:
    return tuple(Parameter(name, values) for name in names)


def _number(name: str, required: bool = True) -> tuple[Parameter, ...]:
    return (Parameter(name, Kind.NUMBER, required),)


def _only(name: str, values: Kind | dict[str, Any], least: int = 1) -> tuple[Parameter, ...]:
    return (Parameter(name, values, keyword=False, least=least),)


_KERNEL = {1: ("kernel_w",), 2: ("kernel_h", "kernel_w"), 3: ("kernel_d", "kernel_h", "kernel_w")}


def _conv(rank: int, direction: Direction = Direction.FPROP, form: ConvForm = ConvForm.STANDARD) -> Form:
    names = _KERNEL[rank]

    def build(groups: int = 1, at: Any = None, **sizes: int) -> ir.Conv:
        return ir.Conv(tuple(sizes[name] for name in names), direction, form, groups, at=at)

    word = ir.Conv((1,) * rank, direction, form).word
    further = ("groups",) if form is ConvForm.GROUPED else ()
    return Form(word, _integers(*names, *further), build)


def _gemm(form: GemmForm) -> Form:
    def build(expert_count: int | None = None, at: Any = None) -> ir.Gemm:
        return ir.Gemm(form, expert_count, at=at)

    return Form(form.value, _integers("expert_count") if form is GemmForm.GROUPED else (), build)


def _table(*forms: Form) -> dict[str, Form]:
    return {form.word: form for form in forms}


OPERATIONS = _table(
    *map(_gemm, GemmForm),
    _conv(1),
    *(_conv(rank, direction) for rank in (2, 3) for direction in Direction),
    *(_conv(rank, form=ConvForm.DEPTHWISE) for rank in (1, 2)),
    *(_conv(rank, form=ConvForm.GROUPED) for rank in (1, 2, 3)),
)


def _value(at: Any = None, **arguments: Any) -> Any:
    (value,) = arguments.values()
    return value


def _tile(is_threadblockshape: bool) -> Callable[..., ir.Tile]:
    return lambda m, n, k, at=None: ir.Tile(m, n, k, is_threadblockshape, at=at)


def _layout(at: Any = None, **layouts: Any) -> ir.GemmLayout | ir.ConvLayout:
    if "A" in layouts:
        return ir.GemmLayout(layouts["A"], layouts["B"], layouts["C"], at=at)
    return ir.ConvLayout(**layouts, at=at)


def _alignment(A: int, B: int, C: int, at: Any = None) -> ir.Alignment:
    return ir.Alignment(A, B, C, at=at)


GEMM_LAYOUT = Form("with_layout", _words(words(Matrix), "A", "B", "C"), _layout, "layout")
CONV_LAYOUT = Form("with_layout", _words(words(ConvTensor), "input", "filter", "output"), _layout, "layout")

# `.with_layout` stands for both of its forms: the parser takes the one of the operation.
CONFIGURATIONS = _table(
    Form("with_dtype", _words(DTYPES, "input", "acc", "output"), ir.DTypes, "dtypes"),
    GEMM_LAYOUT,
    Form("with_arch", _only("arch", ARCHS), _value, "arch"),
    Form("with_tile", _integers("m", "n", "k"), _tile(False), "tile"),
    Form("with_threadblockshape", _integers("m", "n", "k"), _tile(True), "tile"),
    Form("with_stages", _only("stages", Kind.INTEGER), _value, "stages"),
    Form("with_alignment", _integers("A", "B", "C"), _alignment, "alignment"),
    Form("with_cluster", _integers("m", "n", "k"), ir.Cluster, "cluster"),
    Form("with_swizzle", _words(words(Swizzle), "pattern"), lambda pattern, at=None: pattern, "swizzle"),
    Form(
        "with_scheduler",
        (
            Parameter("tile", TILE_SCHEDULERS, required=False),
            Parameter("kernel", words(KernelSchedule), required=False),
            Parameter("epilogue", words(EpilogueSchedule), required=False),
            Parameter("splits", Kind.INTEGER, required=False),
            Parameter("raster", words(RasterOrder), required=False),
            Parameter("max_swizzle", Kind.INTEGER, required=False),
        ),
        ir.Scheduler,
        "scheduler",
    ),
    Form("with_scaling", (*_number("alpha"), *_number("beta")), ir.Scaling, "scaling"),
    Form("with_iterator", _only("iterator", words(Iterator)), _value, "iterator"),
    Form("with_split_k", (*_words(words(SplitKMode), "mode"), *_integers("slices")), ir.SplitK, "split_k"),
    Form("with_operand_swap", _only("swap", BOOL), _value, "operand_swap"),
)


def _activation(kind: ActivationKind) -> Form:
    return Form(kind.value, (), lambda at=None: ir.Activation(kind, at=at))


_BOUNDS = (*_number("min"), *_number("max"))

EPILOGUES = _table(
    *map(_activation, ActivationKind),
    Form("leaky_relu", _number("alpha"), ir.LeakyRelu),
    Form("elu", _number("alpha", required=False), ir.Elu),
    Form("clip", _BOUNDS, ir.Clip),
    Form("clamp", _BOUNDS, ir.Clip),
    Form("bias", (), ir.Bias),
    Form("per_channel_scale", (), ir.PerChannelScale),
    Form("per_row_scale", (), ir.PerRowScale),
    Form("per_col_scale", (), ir.PerColScale),
    Form("row_broadcast", _only("name", Kind.NAME), ir.RowBroadcast),
    Form("column_broadcast", _only("name", Kind.NAME), ir.ColumnBroadcast),
    Form("scale", _number("alpha"), ir.Scale),
    Form("aux_store", _only("name", Kind.NAME), ir.AuxStore),
    Form("aux_load", _only("name", Kind.NAME), ir.AuxLoad),
    Form("custom", (*_only("expression", Kind.STRING), Parameter("inputs", Kind.INPUTS, required=False)), ir.Custom),
)

TRANSPOSE = Form(
    "transpose",
    (
        *_only("tensor", words(TensorRef)),
        *_only("source", words(Axes)),
        *_only("target", words(Axes)),
        Parameter("source_dtype", DTYPES, required=False, keyword=False),
        Parameter("target_dtype", DTYPES, required=False, keyword=False),
    ),
    ir.Transpose,
)
