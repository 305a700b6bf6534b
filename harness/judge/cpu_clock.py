"""The judge's clock on a CPU: outputs are read where the calls left them, when nothing of the worker runs any more.

So a burst holds the calls alone, and all that it takes is theirs.
"""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from harness.draw import fresh_seeds, tensors_of
from harness.judge.clock import MOST_S, Burst, Check, JudgeClock, NotRead, Reading, order_in_memory
from harness.judge.sides import Sides
from harness.outbox import Outbox, Slot, lay_out, shared_file
from harness.result import CandidateFailure, Status
from harness.rounds import outputs_of
from harness.strides import in_order

_TRIES, _PATIENCE_S = 18, 5.0  # others may take the cores for a second or two
_LEAST_TRIES = 3
_REFERENCE_MS = 40.0
_HOST_BYTES = 6 << 30  # of which a burst may take a part


class CpuClock(JudgeClock):
    def __init__(self, sides: Sides, timeout_s: float):
        super().__init__(sides, timeout_s, shared_file())

    def read(
        self, calls: int, held: bool, reference_launches: int, check: Check, agrees: Callable[[Reading], bool]
    ) -> Reading:
        if self._sides.worker.memory is None:
            raise NotRead("the system does not let a process see its own memory")
        contents = tensors_of(self._setting.draw_one(0)) * calls
        memory = Outbox(self._setting.device, contents, file=self.fd)
        filled = functools.partial(_fill, memory, lay_out(contents))
        del contents
        self._ask(op="open_burst", handle=memory.handle, calls=calls)
        self._once(self._draw(calls), filled)  # fills caches, the candidate's own too: who knows inputs by address errs
        least: Reading | None = None
        for _ in tries():
            burst = self._draw(calls)
            burst_ms, answer = self._once(burst, filled)
            reading = Reading(burst_ms, 0.0, None, calls, held)
            if least is None or burst_ms < least.burst_ms:
                self._compare(burst, check, functools.partial(self._left, answer))
            least = least.least(reading) if least else reading
            if not agrees(least):
                least = least.least(replace(reading, reference_ms=self._reference_ms(burst)))
            if agrees(least):
                break
        self._ask(op="close_burst")
        memory.close()
        return least

    def _once(self, burst: Burst, filled: Callable[[Burst], None]) -> tuple[float, dict[str, Any]]:
        """What one burst of the candidate takes until all of it is at rest, and the worker's answer."""
        self._ask(op="prepare_burst")
        self._sides.rest()
        filled(burst)
        begin = time.perf_counter()
        self._sides.worker.check_rest()
        answer = self._ask(op="burst", seeds=burst.seeds)
        return (self._sides.rest() - begin) * 1e3, answer

    def _left(self, answer: dict[str, Any], call: int) -> list[torch.Tensor]:
        """The outputs of one call, from the worker's memory."""
        outputs = []
        for output, kind in enumerate(self._sides.kinds):
            order = order_in_memory(answer, call, output, kind.dim())
            size = math.prod(kind.shape) * kind.dtype.itemsize
            try:
                data = self._sides.worker.memory.read(answer["addresses"][call][output], size)
            except (KeyError, IndexError, TypeError, OSError, OverflowError):
                raise CandidateFailure(
                    Status.CRASHED, "the outputs of a call in a row are not in memory where the worker says they are"
                ) from None
            flat = torch.frombuffer(data, dtype=kind.dtype) if size else torch.empty(0, dtype=kind.dtype)
            outputs.append(in_order(flat.view(kind.shape), order))
        return outputs

    def _reference_ms(self, burst: Burst) -> float:
        """What a call of the reference takes in a burst."""
        begin, done = time.perf_counter(), 0
        for arguments, seed in zip(burst.inputs, burst.seeds):
            outputs_of(self._reference, self._setting, arguments, seed)
            done += 1
            took_ms = (time.perf_counter() - begin) * 1e3
            if took_ms > _REFERENCE_MS:
                break
        return took_ms / done

    def _draw(self, calls: int) -> Burst:
        drawn = fresh_seeds(calls)
        return Burst(self._setting.draw(drawn), drawn, fresh_seeds(calls))

    def _free_bytes(self) -> int:
        return _HOST_BYTES


def _fill(memory: Outbox, slots: list[Slot], burst: Burst) -> None:
    """Have the inputs of a burst exist in memory that the worker sees."""
    for slot, tensor in zip(slots, [tensor for arguments in burst.inputs for tensor in tensors_of(arguments)]):
        memory.view(slot).copy_(tensor)


def tries() -> Iterator[None]:
    """Enough of them, and for long enough; fewer where each takes long, which who forges a clock can make it do."""
    begin = time.perf_counter()
    for done in itertools.count():
        took_s = time.perf_counter() - begin
        if done >= _TRIES and took_s > _PATIENCE_S or done >= _LEAST_TRIES and took_s > MOST_S:
            return
        yield
