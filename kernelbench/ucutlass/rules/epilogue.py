"""Epilogue chains: names, order of bounds, what each architecture fuses."""

from collections import Counter
from collections.abc import Iterator

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.ir import Arch, EpilogueSchedule
from kernelbench.ucutlass.operands import Reads
from kernelbench.ucutlass.rules.registry import Breach, Subject, rule

MAX_OPERATIONS = 16  # of a chain: each is a node of the visitor tree, and compile time grows with them
_ONCE = {
    ir.Bias: ("bias()", "row_broadcast(NAME)"),
    ir.PerChannelScale: ("per_channel_scale()", "custom('x * s', inputs={'s': 'row'})"),
    ir.PerColScale: ("per_col_scale()", "custom('x * s', inputs={'s': 'row'})"),
    ir.PerRowScale: ("per_row_scale()", "custom('x * s', inputs={'s': 'column'})"),
}
# Names of operands and arguments that a program has anyway.
RESERVED = {"A", "B", "C", "D", "input", "filter", "output", "bias", "channel_scale", "row_scale", "col_scale",
            "offsets", "x", "alpha", "beta", "stream", "stride", "padding", "dilation"}  # fmt: skip


@rule("epilogue-once", "each of these reads one operand of a fixed name", Subject.WRITTEN)
def _once(kernel: ir.Kernel) -> Iterator[Breach]:
    seen = Counter()
    for op in kernel.epilogue:
        seen[type(op)] += 1
        if type(op) in _ONCE and seen[type(op)] == 2:
            word, other = _ONCE[type(op)]
            yield f"{word} is given twice", f"write {other} for the second", op.at


@rule("epilogue-length", "every operation is a node of the visitor tree and lengthens compilation", Subject.WRITTEN)
def _length(kernel: ir.Kernel) -> Iterator[Breach]:
    if len(kernel.epilogue) > MAX_OPERATIONS:
        yield (f"the epilogue has {len(kernel.epilogue)} operations, more than {MAX_OPERATIONS}",
               "write several as one custom('...')", kernel.epilogue[MAX_OPERATIONS].at)  # fmt: skip


def _uses(kernel: ir.Kernel) -> Iterator[tuple[str, str, object]]:
    """Name, what it stands for, and operation, of every named operand of a chain."""
    for op in kernel.epilogue:
        match op:
            case ir.RowBroadcast(name):
                yield name, "row", op
            case ir.ColumnBroadcast(name):
                yield name, "column", op
            case ir.AuxLoad(name):
                yield name, "matrix", op
            case ir.AuxStore(name):
                yield name, "stored matrix", op
            case ir.Custom(inputs=inputs):
                for one in inputs:
                    yield one.name, one.extent.value, op


@rule("operand-name", "a name stands for one tensor of one shape, and is an argument of the generated function",
      Subject.WRITTEN)  # fmt: skip
def _names(kernel: ir.Kernel) -> Iterator[Breach]:
    meaning: dict[str, str] = {}
    for name, what, op in _uses(kernel):
        if name in RESERVED or name.startswith("_") or "__" in name:
            yield f"an operand has the name {name!r}", "choose another: this one has a meaning already", op.at
        elif name not in meaning:
            meaning[name] = what
        elif meaning[name] != what:
            yield f"{name!r} is a {what} here and a {meaning[name]} before", "use two names", op.at
        elif what == "stored matrix":
            yield f"{name!r} is stored twice", "use two names", op.at


@rule("clip-order", "min(max(x, low), high) with low over high is a constant", Subject.WRITTEN)
def _clip(kernel: ir.Kernel) -> Iterator[Breach]:
    for op in kernel.epilogue:
        if isinstance(op, ir.Clip) and op.min > op.max:
            yield f"min={op.min:g} is over max={op.max:g}", f"write min={op.max:g}, max={op.min:g}", op.at


@rule("custom-arch", "a custom expression becomes a node of the visitor tree of SM90a", Subject.WRITTEN)
def _custom(kernel: ir.Kernel) -> Iterator[Breach]:
    for op in kernel.epilogue:
        if isinstance(op, ir.Custom) and kernel.arch not in (None, Arch.SM90A, Arch.SM90):
            yield f"custom(...) on {kernel.arch}", "use .with_arch(sm_90a), or built-in operations", op.at


@rule("rows-of-conv", "rows of a convolution are the pixels of its output, and no vector has one value a pixel",
      Subject.WRITTEN)  # fmt: skip
def _rows(kernel: ir.Kernel) -> Iterator[Breach]:
    if kernel.is_gemm:
        return
    for op in kernel.epilogue:
        columns = isinstance(op, ir.PerRowScale | ir.ColumnBroadcast)
        if isinstance(op, ir.Custom):
            columns = any(one.extent is ir.Extent.COLUMN for one in op.inputs)
        if columns:
            yield ("a vector with one value a row, in a convolution",
                   "use per_channel_scale(), row_broadcast(NAME), or aux_load(NAME) for a whole tensor",
                   op.at)  # fmt: skip


@rule("no-smem-epilogue", "without shared memory CUTLASS writes D alone; tensors beside it need epilogue=tma")
def _no_smem(kernel: ir.Kernel) -> Iterator[Breach]:
    if kernel.scheduler is None or kernel.scheduler.epilogue is not EpilogueSchedule.NO_SMEM:
        return
    reads = Reads.of(kernel)
    if kernel.epilogue and (reads.tensors or reads.stores):
        yield ("epilogue=no_smem with operations that read or store a tensor", "write epilogue=auto",
               kernel.epilogue[0].at)  # fmt: skip
