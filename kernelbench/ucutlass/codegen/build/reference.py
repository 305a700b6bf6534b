"""Expected result of a program, computed with PyTorch in FP64 from its typed representation.

No back end is asked: it is the meaning of the language, written a second time.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.ir import ActivationKind, Axes, Direction, Extent, GemmForm, Matrix, TensorRef
from kernelbench.ucutlass.operands import main_output, of_kernel

DTYPES = {
    "fp64": torch.float64, "fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16,
    "fp8_e4m3": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2, "int8": torch.int8, "int16": torch.int16,
    "int32": torch.int32, "uint8": torch.uint8,
}  # fmt: skip

_ACTIVATIONS = {
    ActivationKind.RELU: torch.relu, ActivationKind.GELU: functional.gelu, ActivationKind.SILU: functional.silu,
    ActivationKind.MISH: functional.mish, ActivationKind.SIGMOID: torch.sigmoid, ActivationKind.TANH: torch.tanh,
    ActivationKind.HARDSWISH: functional.hardswish,
}  # fmt: skip
_FUNCTIONS = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "neg": torch.neg, "lt": torch.lt,
    "le": torch.le, "gt": torch.gt, "ge": torch.ge, "eq": torch.eq, "ne": torch.ne, "min": torch.minimum,
    "max": torch.maximum, "abs": torch.abs, "exp": torch.exp, "log": torch.log, "log1p": torch.log1p,
    "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "pow": torch.pow, "sin": torch.sin, "cos": torch.cos,
    "tanh": torch.tanh, "erf": torch.erf, "sigmoid": torch.sigmoid, "relu": torch.relu, "gelu": functional.gelu,
    "silu": functional.silu, "softplus": functional.softplus, "floor": torch.floor, "ceil": torch.ceil,
}  # fmt: skip
_MAIN = {TensorRef.INPUT: ("A", "input"), TensorRef.WEIGHT: ("B", "filter"), TensorRef.OUTPUT: ("D", "output")}


def expected(program: ir.Program, named: dict[str, Any], **steps: int) -> dict[str, torch.Tensor]:
    """Return the outputs of a program by name, in FP64, as they lie in memory.

    ``named`` are the inputs by name, as a caller hands them over; ``steps`` a convolution's stride, padding, dilation.
    """
    found: dict[str, torch.Tensor] = {}
    for place, kernel in enumerate(program.kernels):
        suffix = str(place + 1) if place else ""
        values = {}
        for one in of_kernel(kernel):
            if one.name + suffix in named:
                values[one.name] = named[one.name + suffix]
        if place:
            before = program.kernels[place - 1]
            rounded = found[main_output(before)].to(DTYPES[str(before.dtypes.output)])
            values[of_kernel(kernel)[0].name] = rounded
        else:
            values = _moved(program, values)
        found |= _kernel(kernel, values, steps)
    for stage in program.stages:
        if isinstance(stage, ir.Transpose) and stage.tensor is TensorRef.OUTPUT:
            name = main_output(program.kernels[-1])
            found[name] = _permuted(found[name], stage)
    return found


def _moved(program: ir.Program, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values after the transposes of inputs, rounded to the types that they are converted to."""
    values = dict(values)
    for stage in program.stages:
        if isinstance(stage, ir.Transpose) and stage.tensor is not TensorRef.OUTPUT:
            name = next(name for name in _MAIN[stage.tensor] if name in values)
            values[name] = _permuted(values[name], stage)
            if stage.target_dtype:
                values[name] = values[name].to(DTYPES[str(stage.target_dtype)])
    return values


def _permuted(tensor: torch.Tensor, stage: ir.Transpose) -> torch.Tensor:
    if stage.source is stage.target:
        return tensor
    if tensor.dim() == 2:
        return tensor.t().contiguous()
    to_last = stage.source in (Axes.NCL, Axes.NCHW)
    return (tensor.movedim(1, -1) if to_last else tensor.movedim(-1, 1)).contiguous()


def _kernel(kernel: ir.Kernel, values: dict[str, Any], steps: dict[str, int]) -> dict[str, torch.Tensor]:
    wide = {name: value.double() if isinstance(value, torch.Tensor) and name != "offsets" else value
            for name, value in values.items()}  # fmt: skip
    product = _gemm(kernel, wide) if kernel.is_gemm else _conv(kernel, wide, steps)
    column_major = kernel.is_gemm and kernel.layout.c is Matrix.COLUMN_MAJOR
    scaling = kernel.scaling or ir.Scaling()
    x = scaling.alpha * product
    if scaling.beta:
        x = x + scaling.beta * _logical(wide["C"], column_major)
    stored = {}
    for op in kernel.epilogue:
        if isinstance(op, ir.AuxStore):
            stored[op.name] = _logical(x, column_major)
        else:
            x = _applied(op, x, wide, column_major)
    return stored | {main_output(kernel): _logical(x, column_major).contiguous()}


def _logical(tensor: torch.Tensor, column_major: bool) -> torch.Tensor:
    return tensor.transpose(-1, -2) if column_major else tensor


def _gemm(kernel: ir.Kernel, values: dict[str, Any]) -> torch.Tensor:
    a = _logical(values["A"], kernel.layout.a is Matrix.COLUMN_MAJOR)
    b = _logical(values["B"], kernel.layout.b is Matrix.COLUMN_MAJOR)
    if kernel.operation.form is not GemmForm.GROUPED:
        return a @ b
    bounds = values["offsets"].tolist()
    return torch.cat([a[first:end] @ b[expert] for expert, (first, end) in enumerate(zip(bounds, bounds[1:]))])


def _conv(kernel: ir.Kernel, values: dict[str, Any], steps: dict[str, int]) -> torch.Tensor:
    conv = kernel.operation
    first = {name: value.movedim(-1, 1) for name, value in values.items() if name in ("input", "filter", "output")}
    settings = {what: _each(conv, what, steps) for what in ("stride", "padding", "dilation")}
    forward = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}[conv.rank]
    if conv.direction is Direction.FPROP:
        groups = conv.groups if conv.form is ir.ConvForm.GROUPED else 1
        groups = first["input"].shape[1] if conv.form is ir.ConvForm.DEPTHWISE else groups
        return forward(first["input"], first["filter"], None, groups=groups, **settings).movedim(1, -1)
    # gradients: those of the forward convolution, by automatic differentiation
    if conv.direction is Direction.DGRAD:
        gradient, weight = first["output"], first["filter"]
        spatial = [
            (size - 1) * step - 2 * pad + dilation * (taps - 1) + 1
            for size, step, pad, dilation, taps in zip(
                gradient.shape[2:], settings["stride"], settings["padding"], settings["dilation"], conv.kernel
            )
        ]
        shape = (gradient.shape[0], weight.shape[1], *spatial)
        leaf = torch.zeros(shape, dtype=torch.double, device=gradient.device, requires_grad=True)
        (result,) = torch.autograd.grad(forward(leaf, weight, None, **settings), leaf, gradient)
    else:
        gradient, data = first["output"], first["input"]
        shape = (gradient.shape[1], data.shape[1], *conv.kernel)
        leaf = torch.zeros(shape, dtype=torch.double, device=gradient.device, requires_grad=True)
        (result,) = torch.autograd.grad(forward(data, leaf, None, **settings), leaf, gradient)
    return result.movedim(1, -1)


def _each(conv: ir.Conv, what: str, steps: dict[str, int]) -> tuple[int, ...]:
    default = steps.get(what, 0 if what == "padding" else 1)
    return tuple(steps.get(f"{what}_{axis}", default) for axis in "dhw"[3 - conv.rank :])


_VECTORS = {
    ir.Bias: ("bias", torch.add), ir.PerChannelScale: ("channel_scale", torch.mul),
    ir.PerColScale: ("col_scale", torch.mul), ir.RowBroadcast: ("", torch.add), ir.AuxLoad: ("", torch.add),
}  # fmt: skip


def _applied(op: ir.EpilogueOp, x: torch.Tensor, values: dict[str, Any], column_major: bool) -> torch.Tensor:
    match op:
        case ir.Activation(kind):
            return _ACTIVATIONS[kind](x)
        case ir.LeakyRelu(alpha):
            return functional.leaky_relu(x, alpha)
        case ir.Elu(alpha):
            return functional.elu(x, alpha)
        case ir.Clip(low, high):
            return x.clamp(low, high)
        case ir.Scale(alpha):
            return x * alpha
        case ir.PerRowScale():
            return x * values["row_scale"][..., None]
        case ir.ColumnBroadcast(name):
            return x + values[name][..., None]
        case ir.AuxLoad(name):
            return x + _logical(values[name], column_major)
        case ir.Custom(expression):
            given = {"x": x}
            for one in op.inputs:
                value = values[one.name]
                if one.extent is Extent.COLUMN:
                    value = value[..., None]
                given[one.name] = _logical(value, column_major) if one.extent is Extent.MATRIX else value
            return _evaluated(expression, given, x)
    name, apply = _VECTORS[type(op)]
    return apply(x, values[name or op.name])


def _evaluated(expression: ir.Expression, values: dict[str, Any], like: torch.Tensor) -> torch.Tensor:
    match expression:
        case ir.Number(value):
            return torch.full_like(like, value)
        case ir.Variable(name):
            value = values[name]
            return value if isinstance(value, torch.Tensor) else torch.full_like(like, value)
    parts = [_evaluated(argument, values, like) for argument in expression.arguments]
    if expression.function == "where":
        return torch.where(parts[0] != 0, parts[1], parts[2])
    return _FUNCTIONS[expression.function](*parts).to(like.dtype)
