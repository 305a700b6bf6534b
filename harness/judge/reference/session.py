"""The reference in the judge's process: its timed rounds and single calls, with room in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from harness.judge.conditions import Conditions
from harness.judge.reference.model import PUBLISHED, InputCase
from harness.judge.reference.prepare import Prepared, call_reference, with_room
from harness.memory.placement import Placement
from harness.process.deadline import within
from harness.timing import Round, timer_for
from harness.timing.rounds import count_launches, play

_CACHE_MEMORY_SHARE = 4  # the judge's allocator may keep one part in so many of the device's memory between rounds


class ReferenceSession:
    """The judge's side alone: before there is a candidate, and after it has ended."""

    def __init__(self, prepared: Prepared, conditions: Conditions):
        self.prepared, self.conditions = prepared, conditions
        self.reference, self.timer = prepared.reference, timer_for(conditions.device)
        self._placement = Placement(conditions.device) if conditions.device.type == "cuda" else None

    def call_reference(self, case: InputCase, seed: int) -> Round:
        """Call the reference once, untimed."""
        return self._of_reference(lambda: self.reference.call(case, seed), case)

    def time_reference(self, seeds: list[int], held: bool = True) -> Round:
        """Time the eager reference on the inputs that are timed."""
        self.timer.wait_for_bandwidth()
        case = self.reference.setting.timed
        return self._of_reference(lambda: self.reference.play(seeds, self.timer, held), case)

    def time_model(self, model: Callable, seeds: list[int], held: bool = True) -> Round:
        """Time another form of the reference; outputs are not kept."""
        self.wait_for_quiet()
        self.timer.wait_for_bandwidth()
        with within("a baseline", self.conditions.build_timeout_s + self.conditions.reference_s):  # it may compile
            setting, timer = self.reference.setting, self.timer
            return self.with_room(lambda: play(model, setting, seeds, timer, held)).release()

    def count_launches(self, model: Callable) -> int:
        """Return how many kernels, copies and fills one call of a form of the reference starts on the device."""
        return self.with_room(lambda: count_launches(model, self.reference.setting, self.timer))

    def with_room(self, action: Callable[[], Any]) -> Any:
        """Return ``action()``; where the device's memory is full, once more after caches were released."""
        return with_room(action)

    def wait_for_quiet(self) -> None:
        """Wait until nothing of a candidate runs that could disturb a time; without a candidate there is nothing."""

    def release_caches(self) -> None:
        """Give back what allocators keep."""
        if self._placement:
            self._placement.give_back()

    def reshuffle(self) -> None:
        """Reshuffle memory: what is allocated from now on lies at other addresses."""
        if self._placement:
            self._placement.change()

    def _of_reference(self, action: Callable[[], Any], case: InputCase) -> Any:
        self.wait_for_quiet()
        drawn = "" if case == PUBLISHED else str(case)
        workload = self.reference.setting.workload
        played = call_reference(workload, self.conditions, action, drawn, self.with_room)
        self.bound_cache()
        return played

    def bound_cache(self) -> None:
        """Leave the device's memory to the worker where the judge's allocator keeps much of it."""
        device = self.conditions.device
        if device.type == "cuda":
            total = torch.cuda.get_device_properties(device).total_memory
            if torch.cuda.memory_reserved(device) > total // _CACHE_MEMORY_SHARE:
                torch.cuda.empty_cache()
