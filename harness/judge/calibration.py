"""What the judge's own part of a burst takes on a GPU: found out before there is a candidate to slow it down."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from harness.device_memory import copy
from harness.draw import seed_generators
from harness.judge.pieces import Pieces

_COPIED_BYTES = [2**exponent for exponent in range(12, 30, 2)] + [2**29]
_REPEATS = 10


@dataclass(frozen=True)
class Calibration:
    """``copies`` are bytes and the ms that a copy of them in device memory takes.

    ``pieces_ms`` is what it takes to read ``Pieces``, and ``empty_call_ms`` what the host takes for a call of
    a burst besides the call.
    """

    copies: list[tuple[int, float]]
    pieces_ms: float
    empty_call_ms: float

    def copy_ms(self, size: int) -> float:
        """Between what was measured, and beyond it, as a straight line."""
        pairs = list(zip(self.copies, self.copies[1:]))
        (low, low_ms), (high, high_ms) = next((pair for pair in pairs if size <= pair[1][0]), pairs[-1])
        return low_ms + (high_ms - low_ms) * max(0.0, (size - low) / (high - low))


@functools.cache
def calibrate(device: torch.device) -> Calibration:
    pieces, memory = Pieces(), torch.zeros(2, _COPIED_BYTES[-1], dtype=torch.uint8, device=device)
    target, source = memory[0].data_ptr(), memory[1].data_ptr()
    copies = [(size, _least_ms(lambda size=size: copy(target, source, size))) for size in _COPIED_BYTES]
    pieces.choose([(source, _COPIED_BYTES[-1])])
    return Calibration(copies, _least_ms(pieces.take), _least_ms(lambda: seed_generators(0, device)))


def _least_ms(action: Callable[[], object]) -> float:
    action()
    torch.cuda.synchronize()
    took = []
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        action()
        took.append(time.perf_counter() - begin)
    return min(took) * 1e3
