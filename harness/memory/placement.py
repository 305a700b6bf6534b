"""Placement of tensors in a GPU's memory, at random.

Some calls depend on it: a transposed convolution of an H100 takes 5.4 ms in one process and 6.9 in another, in the same
kernels, as long as the allocator of the process gives out the same memory. One that starts empty leads to the same
distances between tensors every time, and one that does not to the same gaps.
"""

from __future__ import annotations

import random

import torch

_LEAST_GAP_BYTES = 10 << 20  # PyTorch's allocator has what is as large take a segment of its own,
_MOST_SMALL_BYTES = 1 << 20  # and what is no larger lie with others of its kind
_PAGE = 2 << 20
_GAP_PAGES = 28
_MOST_GAPS_BYTES = 1 << 30
_GAPS_MEMORY_SHARE = 16  # and at most one part in so many of what is free
_FILLED_SHARE = 0.75  # of the gaps between what is in use: what lies in them otherwise is mostly elsewhere, not always

_random = random.SystemRandom()


class Placement:
    """Free blocks of PyTorch's allocator on one device, in this process."""

    def __init__(self, device: torch.device):
        self._device = device
        self._gaps: list[torch.Tensor] = []

    def change(self) -> None:
        """Take whole segments again, in an order and with gaps that are chance, and most of what is free in others.

        Where memory is too short, none of it.
        """
        free = [segment["total_size"] for segment in self._segments() if not segment["active_size"]]
        self.give_back()
        holes = [block["size"] for segment in self._segments() for block in _free_blocks(segment)]
        left = min(_MOST_GAPS_BYTES, torch.cuda.mem_get_info(self._device)[0] // _GAPS_MEMORY_SHARE)
        _random.shuffle(free)
        taken = []
        try:
            for size in holes:
                if size <= left and _random.random() < _FILLED_SHARE:
                    left -= size
                    self._gaps.append(self._take(size))
            for size in free:
                gap = _LEAST_GAP_BYTES + _PAGE * _random.randrange(_GAP_PAGES)
                if gap <= left:
                    left -= gap
                    self._gaps.append(self._take(gap))
                taken.append(self._take(size))
        except torch.OutOfMemoryError:
            taken.clear()
            self.give_back()

    def give_back(self) -> None:
        """Give back all free blocks, and the gaps."""
        self._gaps.clear()
        torch.cuda.empty_cache()

    def _take(self, size: int) -> torch.Tensor:
        return torch.empty(size, dtype=torch.uint8, device=self._device)

    def _segments(self) -> list[dict]:
        """Return what the allocator has from the driver, without what it keeps for small tensors and for graphs."""
        return [
            segment
            for segment in torch.cuda.memory_snapshot()
            if segment["segment_type"] == "large" and segment["device"] == self._device.index
            and segment.get("segment_pool_id", (0, 0)) == (0, 0)
        ]  # fmt: skip


def _free_blocks(segment: dict) -> list[dict]:
    """Return those that anything may come to lie in."""
    return [block for block in segment["blocks"] if block["state"] == "inactive" and block["size"] > _MOST_SMALL_BYTES]
