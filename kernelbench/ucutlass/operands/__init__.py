"""Tensors and scalars that a program is called with, in the order of `kernel_ex`: inputs, then outputs.

Extents are symbols, outermost first, as the tensor lies in memory.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.ir import Direction, DType, Extent, GemmForm, Matrix, TensorRef


class Role(enum.Enum):
    INPUT = "input"
    OUTPUT = "output"
    SCALAR = "scalar"  # passed by value, as float


@dataclass(frozen=True)
class Reads:
    """Tensors of each shape that an epilogue reads, C where beta is not 0 included, and how many it stores."""

    rows: int
    columns: int
    matrices: int
    stores: int

    @property
    def tensors(self) -> int:
        return self.rows + self.columns + self.matrices

    @staticmethod
    def of(kernel: ir.Kernel) -> Reads:
        """Count each name once."""
        shapes: dict[str | type, Extent] = {}  # by name, or by the operation that has one operand
        stores = 0
        for op in kernel.epilogue:
            match op:
                case ir.Bias() | ir.PerChannelScale() | ir.PerColScale():
                    shapes[type(op)] = Extent.ROW
                case ir.PerRowScale():
                    shapes[type(op)] = Extent.COLUMN
                case ir.RowBroadcast(name):
                    shapes[name] = Extent.ROW
                case ir.ColumnBroadcast(name):
                    shapes[name] = Extent.COLUMN
                case ir.AuxLoad(name):
                    shapes[name] = Extent.MATRIX
                case ir.AuxStore():
                    stores += 1
                case ir.Custom(inputs=inputs):
                    shapes |= {one.name: one.extent for one in inputs}
        count = list(shapes.values()).count
        source = bool(kernel.scaling and kernel.scaling.beta)
        return Reads(count(Extent.ROW), count(Extent.COLUMN), count(Extent.MATRIX) + source, stores)


@dataclass(frozen=True)
class Operand:
    """One argument of a program; ``kernel`` is the place of its kernel among the program's kernels, from 0."""

    name: str
    role: Role
    extents: tuple[str, ...]
    dtype: DType
    kernel: int = 0


_MAIN = {TensorRef.INPUT: ("A", "input"), TensorRef.WEIGHT: ("B", "filter"), TensorRef.OUTPUT: ("D", "output")}
WINDOW = {"stride": 1, "padding": 0, "dilation": 1}  # of every axis, where a program does not bind it
_FLOATS = (DType.FP64, DType.FP32, DType.FP16, DType.BF16)


def operands(program: ir.Program) -> tuple[Operand, ...]:
    """Every argument of a program. In a pipeline, names of the second kernel end in 2, as in ``B2`` and ``bias2``.

    A kernel's first operand is what the kernel before it computed, so it is no argument.
    """
    kernels = program.kernels
    found = []
    for place, kernel in enumerate(kernels):
        first, *others = of_kernel(kernel)
        main = main_output(kernel)
        if place == 0:
            others = [first, *others]
        if place < len(kernels) - 1:
            others = [operand for operand in others if operand.name != main]
        suffix = str(place + 1) if place and len(kernels) > 1 else ""
        found += [replace(one, name=one.name if one.name == main else one.name + suffix, kernel=place)
                  for one in others]  # fmt: skip
    found = [_outside(program, operand) for operand in found]
    found = [replace(operand, dtype=in_memory(operand.dtype)) for operand in found]
    found = [_as_output(program, operand) for operand in found]
    return tuple(sorted(found, key=lambda operand: operand.role is Role.OUTPUT))


def window_arguments(program: ir.Program) -> dict[str, int]:
    """Arguments of a convolution's window, by name, with their defaults, as in ``{"stride_h": 1, "padding_h": 0}``.

    A name without an axis stands for all axes. In a pipeline, names of the second kernel end in 2.
    """
    found = {}
    for place, kernel in enumerate(program.kernels):
        suffix = str(place + 1) if place else ""
        if isinstance(kernel.operation, ir.Conv):
            for word, default in WINDOW.items():
                found[word + suffix] = default
                found |= {f"{word}_{axis}{suffix}": default for axis in "dhw"[3 - kernel.operation.rank :]}
    return found


def of_kernel(kernel: ir.Kernel) -> tuple[Operand, ...]:
    """Operands of one kernel: its two inputs, C where beta is not 0, the epilogue's, and the outputs."""
    inputs, outputs = _gemm(kernel) if kernel.is_gemm else _conv(kernel)
    output = outputs[0]
    if kernel.scaling and kernel.scaling.beta:
        inputs.append(replace(output, name="C", role=Role.INPUT))
    for operand in _epilogue(kernel, output):
        into = outputs if operand.role is Role.OUTPUT else inputs
        if operand.name not in [one.name for one in into]:
            into.append(operand)
    return (*inputs, *outputs)


def in_memory(dtype: DType) -> DType:
    """The type that an element has in memory: TF32 is FP32 there."""
    return DType.FP32 if dtype is DType.TF32 else dtype


def main_output(kernel: ir.Kernel) -> str:
    """The name of what a kernel computes: D, or output, or what a convolution's gradient is of."""
    if kernel.is_gemm:
        return "D"
    return {Direction.FPROP: "output", Direction.DGRAD: "input", Direction.WGRAD: "filter"}[kernel.operation.direction]


def side_dtype(kernel: ir.Kernel) -> DType:
    """Type of vectors that an epilogue reads: the output's, or the accumulator's where the output has few bits.

    `operands` has the last word: where a pipeline converts its output, vectors have that type.
    """
    output, acc = kernel.dtypes.output, kernel.dtypes.acc
    return output if output in _FLOATS else acc


def _gemm(kernel: ir.Kernel) -> tuple[list[Operand], list[Operand]]:
    layout = kernel.layout
    form = kernel.operation.form

    def matrix(name: str, rows: str, columns: str, order: Matrix, dtype: DType, role: Role, batch: str) -> Operand:
        extents = (rows, columns) if order is Matrix.ROW_MAJOR else (columns, rows)
        return Operand(name, role, (batch, *extents) if batch else extents, dtype)

    batch = "L" if form is GemmForm.BATCHED else ""
    experts = "E" if form is GemmForm.GROUPED else batch
    given, made = kernel.dtypes.input, kernel.dtypes.output
    inputs = [matrix("A", "M", "K", layout.a, given, Role.INPUT, batch)]
    inputs.append(matrix("B", "K", "N", layout.b, given, Role.INPUT, experts))
    if form is GemmForm.GROUPED:  # rows of expert e: offsets[e] up to offsets[e + 1]
        inputs.append(Operand("offsets", Role.INPUT, ("E + 1",), DType.INT32))
    return inputs, [matrix("D", "M", "N", layout.c, made, Role.OUTPUT, batch)]


def _conv(kernel: ir.Kernel) -> tuple[list[Operand], list[Operand]]:
    rank = kernel.operation.rank
    channels = "1" if kernel.operation.form is ir.ConvForm.DEPTHWISE else "C"
    if kernel.operation.form is ir.ConvForm.GROUPED:
        channels = "C / groups"
    extents = {
        "input": ("N", *"DHW"[3 - rank :], "C"),
        "filter": ("K", *"TRS"[3 - rank :], channels),
        "output": ("N", *"ZPQ"[3 - rank :], "K"),
    }
    reads = {Direction.FPROP: ("input", "filter"), Direction.DGRAD: ("output", "filter"),
             Direction.WGRAD: ("output", "input")}[kernel.operation.direction]  # fmt: skip
    inputs = [Operand(name, Role.INPUT, extents[name], kernel.dtypes.input) for name in reads]
    made = main_output(kernel)
    return inputs, [Operand(made, Role.OUTPUT, extents[made], kernel.dtypes.output)]


def _epilogue(kernel: ir.Kernel, output: Operand) -> Iterator[Operand]:
    side = side_dtype(kernel)
    columns = "N" if kernel.is_gemm else output.extents[-1]

    def vector(name: str, extent: str) -> Operand:
        return Operand(name, Role.INPUT, (extent,), side)

    for op in kernel.epilogue:
        match op:
            case ir.Bias():
                yield vector("bias", columns)
            case ir.PerChannelScale():
                yield vector("channel_scale", columns)
            case ir.PerColScale():
                yield vector("col_scale", columns)
            case ir.PerRowScale():
                yield vector("row_scale", "M")
            case ir.RowBroadcast(name):
                yield vector(name, columns)
            case ir.ColumnBroadcast(name):
                yield vector(name, "M")
            case ir.AuxLoad(name):
                yield replace(output, name=name, role=Role.INPUT)
            case ir.AuxStore(name):
                yield replace(output, name=name)
            case ir.Custom(inputs=inputs):
                for one in inputs:
                    yield _custom_input(one, output, vector, columns)


def _custom_input(one: ir.CustomInput, output: Operand, vector, columns: str) -> Operand:
    if one.extent is Extent.SCALAR:
        return Operand(one.name, Role.SCALAR, (), DType.FP32)
    if one.extent is Extent.MATRIX:
        return replace(output, name=one.name, role=Role.INPUT)
    return vector(one.name, columns if one.extent is Extent.ROW else "M")


def _outside(program: ir.Program, operand: Operand) -> Operand:
    """The operand as the caller has it: before the transposes of inputs, after those of the output."""
    for stage in program.stages:
        if isinstance(stage, ir.Transpose) and operand.name in _MAIN[stage.tensor]:
            before = stage.tensor is not TensorRef.OUTPUT
            inner, outer = (stage.target, stage.source) if before else (stage.source, stage.target)
            dtype = stage.source_dtype if before else stage.target_dtype
            operand = replace(operand, dtype=dtype or operand.dtype, extents=_permuted(operand.extents, inner, outer))
    return operand


def _as_output(program: ir.Program, operand: Operand) -> Operand:
    """A vector of an epilogue has the type that a pipeline's last stage gives the output."""
    last = program.stages[-1]
    if isinstance(last, ir.Transpose) and last.target_dtype and len(operand.extents) == 1:
        return operand if operand.name == "offsets" else replace(operand, dtype=last.target_dtype)
    return operand


def _permuted(extents: tuple[str, ...], inner: ir.Axes, outer: ir.Axes) -> tuple[str, ...]:
    if len(extents) == 2 and inner is not outer:  # a matrix is a batch of one
        return (extents[1], extents[0])
    if inner is outer or not len(extents) == inner.rank == outer.rank:
        return extents
    named = dict(zip(inner.value, extents))
    return tuple(named[axis] for axis in outer.value)
