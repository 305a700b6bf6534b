"""The outputs of a burst's calls on a GPU, where the calls left them: in memory of the worker that the judge opens."""

from __future__ import annotations

import math
from typing import Any

import torch

from harness.judge.cross_check.base import order_in_memory
from harness.memory.cuda_driver import DriverError
from harness.memory.cuda_ipc import DeviceMemory, copy
from harness.result import CandidateFailure, Status
from harness.tensors.strides import in_order


class Allocations:
    """Opened by their handles, each once; ``own`` are the judge's, because a call may leave its output in its input."""

    def __init__(self, own: dict[str, DeviceMemory]):
        self._own, self._opened = own, {}

    def open(self, handle: str) -> DeviceMemory:
        if handle in self._own:
            return self._own[handle]
        if handle not in self._opened:
            self._opened[handle] = DeviceMemory.open(bytes.fromhex(handle))
        return self._opened[handle]

    def close(self) -> None:
        for memory in self._opened.values():
            memory.close()


class RemoteOutputs:
    """``places`` are address and size of each output, in this process, by call.

    Raises CandidateFailure where outputs are not in memory where the worker says they are.
    """

    def __init__(self, answer: dict[str, Any], calls: int, kinds: list[torch.Tensor], allocations: Allocations):
        self._kinds = kinds
        try:
            memories = {base: allocations.open(handle) for base, handle in answer["allocations"]}
            self._addresses = [
                [_address(memories, theirs[output], _bytes(kind)) for output, kind in enumerate(kinds)]
                for theirs in (answer["addresses"][call] for call in range(calls))
            ]
        except (KeyError, IndexError, TypeError, ValueError, DriverError):
            raise CandidateFailure(
                Status.CRASHED, "the outputs of a call in a row are not in memory where the worker says they are"
            ) from None
        # of the answer, which may be large, nothing else is kept
        self._orders = [
            [order_in_memory(answer, call, output, kind.dim()) for output, kind in enumerate(kinds)]
            for call in range(calls)
        ]

    @property
    def places(self) -> list[list[tuple[int, int]]]:
        return [[(at, _bytes(kind)) for at, kind in zip(of_call, self._kinds)] for of_call in self._addresses]

    def of_call(self, call: int) -> list[torch.Tensor]:
        """Copies of its outputs."""
        outputs = []
        for output, (address, kind) in enumerate(zip(self._addresses[call], self._kinds)):
            left = torch.empty(kind.shape, dtype=kind.dtype, device="cuda")
            if left.numel():
                copy(left.data_ptr(), address, _bytes(kind))
            outputs.append(in_order(left, self._orders[call][output]))
        return outputs


def _address(memories: dict[Any, DeviceMemory], theirs: int, size: int) -> int:
    """Return where so many bytes at an address of the worker lie in this process; ValueError where they do not."""
    if not size:
        return 0
    for base, memory in memories.items():
        offset = theirs - base
        if type(offset) is int and 0 <= offset <= memory.bytes - size:
            return memory.address + offset
    raise ValueError


def _bytes(kind: torch.Tensor) -> int:
    return math.prod(kind.shape) * kind.dtype.itemsize
