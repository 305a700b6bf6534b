"""The inputs of a burst on a GPU: drawn in the judge's memory, copied call by call to where the worker sees them."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from harness.judge.cross_check.base import NotRead, compared_calls
from harness.memory.cuda_driver import DriverError
from harness.memory.cuda_ipc import DeviceMemory, copy, copy_in_stream
from harness.memory.shared_tensors import Slot, lay_out
from harness.problem.inputs import fresh_seeds, tensors_of
from harness.timing.rounds import InputCase, RunConfig


@dataclass(frozen=True)
class Burst:
    """The inputs of its calls as the judge keeps them, what they were drawn from, and the seeds that a call is told.

    ``compared`` are random calls, whose outputs are.
    """

    case: InputCase
    compared: frozenset[int]
    inputs: list[list]
    drawn: list[int]
    seeds: list[int]


class BurstInputs:
    """``memory`` is what the worker sees, by ``handle``; what an earlier burst left there stays until it is copied."""

    def __init__(self, setting: RunConfig, calls: int):
        self._setting, self._calls = setting, calls
        of_one = tensors_of(setting.draw_one(0))
        each, slots = len(of_one), lay_out(of_one * calls)
        self._slots = [slots[call * each : (call + 1) * each] for call in range(calls)]
        self.bytes = max((slot.offset + slot.bytes for slot in slots), default=1)
        del of_one  # it may be a fifth of the device
        torch.cuda.empty_cache()
        self._drawn = torch.empty(self.bytes, dtype=torch.uint8, device=setting.device)
        try:
            self.memory = DeviceMemory.allocate(self.bytes)
        except DriverError as error:
            raise torch.OutOfMemoryError("the device has no memory left for a burst") from error
        try:
            self.handle = self.memory.export().hex()
        except DriverError as error:
            self.memory.free()
            raise NotRead(str(error)) from error

    def draw(self, case: InputCase) -> Burst:
        drawn = fresh_seeds(self._calls)
        inputs = [self._kept(self._setting.draw_one(seed, case.draw), slots) for seed, slots in zip(drawn, self._slots)]
        torch.cuda.synchronize()
        return Burst(case, compared_calls(self._calls), inputs, drawn, fresh_seeds(self._calls))

    def _kept(self, arguments: list, slots: list[Slot]) -> list:
        left = iter(slots)
        return [self._own(next(left)).copy_(v) if isinstance(v, torch.Tensor) else v for v in arguments]

    def _own(self, slot: Slot) -> torch.Tensor:
        return self._drawn[slot.offset : slot.offset + slot.bytes].view(slot.dtype).view(slot.shape)

    def copy(self, call: int, stream: int) -> None:
        """Enqueue the copy that has the inputs of a call exist where the worker sees them."""
        if slots := self._slots[call]:
            begin, end = slots[0].offset, slots[-1].offset + slots[-1].bytes
            source = self._drawn.data_ptr() + begin
            copy_in_stream(self.memory.address + begin, source, end - begin, stream)

    def left(self, call: int) -> list[torch.Tensor]:
        """Copies of what is there now."""
        found = []
        for slot in self._slots[call]:
            found.append(torch.empty(slot.shape, dtype=slot.dtype, device=self._setting.device))
            if slot.bytes:
                copy(found[-1].data_ptr(), self.memory.address + slot.offset, slot.bytes)
        return found

    def close(self) -> None:
        self.memory.free()
