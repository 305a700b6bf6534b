"""The judge's own clock on a candidate: how long until the outputs of a burst of calls are in the judge's memory.

Times of single calls are taken by the worker, in a process that the candidate owns.
Here nothing is taken on its word: the clock starts when the inputs exist and stops
when the outputs are there, and both lie in memory of the judge. What a burst costs
besides its calls is found with the reference, in the same way, in the judge's process.
"""

from __future__ import annotations

import functools
import os
import random
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from harness.draw import fresh_seeds, tensors_of
from harness.judge.sides import Sides
from harness.outbox import Outbox, Slot, lay_out, shared_file
from harness.result import CandidateFailure, Status
from harness.rounds import in_order, play_burst, split
from harness.timing.burst import Gate

_TRIES = 3
_HOLD_S = 2.0  # a candidate that waits for the device in its call would wait for ever behind the gate
_TARGET_MS = {"cuda": 4.0, "cpu": 40.0}  # of a burst
_UNHELD_TARGET_MS = 20.0  # where the way to the worker and back is in it
_MOST_CALLS = 64
_COMPARED_CALLS = 8  # of a burst: who leaves out one in four is found out nine times in ten
_QUEUE = 600  # launches that fit the device's queue behind the gate, with a margin
_LEAST_LAUNCH_MS = 1e-3  # an empty kernel takes longer
_MEMORY_SHARE = 3  # a burst may take one part in so many of what is free
_HOST_BYTES = 6 << 30  # what it may take of a host's

_random = random.SystemRandom()


@dataclass(frozen=True)
class Reading:
    """``burst_ms`` is how long so many calls took, hot, and ``overhead_ms`` what a burst takes besides its calls.

    ``held`` says whether the gate kept launches out of it. ``reference_ms`` is a call of the reference
    meanwhile, in a burst too; None where that has launches in it.
    """

    burst_ms: float
    overhead_ms: float
    reference_ms: float | None
    calls: int
    held: bool

    @property
    def call_ms(self) -> float:
        """The judge's figure for one call."""
        return max(0.0, self.burst_ms - self.overhead_ms) / self.calls

    def least(self, other: Reading) -> Reading:
        """Of this and another reading of as many calls what took less: the work of others only ever adds."""
        overhead_ms = min(self.overhead_ms, other.overhead_ms)
        reference_ms = self.reference_ms and min(self.reference_ms, other.reference_ms)
        return replace(
            self, burst_ms=min(self.burst_ms, other.burst_ms), overhead_ms=overhead_ms, reference_ms=reference_ms
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "call_ms": round(self.call_ms, 6), "reference_ms": self.reference_ms and round(self.reference_ms, 6),
            "calls": self.calls, "held": self.held,
            "overhead_ms": round(self.overhead_ms, 6),
        }  # fmt: skip


class NotHeld(Exception):
    """The candidate's calls wait for the device, which waits for the gate."""


@dataclass(frozen=True)
class Burst:
    """The inputs of its calls as the judge keeps them, what they were drawn from, and the seeds that a call is told."""

    inputs: list[list]
    drawn: list[int]
    seeds: list[int]


class JudgeClock:
    """Of one evaluation; the worker inherits ``fds``."""

    def __init__(self, sides: Sides, timeout_s: float):
        self._sides, self._timeout_s = sides, timeout_s
        self._setting, self._reference = sides.reference.setting, sides.reference.model()
        self._ask, self._event_ms = sides.ask, sides.timer.own_overhead_ms
        self._cuda = self._setting.device.type == "cuda"
        self.fds = [Gate.file() if self._cuda else shared_file()]
        self._gate: Gate | None = None
        self._number = 0

    def close(self) -> None:
        if self._gate:
            self._gate.close()
        for fd in self.fds:
            os.close(fd)

    def calls(self, claimed_ms: float, launches: int, held: bool) -> int:
        """How many calls of so many launches a burst should have; 0 where not even one fits the memory."""
        wanted = calls_of_a_burst(self._setting.device.type, claimed_ms, launches, held)
        self._make_room(wanted)
        return min(wanted, self._fit())

    def leaves_room(self) -> bool:
        """Whether a burst of one call leaves as much memory as the judge ever took for the reference."""
        taken = torch.cuda.max_memory_allocated(self._setting.device) if self._cuda else 0
        self._sides.trim()
        return self._free_bytes() >= _MEMORY_SHARE * self._sides.traffic + taken

    def read(
        self,
        calls: int,
        held: bool,
        reference_launches: int,
        check: Callable[[Burst, int, list[torch.Tensor]], None],
    ) -> Reading:
        """The least of a few readings, with the gate if launches are to be ``held`` back.

        ``check`` gets calls that nobody could foresee of each burst that may count, and their outputs.
        Raises NotHeld where launches cannot be held back, and GateError where the driver has no stream-ordered waits.
        """
        kinds = self._sides.kinds
        # behind the gate what the queue does not hold would wait for ever, the reference as well
        with_reference = not self._cuda or held and calls * reference_launches <= _QUEUE
        aside = self._of_the_reference if with_reference else functools.partial(self._of_no_call, held=held)
        burst = self._draw(calls)
        besides = [aside(burst)]
        self._make_room(calls)
        contents = [*tensors_of(self._setting.draw_one(0)) * calls, *kinds * calls]
        slots = lay_out(contents)
        inputs, outputs = slots[: -calls * len(kinds)], list(split(slots[-calls * len(kinds) :], len(kinds)))
        memory = Outbox(self._setting.device, contents, file=None if self._cuda else self.fds[0])
        del contents
        if self._cuda and not memory.on_device:
            memory.close()
            raise torch.OutOfMemoryError("the device has no memory left for a burst")
        try:
            fill = functools.partial(_fill, memory, inputs)
            self._ask(op="open_burst", handle=memory.handle, calls=calls, outputs=_described(outputs[0]))
            self._once(burst, fill, held)  # fills the allocator's caches
            readings = []
            for _ in range(_TRIES):
                burst = self._draw(calls)
                seconds, answer = self._once(burst, fill, held)
                readings.append(seconds * 1e3)
                if min(readings) < readings[-1]:
                    continue
                for call in _random.sample(range(calls), min(calls, _COMPARED_CALLS)):
                    orders = _orders(answer, call, outputs[call])
                    read = [in_order(memory.read(slot), order) for slot, order in zip(outputs[call], orders)]
                    check(burst, call, read)
            self._ask(op="close_burst")
        finally:
            memory.close()
        if not self._cuda:
            besides.append(aside(burst))
        overhead_ms, reference_ms = map(min, zip(*besides))
        return Reading(min(readings), overhead_ms, reference_ms, calls, held)

    def _make_room(self, calls: int) -> None:
        """Of what allocators keep, where it is needed: to free memory and take it again holds up the whole driver."""
        if self._fit() < calls:
            self._sides.trim()

    def _fit(self) -> int:
        """So many calls a burst may have by the memory that is free now."""
        return self._free_bytes() // _MEMORY_SHARE // max(self._sides.traffic, 1)

    def _free_bytes(self) -> int:
        return torch.cuda.mem_get_info(self._setting.device)[0] if self._cuda else _HOST_BYTES

    def _once(self, burst: Burst, fill: Callable[[Burst], None], held: bool) -> tuple[float, dict[str, Any]]:
        """Seconds of one burst of the candidate, and the worker's answer."""
        self._ask(op="prepare_burst")
        if not self._cuda:
            fill(burst)
            begin = time.perf_counter()
            answer = self._ask(op="burst", seeds=burst.seeds, number=0)
            return time.perf_counter() - begin, answer
        self._number += 1
        number, gate = self._number, self._gate
        if not held:
            fill(burst)
            gate.open(number)
            begin = time.perf_counter()
            answer = self._ask(op="burst", seeds=burst.seeds, number=number)
            return self._await_mark(number) - begin, answer
        late = threading.Timer(_HOLD_S, gate.open, [number])
        late.start()
        answer = self._ask(op="burst", seeds=burst.seeds, number=number)
        in_time = late.is_alive()
        late.cancel()
        if not in_time:
            self._await_mark(number)
            raise NotHeld
        fill(burst)
        begin = time.perf_counter()
        gate.open(number)
        return self._await_mark(number) - begin, answer

    def _await_mark(self, number: int) -> float:
        try:
            return self._gate.await_mark(number, self._timeout_s)
        except TimeoutError:
            raise CandidateFailure(
                Status.TIMEOUT,
                f"calls in a row were not done within {self._timeout_s:g} s: it hangs, or needs a larger time limit",
            ) from None

    def _of_the_reference(self, burst: Burst) -> tuple[float, float]:
        """In a burst of the reference in this process: what is not its calls, and what one of them takes, in ms."""
        outputs = [self._outputs_of_a_call() for _ in burst.seeds]
        self._sides.rest()
        self._make_gate()
        besides, calls = [], []
        for _ in range(_TRIES):
            timed = _Timed(self._reference, self._cuda)
            burst_ms = self._own_burst_ms(timed, burst, outputs, held=True)
            calls.append(timed.total_ms() - self._event_ms * len(burst.seeds))
            besides.append(burst_ms - calls[-1])
        least = statistics.median(besides) if self._cuda else min(besides)
        return max(0.0, least), statistics.median(calls) / len(burst.seeds)

    def _of_no_call(self, burst: Burst, held: bool) -> tuple[float, None]:
        """What a burst takes in this process whose outputs are there already."""
        there, outputs = self._outputs_of_a_call(), [self._outputs_of_a_call() for _ in burst.seeds]
        self._make_gate()
        took = [self._own_burst_ms(lambda *inputs: there, burst, outputs, held) for _ in range(_TRIES)]
        return statistics.median(took), None

    def _own_burst_ms(self, model: Callable, burst: Burst, outputs: list[list[torch.Tensor]], held: bool) -> float:
        """What a burst takes in this process; on a GPU, with its launches ``held`` back, from the gate's opening on."""
        self._number += 1
        if self._cuda and held:
            self._gate.hold(self._number)
        begin = time.perf_counter()
        play_burst(model, self._setting, burst.inputs, outputs, burst.seeds)
        end = time.perf_counter()
        if self._cuda:
            self._gate.mark(self._number)
            if held:
                begin = time.perf_counter()
                self._gate.open(self._number)
            end = self._gate.await_mark(self._number, self._timeout_s)
            torch.cuda.synchronize()
        return (end - begin) * 1e3

    def _outputs_of_a_call(self) -> list[torch.Tensor]:
        # not empty_like, which traces a tensor without data, and imports SymPy for it
        return [torch.empty(t.shape, dtype=t.dtype, device=self._setting.device) for t in self._sides.kinds]

    def _make_gate(self) -> None:
        """The judge's end of it, on a GPU."""
        if self._cuda and self._gate is None:
            self._gate = Gate(self.fds[0])

    def _draw(self, calls: int) -> Burst:
        drawn = fresh_seeds(calls)
        return Burst(self._setting.draw(drawn), drawn, fresh_seeds(calls))


def calls_of_a_burst(device_type: str, claimed_ms: float, launches: int, held: bool) -> int:
    """As many calls as make it long; behind the gate no more than the queue holds.

    Time and launches are the candidate's word. With few calls much is allowed to each, so more
    launches than fit the time are not believed.
    """
    target_ms = _TARGET_MS[device_type] if held else _UNHELD_TARGET_MS
    wanted = min(int(target_ms / max(claimed_ms, 1e-3)) + 1, _MOST_CALLS)
    if held:
        likely = max(1.0, min(launches, claimed_ms / _LEAST_LAUNCH_MS))
        wanted = min(wanted, max(1, int(_QUEUE / likely)))
    return wanted


class _Timed:
    """A model that notes how long its calls take."""

    def __init__(self, model: Callable, cuda: bool):
        self._model, self._cuda = model, cuda
        self._spans: list[tuple] = []

    def __call__(self, *inputs):
        begin = self._now()
        output = self._model(*inputs)
        self._spans.append((begin, self._now()))
        return output

    def _now(self):
        if not self._cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def total_ms(self) -> float:
        if self._cuda:
            return sum(begin.elapsed_time(end) for begin, end in self._spans)
        return sum(end - begin for begin, end in self._spans) * 1e3


def _fill(memory: Outbox, slots: list[Slot], burst: Burst) -> None:
    for slot, tensor in zip(slots, [tensor for arguments in burst.inputs for tensor in tensors_of(arguments)]):
        memory.view(slot).copy_(tensor)
    if memory.device.type == "cuda":
        torch.cuda.synchronize()


def _orders(answer: dict[str, Any], call: int, slots: list[Slot]) -> list[list[int]]:
    """In what order the dimensions of one call's outputs lie in memory; raises CandidateFailure where that is none."""
    try:
        orders = answer["orders"][call]
        whole = all(type(dimension) is int for order in orders for dimension in order)
        if whole and [sorted(order) for order in orders] == [list(range(len(slot.shape))) for slot in slots]:
            return orders
    except (KeyError, IndexError, TypeError):
        pass
    raise CandidateFailure(Status.CRASHED, "the worker does not say how the outputs of a call in a row lie in memory")


def _described(slots: list[Slot]) -> list[dict[str, Any]]:
    return [{"shape": slot.shape, "dtype": str(slot.dtype).removeprefix("torch.")} for slot in slots]
