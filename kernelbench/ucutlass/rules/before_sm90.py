"""Kernels of SM70 to SM89: tiles of warps, iterators, swizzles, split-k."""

from collections.abc import Iterator

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.defaults import uses_simt
from kernelbench.ucutlass.ir import ConvForm, Direction, SplitKMode, Swizzle
from kernelbench.ucutlass.ir import Iterator as LoadIterator
from kernelbench.ucutlass.operands import Reads, side_dtype
from kernelbench.ucutlass.rules.registry import Breach, Subject, listed, place, rule

_SIDES = (32, 64, 128, 256)  # of a tile of warps


def _is_earlier(kernel: ir.Kernel) -> bool:
    return kernel.tile is not None and not (kernel.arch.is_sm90_or_later or kernel.tile.is_threadblockshape)


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


@rule("split-k-epilogue", "slices are summed by a later step, which has the accumulators and no other tensor")
def _split_epilogue(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _is_earlier(kernel) or kernel.split_k.mode is SplitKMode.NONE:
        return
    reads = Reads.of(kernel)
    if reads.tensors or reads.stores:
        yield ("split-k with an epilogue that reads or stores a tensor, or with beta",
               "write mode=none, slices=1, or keep to activations, scale, clip and scalars",
               place(kernel, "split_k"))  # fmt: skip
    made = kernel.dtypes.output
    if kernel.split_k.mode is SplitKMode.SERIAL and made.is_integer and made.bytes < kernel.dtypes.acc.bytes:
        other = "mode=parallel" if kernel.is_gemm else "mode=none, slices=1"
        yield (f"mode=serial with output={made}, which saturates at the sums of single slices",
               f"write {other}, or output={kernel.dtypes.acc}", place(kernel, "split_k"))  # fmt: skip
    if kernel.split_k.mode is SplitKMode.PARALLEL and not kernel.is_gemm:
        yield ("mode=parallel of a convolution, whose sums CUTLASS leaves to the caller", "write mode=serial",
               place(kernel, "split_k"))  # fmt: skip


def _no_source(kernel: ir.Kernel) -> str:
    """Return why an epilogue cannot be an output operator, which reads one source in the order of the output."""
    reads, made, side = Reads.of(kernel), kernel.dtypes.output, side_dtype(kernel)
    columns_first = isinstance(kernel.layout, ir.GemmLayout) and kernel.layout.c is ir.Matrix.COLUMN_MAJOR
    across, along = (reads.rows, reads.columns) if columns_first else (reads.columns, reads.rows)
    if reads.stores:
        return "stores a tensor"
    if reads.tensors > 1:
        return f"reads {reads.tensors} tensors"
    if across:
        return "reads a vector across the rows of the output in memory"
    return f"reads a vector of {side}, which the output ({made}) is not" if along and side is not made else ""


@rule("swizzle-form", "stream-K is a swizzle of gemm(), without a visitor tree: its epilogue reads one tensor")
def _swizzle(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _is_earlier(kernel) or kernel.swizzle is not Swizzle.STREAM_K:
        return
    at = place(kernel, "swizzle")
    if not kernel.is_gemm or kernel.operation.form is not ir.GemmForm.STANDARD:
        yield f"pattern=StreamK of {kernel.operation.word}(...)", "write pattern=Identity1", at
    elif reason := _no_source(kernel):
        yield f"pattern=StreamK with an epilogue that {reason}", "write pattern=Identity1", at


@rule("conv-epilogue", "convolutions before SM90 have no visitor tree: their epilogue reads one vector or tensor, as C")
def _epilogue(kernel: ir.Kernel) -> Iterator[Breach]:
    if not _is_earlier(kernel) or kernel.is_gemm or kernel.operation.form is ConvForm.DEPTHWISE:
        return
    reads = Reads.of(kernel)
    word = f"{kernel.operation.word}(...)"
    if reason := _no_source(kernel):
        yield f"the epilogue of {word} {reason}", "keep one tensor, such as bias(), the rest outside", kernel.at
    if kernel.operation.direction is Direction.WGRAD and reads.rows + reads.columns:
        yield f"{word} with a vector", "remove it: a filter's gradient has no bias", kernel.at
