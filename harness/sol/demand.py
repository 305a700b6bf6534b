"""Demand of a call: elements that it must read and operators that it must run, found by slicing back.

A pass over the trace from outputs to inputs. What is needed of a tensor is a
``Box``: in each dimension an interval and how many indices of it. Where two needs
do not add up to a box the larger is kept, so counts are never too high and a
bound made of them stays sound. An operator without a rule here needs no larger a share
of its operands than what is needed of its result.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from harness.problem.meta_recurrent import GATES
from harness.sol.facts import Facts, certain_share, masked_to, structured_share
from harness.sol.operators import Operator, Trace, View
from harness.sol.regions import Box, Convolution, Interval, Window, pooling

_MARKED_AT_MOST = 1 << 22


@dataclass(frozen=True)
class Need:
    """The part of an operator's first output that matters, and which outputs do at all."""

    box: Box
    outputs: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        return self.outputs != (0,)


class Demand:
    """Work that one call must do, and elements that it must read; the ``least`` is that whatever indices pick."""

    def __init__(self, trace: Trace, facts: Facts, least: bool = False):
        self._facts = facts
        self._reads: dict[int, list[Read]] = defaultdict(list)  # of each storage, by operators
        self._returned: dict[int, list[Read]] = defaultdict(list)  # of each storage, by the caller
        self._needs: dict[int, Need | None] = {}
        for view in trace.outputs:
            self._returned[view.storage].append(Read(view))
        for operator in reversed(trace.operators):
            need = self._need_of(operator)
            self._needs[id(operator)] = need
            if need and not operator.is_view:
                for view, box in _operands(operator, need, facts):
                    certain = certain_share(operator, view, facts) if least else 1.0
                    if certain < 1:
                        box = replace(Box.whole(view.shape), share=min(box.share, certain), scattered=True)
                    if certain and not facts.of(view).constant:
                        self._reads[view.storage].append(Read.of(view, box))

    def elements(self, view: View) -> float:
        """Return how many elements of an input or parameter are read; handing it out is no reading."""
        reads = self._reads[view.storage]
        boxes = _boxes(view, reads)
        if len(boxes) > 1:
            return _marked(view, reads)
        return min(boxes[0].count, view.distinct) if boxes else 0

    def share(self, operator: Operator) -> float:
        """The part of an operator's work that matters: 0 where its result is discarded or constant."""
        need = self._needs[id(operator)]
        if need is None:
            return 0.0
        if operator.name in GATES:
            return _recurrent_share(operator, need)
        if need.is_whole:
            return 1.0
        box = need.box
        if (dimension := _softmax_dimension(operator)) is not None:
            box = _complete(box, operator.output, [dimension])
        return box.count / max(operator.output.numel, 1)

    def _need_of(self, operator: Operator) -> Need | None:
        """None where nothing of the result matters."""
        boxes = [
            _union(view, self._reads[view.storage] + self._returned[view.storage])
            if view.storage in operator.writes and not self._facts.of(view).constant
            else None
            for view in operator.outputs
        ]
        if not any(boxes):
            return None
        needed = tuple(number for number, box in enumerate(boxes) if box)
        return Need(boxes[0] or Box.whole(operator.output.shape), needed)


@dataclass(frozen=True)
class Read:
    """Elements of a storage that somebody reads: of a view, only ``share``, as in a ``Box``."""

    view: View
    share: float = 1.0
    scattered: bool = False

    @classmethod
    def of(cls, view: View, box: Box) -> Read:
        start = sum(interval.start * stride for interval, stride in zip(box.intervals, view.strides))
        shape = tuple(interval.count for interval in box.intervals)
        strides = tuple(interval.step * stride for interval, stride in zip(box.intervals, view.strides))
        part = replace(view, shape=shape, strides=strides, offset=view.offset + start)
        return cls(part, box.share, box.scattered)


def _union(view: View, reads: list[Read]) -> Box | None:
    """The part of ``view`` that the reads of its storage cover, or the largest box of it; None for no part."""
    return max(_boxes(view, reads), key=lambda box: box.count, default=None)


def _boxes(view: View, reads: list[Read]) -> list[Box]:
    """The parts of ``view`` that are read, merged where they form a box."""
    boxes: list[Box] = []
    distinct = sorted(dict.fromkeys(reads), key=lambda read: read.view.offset)
    for read in distinct:
        box = _locate(view, read)
        if box is None:  # count with all others, element by element
            share = min(1.0, _marked(view, distinct) / view.distinct)
            return [replace(Box.whole(view.shape), share=share, scattered=share < 1)]
        merged = box.count > 0
        while merged:  # what has grown may fit to another
            merged = next((both for known in boxes if (both := known.union(box))), None)
            if merged:
                boxes = [known for known in boxes if not known.union(box)]
                box = merged
        if box.count > 0:
            boxes.append(box)
    return boxes


def _marked(base: View, reads: list[Read]) -> float:
    """Return how many elements of ``base`` are read; where counting takes too long, those of the largest read."""
    views = [base, *(read.view for read in reads if read.share == 1)]
    # runs of adjacent elements that no view splits are marked as one
    runs = [size for view in views for size, stride in zip(view.shape, view.strides) if stride == 1]
    begin = min(view.offset for view in views)
    places = [view.offset - begin for view in views]
    strides = [stride for view in views for stride in view.strides if stride > 1]
    run = math.gcd(*runs, *places, *strides) if len(runs) == len(views) else 1
    last = max(place + sum((n - 1) * s for n, s in zip(v.shape, v.strides)) for place, v in zip(places, views))
    inside = [read for read in reads if read.view.offset >= base.offset and read.view.distinct < base.distinct]
    largest = max((read.view.distinct * read.share for read in inside), default=0.0)
    if last // run > _MARKED_AT_MOST:
        return largest
    marks = np.zeros((2, last // run + 1), dtype=bool)
    for row, view, place in zip([0] + [1] * len(views), views, places):
        shape = [size // run if stride == 1 else size for size, stride in zip(view.shape, view.strides)]
        steps = [stride if stride == 1 else stride // run for stride in view.strides]
        np.lib.stride_tricks.as_strided(marks[row, place // run :], shape, steps)[...] = True
    counted = int(marks.all(0).sum()) * run
    return counted if len(views) > len(reads) else max(counted, largest)


def _locate(base: View, read: Read) -> Box | None:
    """Return which part of ``base`` a read of the same storage is; None where it is no box."""
    whole = Box.whole(base.shape)
    (first, last), (low, high) = _span(base), _span(read.view)
    if high < first or last < low:
        return replace(whole, share=0.0)
    if read.view.distinct >= base.distinct and low <= first and last <= high:
        return replace(whole, share=read.share, scattered=read.scattered)
    order = [d for d in range(len(base.shape)) if base.strides[d] and base.shape[d] > 1]
    order.sort(key=lambda d: base.strides[d])
    starts, rest = {}, read.view.offset - base.offset
    for d in reversed(order):
        starts[d], rest = divmod(rest, base.strides[d])
    covered: dict[int, Interval] = {d: Interval(0, 1) for d in order}  # relative to the start
    for d, count, step in _steps(base, read.view, order):
        inner = covered[d]
        if inner.count > 1 and inner.count * inner.step != step:
            return None
        covered[d] = Interval(0, inner.count * count, inner.step if inner.count > 1 else step)
    intervals = list(whole.intervals)
    for d in order:
        intervals[d] = replace(covered[d], start=starts[d])
        if starts[d] < 0 or intervals[d].stop > base.shape[d]:
            return None
    return Box(tuple(intervals), read.share, read.scattered)


def _span(view: View) -> tuple[int, int]:
    """First and last element of the storage."""
    return view.offset, view.offset + sum((n - 1) * stride for n, stride in zip(view.shape, view.strides))


def _steps(base: View, view: View, order: list[int]) -> Iterator[tuple[int, int, int]]:
    """Dimension of ``base``, count and step there, of each dimension of ``view``, the innermost first."""
    for size, stride in sorted(zip(view.shape, view.strides), key=lambda pair: pair[1]):
        if size < 2 or not stride:
            continue
        for place, d in enumerate(order):
            last = place + 1 == len(order)
            outer = None if last else base.strides[order[place + 1]]
            if not last and stride >= outer:
                continue
            step = max(stride // base.strides[d], 1)
            # what does not fit into this dimension goes on in the next
            here = size if last else min(size, -(-outer // (base.strides[d] * step)))
            yield d, here, step
            size, stride = -(-size // here), max(outer or 0, stride * here)
            if size < 2:
                break


# Each element of the output is made of the element at its place in each operand.
_ELEMENTWISE = set(
    """add sub rsub mul div neg abs exp log sqrt rsqrt reciprocal square pow tanh erf sin cos relu sign maximum minimum
    clamp clamp_min clamp_max eq ne lt le gt ge masked_fill where threshold hardtanh leaky_relu xlogy softplus sigmoid
    hardsigmoid silu hardswish mish elu gelu clone _to_copy bitwise_not logical_not tril triu""".split()
)
_WRITES_ONLY = {"zero", "fill", "bernoulli", "normal", "uniform", "random", "empty_like", "zeros_like", "ones_like",
                "full_like", "rand_like", "randn_like", "new_empty", "new_zeros", "new_ones", "new_full"}  # fmt: skip


def _operands(operator: Operator, need: Need, facts: Facts) -> Iterator[tuple[View, Box]]:
    """The operands that an operator reads, and the part of each."""
    name = operator.name.removesuffix("_") if operator.name[-1] == "_" else operator.name
    if name in _WRITES_ONLY:
        return
    inputs = operator.inputs
    box = Box.whole(operator.output.shape) if need.is_whole else need.box
    if name in _ELEMENTWISE:
        kept = structured_share(masked_to(operator, facts), operator.output.shape)
        share = min(box.share, kept)
        for view in inputs:
            if view.distinct < operator.output.numel:  # of what is repeated along a triangle each element is met
                yield view, _broadcast(box, view)
            else:
                yield view, replace(_broadcast(box, view), share=share)
    elif name in ("mm", "bmm", "addmm", "baddbmm"):
        *bias, left, right = inputs
        yield from ((view, _broadcast(box, view)) for view in bias)
        *batch, row, column = box.intervals
        yield left, box.behind((*batch, row, Interval.all(left.shape[-1])))
        yield right, box.behind((*batch, Interval.all(right.shape[-2]), column))
    elif (dimension := _softmax_dimension(operator)) is not None:
        yield inputs[0], _complete(box, inputs[0], [dimension])
    elif name == "native_layer_norm":
        first = len(inputs[0].shape) - len(operator.arguments[1])
        yield inputs[0], _complete(box, inputs[0], range(first, len(inputs[0].shape)))
        yield from ((view, Box.whole(view.shape)) for view in inputs[1:])
    elif name == "convolution":
        yield inputs[0], _met(inputs[0], box, Convolution.of(operator).windows, operator.arguments[6])
        yield from ((view, Box.whole(view.shape)) for view in inputs[1:])
    elif "_pool" in name and "adaptive" not in name:
        yield inputs[0], _met(inputs[0], box, pooling(operator))
    elif name == "native_batch_norm" and operator.arguments[5]:
        # in train mode the statistics are the batch's
        yield from ((view, Box.whole(view.shape)) for view in operator.arguments[:3] if view is not None)
    elif name == "cat":
        yield from _pieces(operator, box)
    elif name == "copy":
        yield inputs[-1], _broadcast(box, inputs[-1])
    elif name in ("embedding", "index_select", "gather", "index", "nll_loss_forward"):
        yield from _picked(operator)
    else:
        share = (
            need.box.count / max(operator.output.numel, 1) if 0 in need.outputs and len(operator.outputs) == 1 else 1
        )
        yield from ((view, replace(Box.whole(view.shape), share=share, scattered=share < 1)) for view in inputs)


def _softmax_dimension(operator: Operator) -> int | None:
    if operator.name not in ("_softmax", "_safe_softmax", "_log_softmax") or not operator.output.shape:
        return None
    return operator.arguments[1] % len(operator.output.shape)


def _broadcast(box: Box, view: View) -> Box:
    """The part of a broadcast operand at the places of ``box``."""
    rank = len(view.shape)
    intervals = box.intervals[len(box.intervals) - rank :] if rank else ()
    return box.behind(i if size > 1 else Interval.all(size) for i, size in zip(intervals, view.shape))


def _complete(box: Box, view: View, dimensions) -> Box:
    """``box`` with all of some dimensions."""
    intervals = list(box.intervals)
    for dimension in dimensions:
        intervals[dimension] = Interval.all(view.shape[dimension])
    return box.behind(intervals)


def _met(view: View, box: Box, windows: tuple[Window, ...], transposed: bool = False) -> Box:
    """Return what the windows meet that make ``box`` of the result."""
    batch = len(view.shape) - len(windows) - 1
    parts = [*box.intervals[:batch], Interval.all(view.shape[batch])]
    for window, size, wanted in zip(windows, view.shape[batch + 1 :], box.intervals[batch + 1 :]):
        if transposed:
            useful = window.useful_stops() if wanted.count == window.size else min(wanted.count, window.useful_stops())
            parts.append(replace(Interval.all(size), count=min(size, useful)))
        else:
            touched = window.over(wanted.start, wanted.count, wanted.step).touched()
            parts.append(replace(Interval.all(size), count=touched))
    return box.behind(parts)


def _pieces(operator: Operator, box: Box) -> Iterator[tuple[View, Box]]:
    """Return what of each piece of a concatenation lies in the box."""
    dimension = operator.arguments[1] if len(operator.arguments) > 1 else 0
    begin = 0
    for view in operator.inputs:
        if len(view.shape) != len(box.intervals):  # an empty legacy tensor
            continue
        size, wanted = view.shape[dimension], box.intervals[dimension]
        skipped = max(0, -(-(begin - wanted.start) // wanted.step))
        start = wanted.start + skipped * wanted.step - begin
        count = min(wanted.count - skipped, -(-(size - start) // wanted.step))
        begin += size
        if count > 0:
            intervals = list(box.intervals)
            intervals[dimension] = Interval(start, count, wanted.step)
            yield view, replace(box, intervals=tuple(intervals))


def _picked(operator: Operator) -> Iterator[tuple[View, Box]]:
    """Read no more of a table than there are picks, and all indices."""
    table, *indices = operator.inputs
    if operator.name == "nll_loss_forward":
        picks = indices[0].numel
    else:
        picks = operator.output.numel
    yield table, replace(Box.whole(table.shape), share=min(1.0, picks / max(table.numel, 1)))
    yield from ((view, Box.whole(view.shape)) for view in indices)


def _recurrent_share(operator: Operator, need: Need) -> float:
    """Leave out the steps after all that is read, in the last layer's two directions each.

    Where the last states are handed out every step matters.
    """
    tokens, _, weights, _, layers, _, _, bidirectional, batch_first = operator.arguments
    if need.is_whole or len(tokens.shape) < 3:
        return 1.0
    time = 1 if batch_first else 0
    steps, read = tokens.shape[time], need.box.intervals[time]
    if not bidirectional:
        return read.stop / steps
    matrices = [view.numel for view in weights if len(view.shape) == 2]
    forward, backward = sum(matrices[-4:-2]), sum(matrices[-2:])
    skipped = forward * (1 - read.stop / steps) + backward * read.start / steps
    return 1 - skipped / sum(matrices)
