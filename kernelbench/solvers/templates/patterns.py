"""Layout of an operand in the space of a computation: sizes and strides, merged where they are one."""

from __future__ import annotations

import math

from harness.sol.operators import View

Pattern = tuple[tuple[int, int], ...]  # sizes and strides of the dimensions


class NoTemplate(Exception):
    """No template computes this; the message says what stands in the way."""


def broadcast(view: View, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of ``view`` in a space of ``shape``."""
    missing = len(shape) - len(view.shape)
    if missing < 0 or any(size not in (1, wanted) for size, wanted in zip(view.shape, shape[missing:])):
        raise NoTemplate("operands whose shapes do not belong together")
    strides = [0 if size == 1 else stride for size, stride in zip(view.shape, view.strides)]
    return (0,) * missing + tuple(strides)


def merged(shape: tuple[int, ...], strides: tuple[int, ...]) -> Pattern:
    """Dimensions of size one left out, and neighbours made one where they are traversed as one."""
    dims: list[tuple[int, int]] = []
    for size, stride in zip(shape, strides):
        if size == 1:
            continue
        if dims and dims[-1][1] == stride * size:
            dims[-1] = (dims[-1][0] * size, stride)
        else:
            dims.append((size, stride))
    return tuple(dims) or ((1, 0),)


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of a contiguous tensor of this shape."""
    return tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))


def line(size: int) -> Pattern:
    """Return the pattern of ``size`` elements one after the other."""
    return merged((size,), (1,))


def is_whole(view: View, size: int) -> bool:
    """Return whether a view covers ``size`` contiguous elements from the start of its storage."""
    return view.numel == size and not view.offset and merged(view.shape, view.strides) == line(size)


def reshaped(view: View, shape: tuple[int, ...]) -> View:
    """Return a contiguous view in another shape; raises NoTemplate where it is not contiguous."""
    if not is_whole(view, math.prod(shape)):
        raise NoTemplate("a norm of something in another order")
    return View(view.storage, shape, contiguous_strides(shape), view.offset, view.dtype)
