"""Pipelines: order of stages, types and axes from one to the next."""

from collections import Counter
from collections.abc import Iterator

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.ir import Axes, ConvForm, DType, TensorRef
from kernelbench.ucutlass.operands import in_memory
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


@rule("transpose-dtypes", "a conversion has two types, and floating point has them exactly", Subject.PROGRAM)
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


@rule("transpose-match", "what a transpose makes is what the kernel reads, and the other way round", Subject.PROGRAM)
def _match(program: ir.Program) -> Iterator[Breach]:
    kernels = program.kernels
    if not kernels:
        return
    for stage in _transposes(program):
        is_output = stage.tensor is TensorRef.OUTPUT
        kernel = kernels[-1] if is_output else kernels[0]
        if kernel.dtypes and stage.source_dtype:
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
        if kernel.operation.form is not ir.GemmForm.BATCHED and inner is not outer:
            yield (f"transpose({stage.tensor}, ...) of {word}(...), whose operands have two axes",
                   "choose the layout by .with_layout(...), or use batched_gemm() or conv1d_fprop(kernel_w=1)",
                   stage.at)  # fmt: skip
        elif inner.rank != 3 and inner is not outer:
            yield f"{inner} of {word}(...), whose operands have three axes", "write NCL and NLC", stage.at
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


@rule("pipeline-chain", "what one kernel writes the next reads as its first operand, in place", Subject.PROGRAM)
def _chain(program: ir.Program) -> Iterator[Breach]:
    kernels = program.kernels
    for before, after in zip(kernels, kernels[1:]):
        if before.is_gemm != after.is_gemm or (not before.is_gemm and before.operation.rank != after.operation.rank):
            yield (f"{after.operation.word}(...) after {before.operation.word}(...)",
                   "chain GEMMs with GEMMs, and convolutions of one rank", after.at)  # fmt: skip
            continue
        if before.dtypes and after.dtypes:
            written, read = in_memory(before.dtypes.output), in_memory(after.dtypes.input)
            if written is not read:
                yield (f"output={before.dtypes.output} becomes input={after.dtypes.input}",
                       f"write output={read} before, or input={written} here",
                       after.positions.get("dtypes", after.at))  # fmt: skip
        yield from _chained_layouts(before, after)


def _chained_layouts(before: ir.Kernel, after: ir.Kernel) -> Iterator[Breach]:
    if not before.is_gemm:
        if any(kernel.operation.direction is not ir.Direction.FPROP for kernel in (before, after)):
            yield "a gradient in a chain of kernels", "chain forward convolutions only", after.at
        return
    if before.operation.form is not after.operation.form:
        yield (f"{after.operation.word}(...) after {before.operation.word}(...)",
               f"write {before.operation.word}(...) for both", after.at)  # fmt: skip
    if before.layout and after.layout and before.layout.c is not after.layout.a:
        yield (f"C={before.layout.c} becomes A={after.layout.a}", f"write A={before.layout.c}",
               after.positions.get("layout", after.at))  # fmt: skip
