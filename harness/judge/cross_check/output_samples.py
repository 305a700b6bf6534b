"""Pieces of a candidate's outputs on a GPU, at places that it cannot foresee: what they were right after their call."""

from __future__ import annotations

import ctypes
import random

import torch

from harness.judge.cross_check.base import MOST_CALLS
from harness.memory import cuda_driver

PIECES = 32  # of a burst, at least one a call: a tenth of the work left to do is found 29 times in 30
PIECE_BYTES = 4096  # chosen: a page

_random = random.SystemRandom()


class OutputSamples:
    """Read by the engine that copies to the host, which waits for no kernel of another process."""

    def __init__(self) -> None:
        self.stream = torch.cuda.Stream()
        rows = 2, 2 * MOST_CALLS["cuda"], PIECE_BYTES
        self._then, self._now = torch.empty(rows, dtype=torch.uint8, pin_memory=torch.cuda.is_available())
        self._chosen: list[list[tuple[int, int, int]]] = []  # by call: row, address and bytes of each

    def begin(self, calls: int) -> None:
        """Forget those of the last burst; the next one has so many calls."""
        self._chosen, self._a_call = [], -(-PIECES // calls)

    def choose(self, outputs: list[tuple[int, int]]) -> None:
        """Choose samples of the outputs of the next call, each an address in this process and its bytes."""
        whole, row = [place for place in outputs if place[1]], self.count
        pieces = [_piece(*_random.choice(whole)) for _ in range(self._a_call if whole else 0)]
        self._chosen.append([(row + index, *piece) for index, piece in enumerate(pieces)])

    @property
    def count(self) -> int:
        return sum(map(len, self._chosen))

    def take(self, call: int) -> None:
        """Enqueue reading those of one call, as they are when the stream gets there."""
        self._read(self._then, self._chosen[call])

    def changed(self) -> int:
        """Return how many are others now."""
        chosen = [piece for of_call in self._chosen for piece in of_call]
        self._read(self._now, chosen)
        self.stream.synchronize()
        return sum(not torch.equal(self._then[row, :size], self._now[row, :size]) for row, _, size in chosen)

    def _read(self, host: torch.Tensor, pieces: list[tuple[int, int, int]]) -> None:
        for row, address, size in pieces:
            target = ctypes.c_void_p(host[row].data_ptr())
            stream = ctypes.c_void_p(self.stream.cuda_stream)
            cuda_driver.call("cuMemcpyDtoHAsync_v2", target, ctypes.c_uint64(address), ctypes.c_size_t(size), stream)


def _piece(address: int, size: int) -> tuple[int, int]:
    if size <= PIECE_BYTES:
        return address, size
    return address + _random.randrange(size - PIECE_BYTES + 1), PIECE_BYTES
