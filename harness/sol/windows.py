"""Sliding windows (convolutions, pooling): which taps meet data, which elements are met at all."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from harness.sol.operators import Operator, View


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
