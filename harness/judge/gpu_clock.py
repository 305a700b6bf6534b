"""The judge's clock on a GPU: calls wait behind a gate, and outputs are copied into the judge's memory.

What a burst costs besides its calls, those copies above all, is found with the reference, in the
same way, in the judge's process.
"""

from __future__ import annotations

import functools
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import torch

from harness.draw import tensors_of
from harness.judge.clock import QUEUE, Burst, Check, JudgeClock, NotHeld, NotRead, Reading, fill, order_in_memory
from harness.judge.sides import Sides
from harness.outbox import Outbox, Slot, lay_out
from harness.result import CandidateFailure, Status
from harness.rounds import in_order, play_burst, split
from harness.timing.burst import Gate, GateError

_READINGS = 6  # others may have come to the judge's cores for a second
_TRIES = 3
_HOLD_S = 2.0  # a candidate that waits for the device in its call would wait for ever behind the gate


class GpuClock(JudgeClock):
    def __init__(self, sides: Sides, timeout_s: float):
        super().__init__(sides, timeout_s, Gate.file())
        self._event_ms = sides.timer.own_overhead_ms
        self._gate: Gate | None = None
        self._number = 0

    def close(self) -> None:
        if self._gate:
            self._gate.close()
        super().close()

    def read(
        self, calls: int, held: bool, reference_launches: int, check: Check, agrees: Callable[[Reading], bool]
    ) -> Reading:
        least: Reading | None = None
        for _ in range(_READINGS):
            try:
                reading = self._read(calls, held, reference_launches, check)
            except GateError as error:
                raise NotRead(str(error)) from error
            least = least.least(reading) if least else reading
            if agrees(least):
                break
        return least

    def _read(self, calls: int, held: bool, reference_launches: int, check: Check) -> Reading:
        """The least of a few bursts."""
        kinds, device = self._sides.kinds, self._setting.device
        # behind the gate what the queue does not hold would wait for ever, the reference as well
        with_reference = held and calls * reference_launches <= QUEUE
        burst = self._draw(calls)
        overhead_ms, reference_ms = self._of_the_reference(burst) if with_reference else self._of_no_call(burst, held)
        self._make_room(calls)
        contents = [*tensors_of(self._setting.draw_one(0)) * calls, *kinds * calls]
        slots = lay_out(contents)
        inputs, outputs = slots[: -calls * len(kinds)], list(split(slots[-calls * len(kinds) :], len(kinds)))
        memory = Outbox(device, contents)
        del contents
        if not memory.on_device:
            memory.close()
            raise torch.OutOfMemoryError("the device has no memory left for a burst")
        try:
            filled = functools.partial(_fill, memory, inputs)
            described = [{"shape": s.shape, "dtype": str(s.dtype).removeprefix("torch.")} for s in outputs[0]]
            self._ask(op="open_burst", handle=memory.handle, calls=calls, outputs=described)
            self._once(burst, filled, held)  # fills the allocator's caches
            readings = []
            for _ in range(_TRIES):
                burst = self._draw(calls)
                seconds, answer = self._once(burst, filled, held)
                readings.append(seconds * 1e3)
                if min(readings) == readings[-1]:
                    self._compare(burst, check, functools.partial(_copied, memory, answer, outputs))
            self._ask(op="close_burst")
        finally:
            memory.close()
        return Reading(min(readings), overhead_ms, reference_ms, calls, held)

    def _free_bytes(self) -> int:
        return torch.cuda.mem_get_info(self._setting.device)[0]

    def _taken_bytes(self) -> int:
        return torch.cuda.max_memory_allocated(self._setting.device)

    def _once(self, burst: Burst, filled: Callable[[Burst], None], held: bool) -> tuple[float, dict[str, Any]]:
        """Seconds of one burst of the candidate, and the worker's answer."""
        self._ask(op="prepare_burst")
        self._number += 1
        number, gate = self._number, self._gate
        if not held:
            filled(burst)
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
        filled(burst)
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
        self._make_gate()
        besides, calls = [], []
        for _ in range(_TRIES):
            timed = _Timed(self._reference)
            burst_ms = self._own_burst_ms(timed, burst, outputs, held=True)
            calls.append(timed.total_ms() - self._event_ms * len(burst.seeds))
            besides.append(burst_ms - calls[-1])
        return max(0.0, statistics.median(besides)), statistics.median(calls) / len(burst.seeds)

    def _of_no_call(self, burst: Burst, held: bool) -> tuple[float, None]:
        """What a burst takes in this process whose outputs are there already."""
        there, outputs = self._outputs_of_a_call(), [self._outputs_of_a_call() for _ in burst.seeds]
        self._make_gate()
        took = [self._own_burst_ms(lambda *inputs: there, burst, outputs, held) for _ in range(_TRIES)]
        return statistics.median(took), None

    def _own_burst_ms(self, model: Callable, burst: Burst, outputs: list[list[torch.Tensor]], held: bool) -> float:
        """What a burst takes in this process; with its launches ``held`` back, from the gate's opening on."""
        self._number += 1
        if held:
            self._gate.hold(self._number)
        begin = time.perf_counter()
        play_burst(model, self._setting, burst.inputs, outputs, burst.seeds)
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
        """The judge's end of it."""
        if self._gate is None:
            self._gate = Gate(self.fd)


class _Timed:
    """A model whose calls lie between events."""

    def __init__(self, model: Callable):
        self._model = model
        self._spans: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    def __call__(self, *inputs):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        output = self._model(*inputs)
        end.record()
        self._spans.append((begin, end))
        return output

    def total_ms(self) -> float:
        return sum(begin.elapsed_time(end) for begin, end in self._spans)


def _fill(memory: Outbox, slots: list[Slot], burst: Burst) -> None:
    fill(memory, slots, burst)
    torch.cuda.synchronize()


def _copied(memory: Outbox, answer: dict[str, Any], slots: list[list[Slot]], call: int) -> list[torch.Tensor]:
    """The outputs of one call, as they lay in the judge's memory when its clock stopped."""
    orders = [order_in_memory(answer, call, output, len(slot.shape)) for output, slot in enumerate(slots[call])]
    return [in_order(memory.read(slot), order) for slot, order in zip(slots[call], orders)]
