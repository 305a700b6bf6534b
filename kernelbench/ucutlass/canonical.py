"""One spelling of a program: the same configuration has the same text, and so the same hash.

The text is a program of the language: parsed and completed again, it gives the same.
"""

from __future__ import annotations

import hashlib
from typing import Any

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.language.expressions import text_of

DIGEST_DIGITS = 16  # of the name of a header; 64 bits


def canonical(program: ir.Program) -> str:
    """The text of a program, one clause a line, without comments and without `bind`."""
    if isinstance(program.body, ir.Kernel):
        return kernel_text(program.body)
    stages = [kernel_text(stage) if isinstance(stage, ir.Kernel) else _transpose(stage) for stage in program.stages]
    return "pipeline(\n" + ",\n".join(stages) + "\n)"


def source_text(program: ir.Program) -> str:
    """The canonical text, and what the program binds."""
    bound = ", ".join(f"{one.name}={_value(one.value)}" for one in program.bindings)
    return canonical(program) + (f"\nbind({bound})" if bound else "")


def digest(program: ir.Program) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of the canonical text of a complete program."""
    return hashlib.sha256(canonical(program).encode()).hexdigest()[:DIGEST_DIGITS]


def kernel_text(kernel: ir.Kernel) -> str:
    """The text of one kernel."""
    lines = [_operation(kernel.operation), *_clauses(kernel)]
    return "\n  ".join([*lines, *(f">> {_epilogue(op)}" for op in kernel.epilogue)])


def _call(word: str, *values: Any, **named: Any) -> str:
    parts = [_value(value) for value in values]
    parts += [f"{name}={_value(value)}" for name, value in named.items() if value is not None]
    return f"{word}({', '.join(parts)})"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return str(value)


def _operation(operation: ir.Operation) -> str:
    if isinstance(operation, ir.Gemm):
        return _call(operation.word, expert_count=operation.expert_count)
    names = ("kernel_d", "kernel_h", "kernel_w")[3 - operation.rank :]
    groups = operation.groups if operation.form is ir.ConvForm.GROUPED else None
    return _call(operation.word, **dict(zip(names, operation.kernel)), groups=groups)


def _clauses(kernel: ir.Kernel) -> list[str]:
    """The clauses that are set, in one order."""
    lines = []
    if kernel.dtypes:
        lines.append(
            _call("with_dtype", input=kernel.dtypes.input, acc=kernel.dtypes.acc, output=kernel.dtypes.output)
        )
    if isinstance(kernel.layout, ir.GemmLayout):
        lines.append(_call("with_layout", A=kernel.layout.a, B=kernel.layout.b, C=kernel.layout.c))
    elif kernel.layout:
        layout = kernel.layout
        lines.append(_call("with_layout", input=layout.input, filter=layout.filter, output=layout.output))
    if kernel.arch:
        lines.append(_call("with_arch", kernel.arch))
    if kernel.tile:
        word = "with_threadblockshape" if kernel.tile.is_threadblockshape else "with_tile"
        lines.append(_call(word, m=kernel.tile.m, n=kernel.tile.n, k=kernel.tile.k))
    if kernel.cluster:
        lines.append(_call("with_cluster", m=kernel.cluster.m, n=kernel.cluster.n, k=kernel.cluster.k))
    if kernel.stages:
        lines.append(_call("with_stages", kernel.stages))
    if kernel.alignment:
        lines.append(_call("with_alignment", A=kernel.alignment.a, B=kernel.alignment.b, C=kernel.alignment.c))
    if kernel.scheduler:
        one = kernel.scheduler
        lines.append(_call("with_scheduler", tile=one.tile, kernel=one.kernel, epilogue=one.epilogue,
                           splits=one.splits, raster=one.raster, max_swizzle=one.max_swizzle))  # fmt: skip
    if kernel.swizzle:
        lines.append(_call("with_swizzle", pattern=kernel.swizzle))
    if kernel.iterator:
        lines.append(_call("with_iterator", kernel.iterator))
    if kernel.split_k:
        lines.append(_call("with_split_k", mode=kernel.split_k.mode, slices=kernel.split_k.slices))
    if kernel.operand_swap is not None:
        lines.append(_call("with_operand_swap", kernel.operand_swap))
    if kernel.scaling:
        lines.append(_call("with_scaling", alpha=kernel.scaling.alpha, beta=kernel.scaling.beta))
    return [f".{line}" for line in lines]


def _epilogue(op: ir.EpilogueOp) -> str:
    match op:
        case ir.Activation(kind):
            return _call(kind.value)
        case ir.LeakyRelu(alpha):
            return _call("leaky_relu", alpha=alpha)
        case ir.Elu(alpha):
            return _call("elu", alpha=alpha)
        case ir.Scale(alpha):
            return _call("scale", alpha=alpha)
        case ir.Clip(low, high):
            return _call("clip", min=low, max=high)
        case ir.Custom(expression, inputs):
            pairs = ", ".join(f"'{one.name}': '{one.extent}'" for one in inputs)
            declared = f", inputs={{{pairs}}}" if inputs else ""
            return f"custom('{text_of(expression)}'{declared})"
    words = {
        ir.Bias: "bias", ir.PerChannelScale: "per_channel_scale", ir.PerRowScale: "per_row_scale",
        ir.PerColScale: "per_col_scale", ir.RowBroadcast: "row_broadcast", ir.ColumnBroadcast: "column_broadcast",
        ir.AuxStore: "aux_store", ir.AuxLoad: "aux_load",
    }  # fmt: skip
    return _call(words[type(op)], *([op.name] if hasattr(op, "name") else []))


def _transpose(stage: ir.Transpose) -> str:
    converts = (stage.source_dtype, stage.target_dtype) if stage.source_dtype else ()
    return _call("transpose", stage.tensor, stage.source, stage.target, *converts)
