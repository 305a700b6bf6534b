"""The judge's clock on a GPU: calls wait behind gates, which the judge's own stream opens one after the other.

A device cannot be stopped like a process: work that a candidate has enqueued beside its mark goes on, and a running
kernel sees inputs as they come. So the clock starts before the first input exists. Each next input exists only after
random samples of the previous outputs were read, and those samples must be the same later. The overhead of gates,
copies and samples is measured before there is a candidate, with a worker that never holds one, and subtracted.
"""

from __future__ import annotations

import contextlib
import functools
import math
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from harness.integrity import forged_clock
from harness.judge.cross_check.base import (
    CALLS_OF_A_MEAN,
    MOST_S,
    QUEUE,
    Called,
    Check,
    Claim,
    Fork,
    NotHeld,
    NotRead,
    Reading,
    Rehearsal,
    WallClockCheck,
    input_cases,
    longest,
    mean_of_undisturbed,
)
from harness.judge.cross_check.burst_inputs import Burst, BurstInputs
from harness.judge.cross_check.gate_chain import GateChain
from harness.judge.cross_check.output_samples import OutputSamples
from harness.judge.cross_check.remote_outputs import Allocations, RemoteOutputs
from harness.judge.reference.prepare import Facts
from harness.judge.reference.session import ReferenceSession
from harness.memory.cuda_driver import DriverError
from harness.problem.inputs import fresh_seeds
from harness.process.worker_process import Worker
from harness.result import CandidateFailure, Status
from harness.timing.gate import Gate, GateError
from harness.timing.rounds import InputCase, outputs_of

_READINGS = 6  # others may have come to the judge's cores for a second
_TRIES = 2  # bursts of each input case in a reading, of which the least counts where each has calls enough for a mean
_HOLD_S = 1.0  # seconds: a candidate that waits for the device in its call would wait for ever behind the gate
_REHEARSALS = 3  # bursts, of which the least counts
# Calls of a rehearsal: with more of them each has fewer pieces and its copies follow work of another process. On an
# H100 a burst of 26 calls with 0.5 GB of input each took 0.05 ms a call more than one call alone let expect.
_REHEARSED_CALLS = (1, 3, 10, 32, 100)
_REHEARSED_SHARE = 1.02  # of what a rehearsal took, what the same may take beside a candidate
_EMPTY_KERNEL_MS = 1e-3  # at least; it is in a rehearsal, and a candidate has its own

Send = Callable[[list[int], int, int], list[list[tuple[int, int]]]]  # seeds, first, number -> places of outputs


@dataclass(frozen=True)
class Overhead:
    """ms of a call besides its work, by the calls of a burst: behind the gate, and with a request a call."""

    held: dict[int, float]
    unheld: dict[int, float]


_overheads: dict[Facts, Overhead] = {}  # of the workloads that this process has judged


class GpuRehearsal(Rehearsal):
    """Gates, marks and samples of bursts, and what they take by themselves.

    That is measured with the first candidate of a workload, before its worker starts. A candidate has no part in it,
    so it holds for the next ones.
    """

    def __init__(self, judge: ReferenceSession, timeout_s: float, fork: Fork):
        super().__init__(judge, timeout_s, Gate.file())
        self.event_ms = judge.timer.own_overhead_ms
        self.samples, self.missing = OutputSamples(), ""
        self.gate: Gate | None = None
        self._chain: GateChain | None = None
        self._number = 0
        try:
            self.gate = Gate(self.fd)
            self._chain = GateChain(self.gate, self.samples)
            if self.facts not in _overheads:
                with contextlib.closing(fork([self.fd])) as idle:
                    _overheads[self.facts] = self._rehearse(idle)
        except (GateError, DriverError, NotRead, CandidateFailure, torch.OutOfMemoryError) as error:
            self.missing = str(error)
        except NotHeld:
            self.missing = f"a worker without a candidate was not ready within {_HOLD_S:g} s"

    def close(self) -> None:
        for gate in filter(None, (self._chain, self.gate)):
            gate.close()
        super().close()

    def overhead_ms(self, calls: int, held: bool) -> float:
        """Return ms of overhead of each call in a burst, interpolated between the rehearsed numbers of calls."""
        overhead = _overheads[self.facts]
        rehearsed = overhead.held if held else overhead.unheld
        return float(np.interp(calls, [*rehearsed], [*rehearsed.values()]))

    def held_ms(self, inputs: BurstInputs, seeds: list[int], send: Send) -> float:
        """Return ms of a burst; all that can be done before the clock starts is done then, so no launch is in it."""
        calls, number = len(seeds), self.next_number(len(seeds))
        self.samples.begin(calls)
        with self.opened_late(number + calls - 1) as is_held:
            places = send(seeds, 0, number)
            if not is_held():
                self._await_mark(number + calls - 1)
                raise NotHeld
        for outputs in places:
            self.samples.choose(outputs)
        self._chain.enqueue(inputs, number, calls)
        with _hanging(self.timeout_s):
            return self._chain.run(number, calls, self.timeout_s)

    def unheld_ms(self, inputs: BurstInputs, seeds: list[int], send: Send) -> float:
        """Return ms of one request a call, with its launches and the way to the worker and back."""
        number, stream, took_ms = self.next_number(len(seeds)), self.samples.stream, 0.0
        self.samples.begin(len(seeds))
        for call, seed in enumerate(seeds):
            begin = time.perf_counter()
            inputs.copy(call, stream.cuda_stream)
            stream.synchronize()
            self.gate.open(number + call)
            (outputs,) = send([seed], call, number + call)
            self._await_mark(number + call)
            self.samples.choose(outputs)
            self.samples.take(call)
            stream.synchronize()
            took_ms += (time.perf_counter() - begin) * 1e3
        return took_ms

    def next_number(self, calls: int) -> int:
        """Return the number of the first of so many calls that nobody has waited for yet."""
        first = self._number + 1
        self._number += calls
        return first

    @contextlib.contextmanager
    def opened_late(self, last: int) -> Iterator[Callable[[], bool]]:
        """Open all gates if what is done meanwhile takes too long or fails. Gives whether it was in time."""
        late = threading.Timer(_HOLD_S, self.gate.open, [last])
        late.start()
        try:
            yield late.is_alive
        except BaseException:
            self.gate.open(last)
            raise
        finally:
            late.cancel()

    def free_bytes(self) -> int:
        return torch.cuda.mem_get_info(self.setting.device)[0]

    def _rehearse(self, idle: Worker) -> Overhead:
        """Learn what a call takes without a candidate, from bursts of a worker that has none."""
        fit, held, unheld = max(1, self.fit()), {}, {}
        for calls in (count for count in _REHEARSED_CALLS if count <= fit):
            with contextlib.closing(BurstInputs(self.setting, calls)) as inputs:
                inputs.draw(self.setting.timed)
                send = functools.partial(self._send_idle, idle, inputs)
                if calls == 1:
                    self.unheld_ms(inputs, fresh_seeds(1), send)  # makes the device's context
                unheld[calls] = self._least_ms(self.unheld_ms, inputs, calls, send)
                held[calls] = self._least_ms(self.held_ms, inputs, calls, send)
        return Overhead(held, unheld)

    def _least_ms(self, burst_ms: Callable[[BurstInputs, list[int], Send], float], inputs, calls: int, send) -> float:
        """Return the least ms of a call in some rehearsals; a copy that the driver slows down would excuse work."""
        took_ms = math.inf
        for _ in range(_REHEARSALS):
            self.timer.wait_for_bandwidth()
            took_ms = min(took_ms, burst_ms(inputs, fresh_seeds(calls), send))
        return max(0.0, _REHEARSED_SHARE * took_ms / calls - _EMPTY_KERNEL_MS)

    def _send_idle(self, idle: Worker, inputs: BurstInputs, seeds: list[int], first: int, number: int) -> list:
        """Have the worker without a candidate enqueue its part of a burst."""
        self.ask_idle(idle, op="rehearse_on_gpu", seeds=seeds, number=number)
        return [[(inputs.memory.address, inputs.bytes)]] * len(seeds)

    def _await_mark(self, number: int) -> None:
        with _hanging(self.timeout_s):
            self.gate.await_mark(number, self.timeout_s)


class GpuWallClockCheck(WallClockCheck):
    def read(
        self, calls: int, held: bool, reference_launches: int, check: Check, claim_by: Callable[[Reading], Claim]
    ) -> Reading:
        if self.rehearsal.missing:
            raise NotRead(self.rehearsal.missing)
        least: dict[InputCase, Reading] = {}
        begin = time.perf_counter()
        for _ in range(_READINGS):
            try:
                readings = self._read(calls, held, reference_launches, check)
            except GateError as error:
                raise NotRead(str(error)) from error
            for case, reading in readings.items():
                least[case] = least[case].least(reading) if case in least else reading
            if claim_by(longest(least.values())) is Claim.AGREES or time.perf_counter() - begin > MOST_S:
                break
        return longest(least.values())

    def _read(self, calls: int, held: bool, reference_launches: int, check: Check) -> dict[InputCase, Reading]:
        """Return what a burst of each input case takes, by a few of them."""
        self.make_room(calls)
        with contextlib.closing(BurstInputs(self.setting, calls)) as inputs:
            burst = inputs.draw(self.setting.timed)
            # behind the gate what the queue does not hold would wait for ever, the reference as well
            with_reference = calls * reference_launches <= QUEUE
            copy = None if held else inputs.copy  # what is not held has its inputs copied right before each call
            reference_ms = self._reference_ms(burst, copy) if with_reference else None
            try:
                self.session.ask(op="open_burst", handle={"ipc": inputs.handle}, calls=calls)
                found_ms = self._bursts_ms(inputs, burst, calls, held, check)
            except (NotHeld, torch.OutOfMemoryError, CandidateFailure) as error:
                # a smaller burst may be tried: what the worker keeps of this one would count as the candidate's
                if not isinstance(error, CandidateFailure) or error.status is Status.OUT_OF_MEMORY:
                    self.session.ask(op="close_burst")
                raise
            self.session.ask(op="close_burst")
        overhead_ms = calls * self.rehearsal.overhead_ms(calls, held)
        return {case: Reading(ms, overhead_ms, reference_ms, calls, held) for case, ms in found_ms.items()}

    def _bursts_ms(self, inputs: BurstInputs, first: Burst, calls: int, held: bool, check: Check) -> dict:
        """Return the least of a few bursts of each input case, and of more that have few calls the mean."""
        few = calls < CALLS_OF_A_MEAN
        begin, found = time.perf_counter(), {case: [] for case in input_cases(self.setting)}
        with contextlib.closing(Allocations({inputs.handle: inputs.memory})) as allocations:
            self._once(inputs, first, allocations, held=False)  # fills the allocator's caches
            for done in range(max(_TRIES, -(-CALLS_OF_A_MEAN // calls))):
                if done >= _TRIES and time.perf_counter() - begin > MOST_S:
                    break
                for case in input_cases(self.setting):
                    burst = inputs.draw(case)
                    burst_ms, outputs = self._once(inputs, burst, allocations, held)
                    counts = few or burst_ms < min(found[case], default=math.inf)
                    found[case].append(burst_ms)
                    if counts or case == self.setting.rare:
                        for call in burst.compared:
                            check(self._called(burst, call, outputs, inputs))
                    if counts:
                        self._must_have_been_there()
        return {case: mean_of_undisturbed(times) if few else min(times) for case, times in found.items()}

    def _once(
        self, inputs: BurstInputs, burst: Burst, allocations: Allocations, held: bool
    ) -> tuple[float, list[RemoteOutputs]]:
        """Return ms until samples of all outputs of one burst have been read, and the outputs."""
        left: list[RemoteOutputs] = []

        def send(seeds: list[int], first: int, number: int) -> list[list[tuple[int, int]]]:
            answer = self.session.ask(op="burst", seeds=seeds, first=first, number=number)
            try:
                left.append(RemoteOutputs(answer, len(seeds), self.session.prepared.facts.kinds, allocations))
            except CandidateFailure:
                self.rehearsal.gate.release(number + len(seeds) - 1)
                raise
            return left[-1].places

        self.session.bound_cache()  # inputs were drawn and outputs compared since
        self.session.timer.wait_for_bandwidth()
        self.session.ask(op="prepare_burst", calls=len(burst.seeds))
        return (self.rehearsal.held_ms if held else self.rehearsal.unheld_ms)(inputs, burst.seeds, send), left

    def _called(self, burst: Burst, call: int, left: list[RemoteOutputs], inputs: BurstInputs) -> Called:
        """One call of a burst that was made as a whole, or call by call."""
        outputs = left[0].of_call(call) if len(left) == 1 else left[call].of_call(0)
        return Called(burst.case, burst.inputs[call], burst.drawn[call], burst.seeds[call], outputs, inputs.left(call))

    def taken_bytes(self) -> int:
        return torch.cuda.max_memory_allocated(self.setting.device)

    def _must_have_been_there(self) -> None:
        samples = self.rehearsal.samples
        if changed := samples.changed():
            raise CandidateFailure(
                Status.REJECTED,
                f"of {samples.count} pieces of the outputs of calls in a row, {changed} changed after the call "
                "was marked as done",
                rule=forged_clock.RULE,
            )

    def _reference_ms(self, burst: Burst, copy: Callable[[int, int], None] | None) -> float:
        """Return what a call of the reference takes in a burst of this process; ``copy`` goes before each.

        The copies show a burst to the worker before its calls, so it must be one that is not counted.
        """
        self._play_reference(self.reference, burst, copy)  # fills the allocator's caches
        torch.cuda.synchronize()
        took = []
        for _ in range(_TRIES):
            timed, number = _Timed(self.reference), self.rehearsal.next_number(1)
            self.session.timer.wait_for_bandwidth()
            self.rehearsal.gate.hold(number)
            with self.rehearsal.opened_late(number):
                self._play_reference(timed, burst, copy)
            self.rehearsal.gate.open(number)
            torch.cuda.synchronize()
            took.append(timed.total_ms() / len(burst.seeds) - self.rehearsal.event_ms)
        return statistics.median(took)

    def _play_reference(self, model: Callable, burst: Burst, copy: Callable[[int, int], None] | None) -> None:
        for call, (arguments, seed) in enumerate(zip(burst.inputs, burst.seeds)):
            if copy:
                copy(call, torch.cuda.current_stream().cuda_stream)
            outputs_of(model, self.setting, arguments, seed)


@contextlib.contextmanager
def _hanging(timeout_s: float) -> Iterator[None]:
    """A wait that takes too long is the candidate's timeout."""
    try:
        yield
    except TimeoutError:
        message = f"calls in a row were not done within {timeout_s:g} s: it hangs, or needs a larger time limit"
        raise CandidateFailure(Status.TIMEOUT, message) from None


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
