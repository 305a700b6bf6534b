"""Order of the dimensions of a tensor in memory."""

from __future__ import annotations

import torch


def order_of(tensor: torch.Tensor) -> list[int]:
    """The dimensions from the outermost to the innermost in memory."""
    return sorted(range(tensor.dim()), key=lambda dimension: -tensor.stride(dimension))


def in_order(memory: torch.Tensor, order: list[int]) -> torch.Tensor:
    """A view of the same shape on contiguous ``memory``, in which the dimensions lie in ``order``."""
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return memory.view([memory.shape[dimension] for dimension in order]).permute(inverse)


def is_dense(tensor: torch.Tensor) -> bool:
    """Return whether its elements fill their memory, in whatever order of dimensions."""
    return tensor.permute(order_of(tensor)).is_contiguous()
