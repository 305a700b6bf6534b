"""Kernels of SM70 to SM89: tiles of warps, iterators, swizzles, split-k."""

from collections.abc import Iterator

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.defaults import uses_simt
from kernelbench.ucutlass.ir import Arch, ConvForm, Direction, SplitKMode, Swizzle
from kernelbench.ucutlass.ir import Iterator as LoadIterator
from kernelbench.ucutlass.rules.registry import Breach, Subject, listed, place, rule

_SIDES = (32, 64, 128, 256)  # of a tile of warps


def _is_earlier(kernel: ir.Kernel) -> bool:
    return not kernel.arch.is_sm90_or_later and not kernel.tile.is_threadblockshape


@rule("tile-warps", "warps of 32 x 32 to 64 x 64 outputs share a tile, and tensor cores take 32 bytes of K at a time")
def _tile(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _is_earlier(kernel):
        return
    tile, at = kernel.tile, place(kernel, "tile")
    for name in ("m", "n"):
        if getattr(tile, name) not in _SIDES:
            nearest = min(_SIDES, key=lambda side: abs(side - getattr(tile, name)))
            yield f"{name}={getattr(tile, name)} is none of {listed(_SIDES)}", f"write {name}={nearest}", at
    size = kernel.dtypes.input.bytes
    if uses_simt(kernel):
        if tile.k not in (8, 16):
            yield f"k={tile.k} with {kernel.dtypes.input} on CUDA cores", "write k=8", at
    elif tile.k * size not in (32, 64, 128):
        yield (f"k={tile.k} is {tile.k * size} bytes of {kernel.dtypes.input}, none of 32, 64 or 128",
               f"write k={64 // size}", at)  # fmt: skip


@rule("stages-cp-async", "more than two stages need cp.async: SM80 and later, and not on CUDA cores")
def _stages(kernel: ir.Kernel) -> Iterator[Breach]:
    if _is_earlier(kernel) and kernel.stages > 2 and kernel.arch is Arch.SM70:
        yield f"{kernel.stages} stages on {kernel.arch}", "write .with_stages(2)", place(kernel, "stages")


@rule("iterator-conv", "an iterator says how a convolution finds its pixels; a GEMM has none", Subject.WRITTEN)
def _iterator(kernel: ir.Kernel) -> Iterator[Breach]:
    chosen = kernel.iterator
    if chosen is None:
        return
    at = place(kernel, "iterator")
    if kernel.is_gemm:
        yield f"{kernel.operation.word}(...) with .with_iterator({chosen})", "remove .with_iterator(...)", at
        return
    operation = kernel.operation
    depthwise = operation.form is ConvForm.DEPTHWISE
    if (chosen is LoadIterator.FIXED_STRIDE_DILATION) and not depthwise:
        yield f"{chosen} is for depthwise convolutions", "write .with_iterator(optimized)", at
    if chosen in (LoadIterator.FIXED_CHANNELS, LoadIterator.FEW_CHANNELS):
        if depthwise or operation.form is ConvForm.GROUPED or operation.direction is not Direction.FPROP:
            yield f"{chosen} of {operation.word}(...)", "it is for conv1d_fprop and conv2d_fprop: write optimized", at
        elif operation.rank == 3:
            yield f"{chosen} of {operation.word}(...)", "write .with_iterator(optimized)", at


@rule("split-k-slices", "mode none is one slice; serial and parallel sum several parts of K")
def _slices(kernel: ir.Kernel) -> Iterator[Breach]:
    split = kernel.split_k
    if not _is_earlier(kernel) or split is None:
        return
    at = place(kernel, "split_k")
    if split.mode is SplitKMode.NONE and split.slices != 1:
        yield f"mode=none with slices={split.slices}", "write slices=1, or mode=serial", at
    if split.mode is not SplitKMode.NONE and split.slices < 2:
        yield f"mode={split.mode} with slices={split.slices}", "write slices=2 or more, or mode=none", at


@rule("split-k-form", "split-k is of one matrix product: a batch or group is parallel already")
def _split_form(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _is_earlier(kernel) or kernel.split_k.mode is SplitKMode.NONE:
        return
    at = place(kernel, "split_k")
    operation = kernel.operation
    form = operation.form
    if form not in (ir.GemmForm.STANDARD, ConvForm.STANDARD):
        yield f"split-k of {operation.word}(...)", "write .with_split_k(mode=none, slices=1)", at
    if kernel.swizzle is Swizzle.STREAM_K:
        yield "split-k with pattern=StreamK", "write pattern=Identity1, or mode=none", at


@rule("split-k-epilogue", "parallel slices are summed by a second kernel, which knows no fused operations")
def _split_epilogue(kernel: ir.Kernel) -> Iterator[Breach]:
    if _is_earlier(kernel) and kernel.split_k.mode is SplitKMode.PARALLEL and kernel.epilogue:
        yield ("mode=parallel with an epilogue", "write mode=serial, or remove the epilogue",
               place(kernel, "split_k"))  # fmt: skip


@rule("swizzle-form", "stream-K is a swizzle of gemm(); grouped GEMMs order their tiles themselves")
def _swizzle(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _is_earlier(kernel) or "swizzle" not in kernel.positions:
        return
    at = place(kernel, "swizzle")
    standard = kernel.is_gemm and kernel.operation.form is ir.GemmForm.STANDARD
    if kernel.swizzle is Swizzle.STREAM_K and not standard:
        yield f"pattern=StreamK of {kernel.operation.word}(...)", "write pattern=Identity1", at


# Thread epilogues of CUTLASS 2.x: a bias through a source of stride 0, then a scale or one activation.
@rule("conv-epilogue", "convolutions before SM90 have no visitor tree: a bias, then one activation that CUTLASS has")
def _epilogue(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _is_earlier(kernel) or kernel.is_gemm:
        return
    ops = list(kernel.epilogue)
    if ops and isinstance(ops[0], ir.Bias):
        ops.pop(0)
    if ops and isinstance(ops[0], ir.Activation | ir.LeakyRelu | ir.Clip | ir.Elu):
        ops.pop(0)
    if ops:
        yield (f"{kernel.operation.word}(...) with {len(kernel.epilogue)} epilogue operations, the first that does "
               f"not fit here is {type(ops[0]).__name__}",
               "write at most >> bias() >> one activation; do the rest outside, or use .with_arch(sm_90a)",
               ops[0].at)  # fmt: skip
