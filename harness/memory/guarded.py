"""Buffers whose surroundings tell if a candidate wrote past them, and whose end on a CPU may not be passed at all.

In front of each lies a canary, and on a CPU a page behind it that nobody may read or write. Data keep the alignment
of PyTorch's allocator, so up to 63 bytes lie between the end and that page: they are canaries too. On a GPU canaries
lie on both sides.
"""

from __future__ import annotations

import ctypes
import mmap
import os

import torch

_CANARY = 0xA5
_ALIGNMENT = 64  # bytes: that of PyTorch's allocator on a CPU
_MARGIN = 512  # bytes on a GPU, on either side: its alignment there
_PROT_NONE = 0

_libc = ctypes.CDLL(None, use_errno=True)


class GuardedBuffers:
    """Copies of tensors in buffers of their own; those of a round go with the next ``begin``."""

    def __init__(self) -> None:
        self._lasting: list[tuple[str, torch.Tensor]] = []
        self._of_round: list[tuple[str, torch.Tensor]] = []

    def begin(self) -> None:
        """Let go of what the last round had."""
        self._of_round = []

    def hold(self, tensor: torch.Tensor, name: str, lasting: bool = False) -> torch.Tensor:
        """Return a copy of a contiguous tensor; another one, or an empty one, as it is.

        ``name`` is what a person calls it: 'output 0'. Raises OSError where the system has no memory for it.
        """
        if not tensor.is_contiguous() or not tensor.numel():
            return tensor
        copy, before, behind = _on_cpu(tensor) if tensor.device.type == "cpu" else _on_device(tensor)
        copy.copy_(tensor)
        for part in (before, behind):
            part.fill_(_CANARY)
        kept = self._lasting if lasting else self._of_round
        kept += [(f"before {name}", before), (f"behind {name}", behind)]
        return copy

    def overruns(self) -> list[str]:
        """Return where somebody wrote: 'behind output 0'."""
        return [where for where, part in (*self._lasting, *self._of_round) if bool((part != _CANARY).any())]


class UnguardedBuffers(GuardedBuffers):
    """Tensors as they are, for a tool that watches their ends itself: it would take a canary for a part of them."""

    def hold(self, tensor: torch.Tensor, name: str, lasting: bool = False) -> torch.Tensor:
        return tensor


def _on_cpu(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    size = tensor.numel() * tensor.element_size()
    room, page = -(-size // _ALIGNMENT) * _ALIGNMENT, mmap.PAGESIZE
    guard = -(-(_ALIGNMENT + room) // page) * page
    mapped = mmap.mmap(-1, guard + page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    whole = torch.frombuffer(mapped, dtype=torch.uint8)  # keeps it mapped
    if _libc.mprotect(ctypes.c_void_p(whole.data_ptr() + guard), ctypes.c_size_t(page), _PROT_NONE):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return _parts(whole[:guard], guard - room, size, tensor)


def _on_device(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    size = tensor.numel() * tensor.element_size()
    whole = torch.empty(_MARGIN + size + _MARGIN, dtype=torch.uint8, device=tensor.device)
    return _parts(whole, _MARGIN, size, tensor)


def _parts(whole: torch.Tensor, begin: int, size: int, like: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the buffer as a tensor, and the bytes before and behind it."""
    data = whole[begin : begin + size].view(like.dtype).view(like.shape)
    return data, whole[max(0, begin - _MARGIN) : begin], whole[begin + size :]
