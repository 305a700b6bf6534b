"""Pieces of a candidate's outputs on a GPU, at places that it cannot foresee: what they were when the clock stopped."""

from __future__ import annotations

import ctypes
import random

import torch

from harness import cuda_driver

PIECES = 32  # who has a tenth of its work still to do is found out 29 times in 30
PIECE_BYTES = 4096

_random = random.SystemRandom()


class Pieces:
    """Read by the engine that copies to the host, which waits for no kernel of another process."""

    def __init__(self) -> None:
        self._stream = torch.cuda.Stream()
        self._then, self._now = torch.empty(2, PIECES, PIECE_BYTES, dtype=torch.uint8, pin_memory=True)
        self._sizes: list[int] = []
        self._copies: list[list[tuple]] = [[], []]  # of then and of now, as the driver is told

    def choose(self, places: list[tuple[int, int]]) -> None:
        """From outputs, each an address in this process and its bytes."""
        whole = [place for place in places if place[1]]
        chosen = [_piece(*_random.choice(whole)) for _ in range(PIECES if whole else 0)]
        self._sizes = [size for _, size in chosen]
        self._copies = [list(map(self._copy, chosen, host)) for host in (self._then, self._now)]

    def _copy(self, piece: tuple[int, int], row: torch.Tensor) -> tuple:
        address, size = piece
        stream = ctypes.c_void_p(self._stream.cuda_stream)
        return ctypes.c_void_p(row.data_ptr()), ctypes.c_uint64(address), ctypes.c_size_t(size), stream

    def take(self) -> None:
        """As they are now."""
        self._read(self._copies[0])

    def changed(self) -> int:
        """How many are others now."""
        self._read(self._copies[1])
        both = zip(self._sizes, self._then, self._now)
        return sum(not torch.equal(then[:size], now[:size]) for size, then, now in both)

    def _read(self, copies: list[tuple]) -> None:
        for arguments in copies:
            cuda_driver.call("cuMemcpyDtoHAsync_v2", *arguments)
        self._stream.synchronize()


def _piece(address: int, size: int) -> tuple[int, int]:
    if size <= PIECE_BYTES:
        return address, size
    return address + _random.randrange(size - PIECE_BYTES + 1), PIECE_BYTES
