"""Convolutions: layouts, and what SM90's implicit GEMM cannot do."""

from collections.abc import Iterator

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.defaults import NOT_OF_DEPTHWISE
from kernelbench.ucutlass.ir import (
    ConvForm,
    ConvTensor,
    Direction,
    DType,
    EpilogueSchedule,
    KernelSchedule,
    TileScheduler,
)
from kernelbench.ucutlass.operands import Reads
from kernelbench.ucutlass.rules.registry import Breach, Subject, place, rule


@rule("conv-layout", "channels are last, and a 3D convolution has a depth: TensorNDHWC; 1D and 2D have TensorNHWC",
      Subject.WRITTEN)  # fmt: skip
def _layout(kernel: ir.Kernel) -> Iterator[Breach]:
    if kernel.is_gemm or kernel.layout is None:
        return
    right = ConvTensor.NDHWC if kernel.operation.rank == 3 else ConvTensor.NHWC
    wrong = [name for name in ("input", "filter", "output") if getattr(kernel.layout, name) is not right]
    if wrong:
        yield (f"{kernel.operation.word}(...) with {', '.join(wrong)} of another layout",
               f"write .with_layout(input={right}, filter={right}, output={right})",
               place(kernel, "layout"))  # fmt: skip


def _is_sm90_conv(kernel: ir.Kernel) -> bool:
    if kernel.is_gemm or kernel.operation.form is ConvForm.DEPTHWISE:
        return False
    return kernel.arch.is_sm90_or_later


@rule("conv-schedule", "CUTLASS's SM90 convolutions have one schedule: TMA, warp-specialised, one tile a thread block")
def _schedule(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _is_sm90_conv(kernel):
        return
    schedule, at = kernel.scheduler, place(kernel, "scheduler")
    if schedule.kernel is not KernelSchedule.TMA:
        yield f"kernel={schedule.kernel} of a convolution", "write kernel=tma, epilogue=tma", at
    if schedule.tile is not TileScheduler.DEFAULT:
        yield f"tile={schedule.tile} of a convolution", "write tile=default, or remove tile", at
    if schedule.epilogue is EpilogueSchedule.NO_SMEM:
        yield f"epilogue={schedule.epilogue} of a convolution", "write epilogue=tma", at


@rule("conv-dtype", "SM90 convolutions take 16-bit floats, TF32 and 8-bit integers, and their gradients 16 bits: "
      "wgmma reads other types only with the summed axis contiguous")  # fmt: skip
def _dtype(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _is_sm90_conv(kernel):
        return
    given, forward = kernel.dtypes.input, kernel.operation.direction is Direction.FPROP
    if given in (DType.FP8_E4M3, DType.FP8_E5M2) or (not forward and given.bytes != 2):
        yield (f"input={given} of {kernel.operation.word}(...)", "write input=fp16 or input=bf16",
               place(kernel, "dtypes"))  # fmt: skip


@rule("conv-alignment", "SM90's convolutions read channels by TMA, in pieces of 16 bytes")
def _alignment(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _is_sm90_conv(kernel):
        return
    piece = 16 // kernel.dtypes.input.bytes
    for name, elements in (("A", kernel.alignment.a), ("B", kernel.alignment.b)):
        if elements % piece:
            yield (f"{name}={elements} of a convolution", f"write {name}={piece}, and pad the channels",
                   place(kernel, "alignment"))  # fmt: skip


@rule("wgrad-epilogue", "the gradient of a filter is summed in packed form; CUTLASS fuses nothing after it on SM90")
def _wgrad(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _is_sm90_conv(kernel) or kernel.operation.direction is not Direction.WGRAD:
        return
    word = f"{kernel.operation.word}(...)"
    if kernel.epilogue:
        yield f"{word} with an epilogue", "remove the epilogue, or use .with_arch(sm_80)", kernel.epilogue[0].at
    if kernel.scaling.beta:
        yield f"{word} with beta={kernel.scaling.beta:g}", "write beta=0", place(kernel, "scaling")


@rule("conv-matrices", "the visitor tree of an SM90 convolution reads one tensor of the output's shape and stores one")
def _matrices(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _is_sm90_conv(kernel) or kernel.operation.direction is Direction.WGRAD:
        return
    reads = Reads.of(kernel)
    if reads.stores:
        at = next(op.at for op in kernel.epilogue if isinstance(op, ir.AuxStore))
        yield "aux_store(...) in a convolution", "remove it, and compute what it stores in another kernel", at
    if reads.matrices > 1:
        yield (f"the epilogue reads {reads.matrices} tensors of the output's shape",
               "keep one of C (beta), aux_load(...) and custom matrices", kernel.at)  # fmt: skip


@rule("depthwise-plain", "a depthwise convolution multiplies no matrices, so its kernel has no tiles and no schedule",
      Subject.WRITTEN)  # fmt: skip
def _depthwise(kernel: ir.Kernel) -> Iterator[Breach]:
    if kernel.is_gemm or kernel.operation.form is not ConvForm.DEPTHWISE:
        return
    for clause in NOT_OF_DEPTHWISE:
        if getattr(kernel, clause) is not None:
            yield f"{kernel.operation.word}(...) with a choice of {clause}", "remove this clause", place(kernel, clause)


@rule("group-count", "every group needs input and output channels of its own", Subject.WRITTEN)
def _groups(kernel: ir.Kernel) -> Iterator[Breach]:
    operation = kernel.operation
    if isinstance(operation, ir.Conv) and operation.form is ConvForm.GROUPED and operation.groups < 2:
        plain = ir.Conv(operation.kernel).word
        yield f"{operation.word}(...) with groups={operation.groups}", f"write {plain}(...)", kernel.at
