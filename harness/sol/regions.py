"""Regions of a tensor: intervals, boxes, and the windows of convolutions and pooling that slide over one.

For windows: which taps meet data, and which elements are met at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from harness.sol.operators import Operator, View


@dataclass(frozen=True)
class Interval:
    """``count`` indices from ``start`` on, ``step`` apart."""

    start: int
    count: int
    step: int = 1

    @classmethod
    def all(cls, size: int) -> Interval:
        return cls(0, size)

    @property
    def stop(self) -> int:
        return self.start + (self.count - 1) * self.step + 1

    def union(self, other: Interval) -> Interval | None:
        """None where it is no interval."""
        first, second = sorted((self, other), key=lambda interval: (interval.start, -interval.count))
        apart = second.start - first.start
        step = apart if first.count == second.count == 1 else max(first.step, second.step)
        if 2 * apart == step and first.count - second.count in (0, 1) and first.step == second.step:
            return Interval(first.start, first.count + second.count, apart)  # every other one each
        fits = all(interval.step == step or interval.count == 1 for interval in (first, second))
        if not fits or (step and apart % step) or second.start > first.stop - 1 + step:
            return None
        stop = max(first.stop, second.stop)
        return Interval(first.start, (stop - 1 - first.start) // max(step, 1) + 1, max(step, 1))


@dataclass(frozen=True)
class Box:
    """A part of a tensor, and of its elements only ``share``, as where a mask leaves a triangle.

    ``scattered`` where it is not known which ones; what they are made of is then
    taken to be no larger a share of the operands.
    """

    intervals: tuple[Interval, ...]
    share: float = 1.0
    scattered: bool = False

    @classmethod
    def whole(cls, shape: tuple[int, ...]) -> Box:
        return cls(tuple(map(Interval.all, shape)))

    @property
    def count(self) -> float:
        return math.prod(interval.count for interval in self.intervals) * self.share

    def union(self, other: Box) -> Box | None:
        """None where it is no box."""
        apart = [i for i, (a, b) in enumerate(zip(self.intervals, other.intervals)) if a != b]
        if not apart:
            return max(self, other, key=lambda box: box.share)
        if len(apart) > 1 or self.share != other.share or self.scattered or other.scattered:
            return None
        merged = list(self.intervals)
        merged[apart[0]] = merged[apart[0]].union(other.intervals[apart[0]])
        return replace(self, intervals=tuple(merged)) if merged[apart[0]] else None

    def behind(self, intervals: Iterable[Interval]) -> Box:
        """The part of an operand from which this part of a result is made, mixing elements."""
        return Box(tuple(intervals), self.share if self.scattered else 1.0, self.scattered)


@dataclass(frozen=True)
class Window:
    """One dimension: ``size`` positions that a window of ``taps`` slides over, stopping ``stops`` times.

    Of a transposed convolution, ``size`` are the outputs and ``stops`` the inputs.
    """

    size: int
    stops: int
    taps: int
    stride: int
    padding: int
    dilation: int

    def valid(self) -> int:
        """Pairs of a stop and a tap that meet a position; the others meet padding, or are cropped away."""
        return sum(max(0, last - first + 1) for first, last in map(self._stops_of, range(self.taps)))

    def touched(self) -> int:
        """Positions that any tap meets."""
        met = np.zeros(self.size, dtype=bool)
        for tap in range(self.taps):
            first, last = self._stops_of(tap)
            if last >= first:
                offset = tap * self.dilation - self.padding
                met[first * self.stride + offset : last * self.stride + offset + 1 : self.stride] = True
        return int(met.sum())

    def useful_stops(self) -> int:
        """Stops at which any tap meets a position."""
        useful = np.zeros(self.stops, dtype=bool)
        for first, last in map(self._stops_of, range(self.taps)):
            useful[first : last + 1] = True
        return int(useful.sum())

    def over(self, start: int, count: int, step: int = 1) -> Window:
        """The window at ``count`` of its stops, from ``start`` on, ``step`` apart."""
        return replace(self, stops=count, stride=self.stride * step, padding=self.padding - start * self.stride)

    def _stops_of(self, tap: int) -> tuple[int, int]:
        """First and last stop at which the tap lies inside."""
        offset = tap * self.dilation - self.padding
        first = max(0, -(offset // self.stride))
        return first, min(self.stops - 1, (self.size - 1 - offset) // self.stride)


@dataclass(frozen=True)
class Convolution:
    """A convolution of the trace."""

    windows: tuple[Window, ...]
    transposed: bool

    @classmethod
    def of(cls, operator: Operator) -> Convolution:
        source, weight, _, stride, padding, dilation, transposed, *_ = operator.arguments
        inside, stops = (operator.output, source) if transposed else (source, operator.output)
        return cls(_windows(inside, stops, weight.shape[2:], stride, padding, dilation), transposed)

    @property
    def valid_share(self) -> float:
        """Taps that meet data, as a share of all."""
        return math.prod(w.valid() for w in self.windows) / math.prod(w.stops * w.taps for w in self.windows)


def pooling(operator: Operator) -> tuple[Window, ...]:
    """The windows of an average or maximum pooling."""
    source, kernel, stride, padding, *more = (*operator.arguments, *((),) * 2)
    dilation = more[0] if operator.name.startswith("max") and more and isinstance(more[0], (list, tuple)) else ()
    return _windows(source, operator.output, kernel, stride or kernel, padding or (0,), dilation or (1,))


def _windows(inside: View, stops: View, taps, stride, padding, dilation) -> tuple[Window, ...]:
    """One window a spatial dimension; a single number stands for all of them."""
    count = len(inside.shape) - 2
    settings = [tuple(setting) * (count if len(setting) == 1 else 1) for setting in (taps, stride, padding, dilation)]
    return tuple(map(Window, inside.shape[-count:], stops.shape[-count:], *settings))
