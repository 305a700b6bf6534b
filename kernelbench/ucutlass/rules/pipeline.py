"""Pipelines: order of stages, types and axes from one to the next."""

from collections import Counter
from collections.abc import Iterator

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.ir import Axes, ConvForm, DType, TensorRef
from kernelbench.ucutlass.operands import Reads, in_memory
from kernelbench.ucutlass.rules.registry import Breach, Subject, listed, rule

MAX_KERNELS = 8  # of a pipeline: each is compiled, 45 s and 4 GiB on SM90
_CONVERTED = (DType.FP64, DType.FP32, DType.FP16, DType.BF16)


def _transposes(program: ir.Program) -> list[ir.Transpose]:
    return [stage for stage in program.stages if isinstance(stage, ir.Transpose)]


@rule("pipeline-kernel", "transposes alone compute nothing, and each kernel is a compilation of its own",
      Subject.PROGRAM)  # fmt: skip
def _kernel(program: ir.Program) -> Iterator[Breach]:
    count = len(program.kernels)
    if isinstance(program.body, ir.Pipeline) and not 1 <= count <= MAX_KERNELS:
        yield (f"the pipeline has {count} kernels", f"write 1 to {MAX_KERNELS}, such as gemm()...", program.body.at)


@rule("pipeline-arch", "one library is compiled for one architecture", Subject.PROGRAM)
def _arch(program: ir.Program) -> Iterator[Breach]:
    first = program.arch
    for kernel in program.kernels[1:]:
        if kernel.arch and first and kernel.arch is not first:
            yield f"{kernel.arch} after {first}", f"write .with_arch({first})", kernel.positions.get("arch", kernel.at)


@rule("transpose-order", "inputs and weights are prepared before the first kernel, the output after the last",
      Subject.PROGRAM)  # fmt: skip
def _order(program: ir.Program) -> Iterator[Breach]:
    places = [place for place, stage in enumerate(program.stages) if isinstance(stage, ir.Kernel)]
    for place, stage in enumerate(program.stages):
        if not places or isinstance(stage, ir.Kernel):
            continue
        is_output = stage.tensor is TensorRef.OUTPUT
        if is_output and place < places[-1]:
            yield "transpose(output, ...) before the last kernel", "move it to the end", stage.at
        if not is_output and place > places[0]:
            yield f"transpose({stage.tensor}, ...) after a kernel", "move it before the first kernel", stage.at


@rule("transpose-once", "two transposes of one tensor are one", Subject.PROGRAM)
def _once(program: ir.Program) -> Iterator[Breach]:
    seen = Counter()
    for stage in _transposes(program):
        seen[stage.tensor] += 1
        if seen[stage.tensor] == 2:
            yield f"transpose({stage.tensor}, ...) is given twice", "write one", stage.at


@rule("transpose-axes", "a transpose permutes the axes that it names", Subject.PROGRAM)
def _axes(program: ir.Program) -> Iterator[Breach]:
    for stage in _transposes(program):
        if stage.source.rank != stage.target.rank:
            fix = "NCL with NLC, or NCHW with NHWC"
            yield f"from {stage.source} to {stage.target}: {stage.source.rank} axes become {stage.target.rank}", \
                f"write {fix}", stage.at  # fmt: skip


@rule("transpose-dtypes", "a conversion has two types, both floating point", Subject.PROGRAM)
def _dtypes(program: ir.Program) -> Iterator[Breach]:
    for stage in _transposes(program):
        given = (stage.source_dtype, stage.target_dtype)
        if (given[0] is None) != (given[1] is None):
            yield "transpose(...) with one type", "write both, as in fp32, fp16, or none", stage.at
        for dtype in given:
            if dtype is not None and dtype not in _CONVERTED:
                yield f"transpose(...) with {dtype}", f"use {listed(_CONVERTED)}", stage.at


@rule("transpose-nothing", "a stage that changes neither axes nor type costs a copy of the tensor", Subject.PROGRAM)
def _nothing(program: ir.Program) -> Iterator[Breach]:
    for stage in _transposes(program):
        if stage.source is stage.target and stage.source_dtype is stage.target_dtype:
            yield f"transpose({stage.tensor}, {stage.source}, {stage.target}) changes nothing", "remove it", stage.at


@rule("transpose-gradient", "input, weight and output are the tensors of a forward convolution", Subject.PROGRAM)
def _gradient(program: ir.Program) -> Iterator[Breach]:
    for stage in _transposes(program):
        for kernel in program.kernels:
            if not kernel.is_gemm and kernel.operation.direction is not ir.Direction.FPROP:
                yield (f"transpose({stage.tensor}, ...) of {kernel.operation.word}(...)",
                       "remove it, and pass tensors with channels last", stage.at)  # fmt: skip


@rule("transpose-match", "what a transpose makes is what the kernel reads, and the other way round", Subject.PROGRAM)
def _match(program: ir.Program) -> Iterator[Breach]:
    kernels = program.kernels
    if not kernels:
        return
    for stage in _transposes(program):
        is_output = stage.tensor is TensorRef.OUTPUT
        kernel = kernels[-1] if is_output else kernels[0]
        if kernel.dtypes and stage.source_dtype and stage.target_dtype:
            side, has = ("output", stage.source_dtype) if is_output else ("input", stage.target_dtype)
            needs = getattr(kernel.dtypes, side)
            if has is not in_memory(needs):
                verb = "reads" if is_output else "makes"
                yield (f"transpose({stage.tensor}, ...) {verb} {has}, the kernel has {side}={needs}",
                       f"write {in_memory(needs)} in the transpose", stage.at)  # fmt: skip
        yield from _inner_axes(stage, kernel, is_output)


def _inner_axes(stage: ir.Transpose, kernel: ir.Kernel, is_output: bool) -> Iterator[Breach]:
    inner = stage.source if is_output else stage.target
    outer = stage.target if is_output else stage.source
    word = kernel.operation.word
    if kernel.is_gemm:
        if kernel.operation.form is ir.GemmForm.GROUPED and inner is not outer:
            yield (f"transpose({stage.tensor}, ...) of {word}(...)", "choose the layout of B by .with_layout(...)",
                   stage.at)  # fmt: skip
        elif inner.rank != 3 and inner is not outer:
            yield f"{inner} of {word}(...), whose operands are matrices", "write NCL and NLC", stage.at
        return
    rank = kernel.operation.rank
    if rank == 3:
        if inner is not outer:
            yield (f"{inner} of {word}(...), whose tensors have five axes",
                   "pass channels-last tensors, or only convert the type: transpose(input, NHWC, NHWC, fp32, fp16)",
                   stage.at)  # fmt: skip
        return
    right = Axes.NLC if rank == 1 else Axes.NHWC
    if inner is not right:
        other = Axes.NCL if rank == 1 else Axes.NCHW
        order = (right, other) if is_output else (other, right)
        yield (f"{word}(...) works on {right}, and the transpose leaves {inner}",
               f"write transpose({stage.tensor}, {order[0]}, {order[1]})", stage.at)  # fmt: skip
    elif stage.tensor is TensorRef.WEIGHT and kernel.operation.form is not ConvForm.STANDARD:
        yield (f"transpose(weight, ...) of {word}(...)",
               "remove it: with few channels a group PyTorch's order is the same, or prepare the weight once",
               stage.at)  # fmt: skip


@rule("pipeline-chain", "what one kernel writes the next reads as its A, in place: N of one is K of the next",
      Subject.PROGRAM)  # fmt: skip
def _chain(program: ir.Program) -> Iterator[Breach]:
    kernels = program.kernels
    for kernel in kernels if len(kernels) > 1 else ():
        if not kernel.is_gemm or kernel.operation.form is not ir.GemmForm.STANDARD:
            yield (f"{kernel.operation.word}(...) in a pipeline of {len(kernels)} kernels",
                   "chain gemm() with gemm(), and write other kernels as programs of their own", kernel.at)  # fmt: skip
            return
    for before, after in zip(kernels, kernels[1:]):
        if before.dtypes and after.dtypes:
            written, read = in_memory(before.dtypes.output), in_memory(after.dtypes.input)
            if written is not read:
                yield (f"output={before.dtypes.output} becomes input={after.dtypes.input}",
                       f"write output={read} before, or input={written} here",
                       after.positions.get("dtypes", after.at))  # fmt: skip
        if before.layout and after.layout and before.layout.c is not after.layout.a:
            yield (f"C={before.layout.c} becomes A={after.layout.a}", f"write A={before.layout.c}",
                   after.positions.get("layout", after.at))  # fmt: skip


@rule("conv-vector", "before SM90 a convolution reads its bias as C, so both have the type of its output",
      Subject.PROGRAM)  # fmt: skip
def _vector(program: ir.Program) -> Iterator[Breach]:
    last = program.stages[-1]
    kernel = program.kernels[-1] if program.kernels else None
    if not isinstance(last, ir.Transpose) or kernel is None or kernel.is_gemm or kernel.arch is None:
        return
    converts = last.target_dtype is not last.source_dtype
    if converts and not kernel.arch.is_sm90_or_later and Reads.of(kernel).rows:
        if kernel.operation.form is not ConvForm.DEPTHWISE:
            yield (f"bias of {kernel.operation.word}(...), whose output is converted to {last.target_dtype} later",
                   "apply it outside, use .with_arch(sm_90a), or leave the output's type", kernel.at)  # fmt: skip
