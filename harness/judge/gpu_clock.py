"""The judge's clock on a GPU: calls wait behind a gate, and outputs are read where the calls left them.

A device cannot be stopped like a process: what a candidate has enqueued beside its own mark goes on, and
a kernel that runs already sees inputs as they come. So the clock starts before there is a first input, stops
when pieces of the outputs that nobody can foresee have been read, and those must be the same later.
What filling and reading take by themselves is taken off, as found when there was no candidate.
"""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections.abc import Callable, Iterator

import torch

from harness.cuda_driver import DriverError
from harness.device_memory import DeviceMemory
from harness.draw import fresh_seeds, tensors_of
from harness.integrity import forged_clock
from harness.judge.calibration import Calibration, calibrate
from harness.judge.clock import MOST_S, QUEUE, Burst, Check, JudgeClock, NotHeld, NotRead, Reading
from harness.judge.left_outputs import Allocations, LeftOutputs
from harness.judge.pieces import PIECES, Pieces
from harness.judge.sides import Sides
from harness.outbox import Slot, lay_out
from harness.result import CandidateFailure, Status
from harness.rounds import Setting, outputs_of
from harness.timing.burst import Gate, GateError

_READINGS = 6  # others may have come to the judge's cores for a second
_TRIES = 3
_HOLD_S = 1.0  # a candidate that waits for the device in its call would wait for ever behind the gate
_FILL_SHARE, _FILL_MS = 1.02, 0.1  # what filling may take; an H100 takes 1.01 and 0.06 beside a candidate that waits


class GpuClock(JudgeClock):
    """To be made before there is a candidate."""

    def __init__(self, sides: Sides, timeout_s: float):
        super().__init__(sides, timeout_s, Gate.file())
        self._event_ms = sides.timer.own_overhead_ms
        self._calibration = calibrate(self._setting.device)
        self._pieces = Pieces()
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
        begin = time.perf_counter()
        for _ in range(_READINGS):
            try:
                reading = self._read(calls, held, reference_launches, check)
            except GateError as error:
                raise NotRead(str(error)) from error
            least = least.least(reading) if least else reading
            if agrees(least) or time.perf_counter() - begin > MOST_S:
                break
        return least

    def _read(self, calls: int, held: bool, reference_launches: int, check: Check) -> Reading:
        """The least of a few bursts."""
        self._gate = self._gate or Gate(self.fd)
        self._make_room(calls)
        with contextlib.closing(_Inputs(self._setting, calls, self._calibration)) as inputs:
            burst = inputs.draw()
            # behind the gate what the queue does not hold would wait for ever, the reference as well
            with_reference = held and calls * reference_launches <= QUEUE
            reference_ms = self._reference_ms(burst) if with_reference else None
            self._ask(op="open_burst", handle={"ipc": inputs.handle}, calls=calls)
            try:
                burst_ms = self._least_ms(inputs, burst, held, check)
            except NotHeld:
                self._ask(op="close_burst")
                raise
            self._ask(op="close_burst")
        overhead_ms = self._calibration.pieces_ms + (0.0 if held else calls * self._calibration.empty_call_ms)
        return Reading(burst_ms, overhead_ms, reference_ms, calls, held)

    def _least_ms(self, inputs: _Inputs, first: Burst, held: bool, check: Check) -> float:
        with contextlib.closing(Allocations({inputs.handle: inputs.memory})) as allocations:
            self._once(inputs, first, allocations, held=False)  # fills the allocator's caches
            readings = []
            for _ in range(_TRIES):
                burst = inputs.draw()
                burst_ms, outputs = self._once(inputs, burst, allocations, held)
                readings.append(burst_ms)
                if min(readings) == burst_ms:
                    self._compare(burst, check, outputs.of_call)
                    self._must_have_been_there()
            return min(readings)

    def _free_bytes(self) -> int:
        return torch.cuda.mem_get_info(self._setting.device)[0]

    def _taken_bytes(self) -> int:
        return torch.cuda.max_memory_allocated(self._setting.device)

    def _once(self, inputs: _Inputs, burst: Burst, allocations: Allocations, held: bool) -> tuple[float, LeftOutputs]:
        """What one burst of the candidate takes until pieces of what it left have been read, and what it left."""
        self._sides.timer.settle()
        self._ask(op="prepare_burst")
        self._number += 1
        if held:  # all that can be done before the clock starts is
            with self._opened_late() as is_held:
                outputs = self._burst(burst, allocations)
                if not is_held():
                    self._await_mark()
                    raise NotHeld
            self._pieces.choose(outputs.places)
        slow_ms = inputs.fill()
        begin = time.perf_counter()
        self._gate.open(self._number)
        if not held:
            outputs = self._burst(burst, allocations)
            self._pieces.choose(outputs.places)
        self._await_mark()
        self._pieces.take()
        return (time.perf_counter() - begin) * 1e3 + slow_ms, outputs

    def _burst(self, burst: Burst, allocations: Allocations) -> LeftOutputs:
        answer = self._ask(op="burst", seeds=burst.seeds, number=self._number)
        try:
            return LeftOutputs(answer, len(burst.seeds), self._sides.kinds, allocations)
        except CandidateFailure:
            self._gate.open(self._number)
            raise

    @contextlib.contextmanager
    def _opened_late(self) -> Iterator[Callable[[], bool]]:
        """Open the gate if what is done meanwhile takes too long: it would wait for ever. Gives whether it did not."""
        late = threading.Timer(_HOLD_S, self._gate.open, [self._number])
        late.start()
        try:
            yield late.is_alive
        finally:
            late.cancel()

    def _await_mark(self) -> None:
        try:
            self._gate.await_mark(self._number, self._timeout_s)
        except TimeoutError:
            raise CandidateFailure(
                Status.TIMEOUT,
                f"calls in a row were not done within {self._timeout_s:g} s: it hangs, or needs a larger time limit",
            ) from None

    def _must_have_been_there(self) -> None:
        if changed := self._pieces.changed():
            raise CandidateFailure(
                Status.REJECTED,
                f"of {PIECES} pieces of the outputs of calls in a row, {changed} changed after its process had said "
                "that the calls were done",
                rule=forged_clock.RULE,
            )

    def _reference_ms(self, burst: Burst) -> float:
        """What a call of the reference takes in a burst of this process."""
        self._play_reference(self._reference, burst)  # fills the allocator's caches
        torch.cuda.synchronize()
        took = []
        for _ in range(_TRIES):
            timed = _Timed(self._reference)
            self._sides.timer.settle()
            self._number += 1
            self._gate.hold(self._number)
            with self._opened_late():
                self._play_reference(timed, burst)
            self._gate.open(self._number)
            torch.cuda.synchronize()
            took.append(timed.total_ms() / len(burst.seeds) - self._event_ms)
        return statistics.median(took)

    def _play_reference(self, model: Callable, burst: Burst) -> None:
        for arguments, seed in zip(burst.inputs, burst.seeds):
            outputs_of(model, self._setting, arguments, seed)


class _Inputs:
    """Of a burst's calls: drawn in the judge's own memory, and copied as one into what the worker sees."""

    def __init__(self, setting: Setting, calls: int, calibration: Calibration):
        self._setting, self._calls = setting, calls
        tensors = tensors_of(setting.draw_one(0)) * calls
        self._slots = lay_out(tensors)
        self._bytes = max((slot.offset + slot.bytes for slot in self._slots), default=1)
        self._usual_ms = _FILL_SHARE * calibration.copy_ms(self._bytes) + _FILL_MS
        self._drawn = torch.empty(self._bytes, dtype=torch.uint8, device=setting.device)
        try:
            self.memory = DeviceMemory.allocate(self._bytes)
        except DriverError as error:
            raise torch.OutOfMemoryError("the device has no memory left for a burst") from error
        try:
            self.handle = self.memory.export().hex()
        except DriverError as error:
            self.memory.free()
            raise NotRead(str(error)) from error

    def draw(self) -> Burst:
        drawn, slots = fresh_seeds(self._calls), iter(self._slots)
        inputs = [
            [self._kept(value, next(slots)) if isinstance(value, torch.Tensor) else value for value in arguments]
            for arguments in map(self._setting.draw_one, drawn)
        ]
        torch.cuda.synchronize()
        return Burst(inputs, drawn, fresh_seeds(self._calls))

    def _kept(self, tensor: torch.Tensor, slot: Slot) -> torch.Tensor:
        memory = self._drawn[slot.offset : slot.offset + slot.bytes]
        return memory.view(slot.dtype).view(slot.shape).copy_(tensor)

    def fill(self) -> float:
        """Have the inputs exist where the worker sees them; by how many ms that took longer than it should."""
        begin = time.perf_counter()
        self.memory.copy_in(self._drawn.data_ptr(), 0, self._bytes)
        return max(0.0, (time.perf_counter() - begin) * 1e3 - self._usual_ms)

    def close(self) -> None:
        self.memory.free()


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
