"""Outputs of a call: their leaves in a fixed order, their structure, and whether they can be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from harness.tensors.dtypes import COMPARED

_NUMBERS = (bool, int, float, complex)
_TENSOR = "Tensor"


def flatten(output: Any) -> list:
    """Return the leaves of nested tuples, lists and dicts, in order; dicts in the order of their keys' text.

    None is part of the structure and no leaf.
    """
    leaves: list = []
    _walk(output, leaves.append)
    return leaves


def structure_of(output: Any) -> str:
    """Return the nesting of an output as text, such as ``(tensor, {'mask': tensor})``.

    Tuples and lists are one kind; numbers count as tensors.
    """
    return _walk(output, lambda leaf: None)


def _walk(value: Any, visit: Callable[[Any], None]) -> str:
    if value is None:
        return "None"
    if isinstance(value, dict):
        parts = [f"{key!r}: {_walk(value[key], visit)}" for key in sorted(value, key=repr)]
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, (tuple, list)):
        parts = [_walk(part, visit) for part in value]
        return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"
    visit(value)
    return "tensor"


def as_tensor(leaf: Any) -> torch.Tensor:
    """Return a leaf as a tensor whose memory holds its values; Python numbers become 0-dim tensors of 64 bits.

    A conjugate or a negative that PyTorch has only noted is computed.
    """
    if isinstance(leaf, torch.Tensor):
        return leaf.resolve_conj().resolve_neg() if leaf.is_conj() or leaf.is_neg() else leaf
    if isinstance(leaf, bool):
        return torch.tensor(leaf)
    if isinstance(leaf, complex):
        return torch.tensor(leaf, dtype=torch.complex128)
    return torch.tensor(leaf, dtype=torch.float64 if isinstance(leaf, float) else torch.int64)


def as_tensors(leaves: Iterable[Any], device: torch.device) -> list[torch.Tensor]:
    """Return leaves as tensors on a device, where numbers are not by themselves."""
    return [as_tensor(leaf).to(device) for leaf in leaves]


def kind_of(leaf: Any) -> str:
    """Return ``Tensor`` for a number or a plain dense tensor, else the kind of object it is."""
    if isinstance(leaf, _NUMBERS):
        return _TENSOR
    if not isinstance(leaf, torch.Tensor):
        return type(leaf).__name__
    if type(leaf) not in (torch.Tensor, torch.nn.Parameter):
        return f"subclass {type(leaf).__name__} of Tensor"
    if leaf.is_nested:
        return "nested Tensor"
    if leaf.is_quantized:
        return "quantized Tensor"
    if leaf.layout is not torch.strided:
        return f"{str(leaf.layout).removeprefix('torch.')} Tensor"
    return _TENSOR


def why_not_compared(leaves: list) -> str:
    """Return why outputs with these leaves cannot be compared, as a sentence part; '' where they can."""
    if not leaves:
        return "it returns no tensor, so there is nothing to compare"
    for index, leaf in enumerate(leaves):
        which = "its output" if len(leaves) == 1 else f"its output {index}"
        if (kind := kind_of(leaf)) != _TENSOR:
            return f"{which} is a {kind}, and only dense tensors and numbers are compared; return those"
        if isinstance(leaf, torch.Tensor) and leaf.dtype not in COMPARED:
            name = str(leaf.dtype).removeprefix("torch.")
            return f"{which} is {name}, which PyTorch cannot compute with; return what it holds as another dtype"
    return ""


def why_not_passed(inputs: list) -> str:
    """Return why a candidate cannot be given these inputs, as a sentence part; '' where it can."""
    for index, value in enumerate(inputs):
        if isinstance(value, (tuple, list, dict)):
            return f"input {index} is a {type(value).__name__}; get_inputs must list its tensors one by one"
        if isinstance(value, torch.Tensor) and (kind := kind_of(value)) != _TENSOR:
            return f"input {index} is a {kind}, and only dense tensors cross the process border"
    return ""
