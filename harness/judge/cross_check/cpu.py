"""The judge's clock on a CPU: one request a call, and its inputs exist only when the call before is done.

A call ends when none of the worker's processes runs any more. Its outputs are read at that moment in the worker's
memory. The overhead of request, answer and coming to rest is measured in turn with the calls, by a worker that never
held a candidate, and subtracted, but for what a candidate could spare itself. The medians of both count, over all
bursts: to make them lie a candidate has to leave out half of its calls, which comparing a sample of outputs finds.
"""

from __future__ import annotations

import functools
import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, replace
from typing import Any

import torch

from harness.faults import MachineFault
from harness.judge.cross_check.base import (
    CALLS_OF_A_MEAN,
    MOST_S,
    Called,
    Check,
    Claim,
    Fork,
    NotRead,
    Reading,
    Rehearsal,
    WallClockCheck,
    compared_calls,
    input_cases,
    longest,
    mean_of_undisturbed,
    of_no_candidate,
    order_in_memory,
)
from harness.judge.idle_cores import share_of_others, wait_for_idle_cores
from harness.judge.reference.session import ReferenceSession
from harness.memory.shared_tensors import SharedTensors, lay_out, shared_file, size_for
from harness.problem.inputs import fresh_seeds, tensors_of
from harness.process.procfs import available_memory_bytes, usable_cores
from harness.process.worker_process import Worker
from harness.result import CandidateFailure, Status
from harness.tensors.strides import in_order
from harness.timing.convergence import CV_TARGET
from harness.timing.rounds import InputCase, outputs_of

# Readings of each input case, and seconds: others may take the cores for a second or two. Fewer of both, in
# proportion, where times need not be as precise as by default; but nobody is rejected for a busy machine.
_TRIES, _PATIENCE_S, _PATIENCE_BEFORE_REJECTION_S = 9, 2.0, 5.0
_LEAST_TRIES = 3  # readings before the time counts
_SHARE_OF_CALLS = 0.1  # of the seconds after which fewer readings are enough, that long calls take at least
_LEAST_READINGS = 2  # where others come to the cores, the overhead in one of them may hide what a candidate does
_WARM_UP_CALLS, _LEAST_REHEARSALS = 2, 8  # calls; the median of eight bears three that others disturb
_PATIENCE_FOR_KERNEL_S = 1.0  # seconds before each burst, where the cores came to rest before the candidate
_REFERENCE_MS, _LEAST_REFERENCE_CALLS = 40.0, 8  # that the reference is called for: four bursts long; fewer if slow


class CpuRehearsal(Rehearsal):
    """Calls that do nothing, made by a worker of as many threads as the candidate's."""

    def __init__(self, judge: ReferenceSession, timeout_s: float, fork: Fork):
        super().__init__(judge, timeout_s, shared_file(size_for(judge.prepared.facts.inputs)))
        self.idle = fork([self.fd])
        self._ask = functools.partial(self.ask_idle, self.idle)

    def close(self) -> None:
        super().close()
        try:
            self.idle.close()
        except CandidateFailure as failure:
            raise MachineFault(f"a worker without a candidate failed: {failure.message}") from failure

    def calls(self, count: int, threads: int) -> list[_Call]:
        """Make ``count`` such calls; after each all of so many ``threads`` have to stop, at most one a core.

        More would wait for a core, for which those of a candidate need not be in its way, and nor are processes.
        """
        with of_no_candidate():
            self._ask(op="hold", threads=min(threads, usable_cores()))
            self.idle.rest()
            return [self._empty_call(seed) for seed in fresh_seeds(count)]

    def _empty_call(self, seed: int) -> _Call:
        """Make one; what Python takes in its process is no part of it, as a candidate may do without."""
        call, own = _timed(self.idle, self._ask, "rehearse", seed)
        cpu_ms, busiest_ms = (max(0.0, ms - own["cpu_ms"]) for ms in (call.cpu_ms, call.busiest_ms))
        return _Call(max(0.0, call.took_ms - own["wall_ms"]), cpu_ms, busiest_ms)

    def free_bytes(self) -> int:
        return available_memory_bytes()


class CpuWallClockCheck(WallClockCheck):

    def read(
        self, calls: int, held: bool, reference_launches: int, check: Check, claim_by: Callable[[Reading], Claim]
    ) -> Reading:
        if self.session.worker.memory is None:
            raise NotRead("the system does not let a process see its own memory")
        contents = tensors_of(self.setting.draw_one(0))
        memory = SharedTensors(self.setting.device, contents, file=self.rehearsal.fd)
        views = [memory.view(slot) for slot in lay_out(contents)]
        del contents
        self.session.ask(op="open_burst", handle=memory.handle, calls=1)
        self._burst(self.setting.timed, min(calls, _WARM_UP_CALLS), held, views, [])
        cases = input_cases(self.setting)
        work: dict[InputCase, list[_Call]] = {case: [] for case in cases}  # of all calls
        reference_ms: dict[InputCase, list[float]] = {case: [] for case in cases}
        found: dict[InputCase, Reading] = {}
        others: list[float] = []

        def claim() -> Claim:
            return claim_by(longest(found.values()))

        enough = max(_LEAST_READINGS, -(-CALLS_OF_A_MEAN // calls))
        most = max(enough, _LEAST_TRIES)
        def called_s() -> float:
            return sum(call.took_ms for calls in work.values() for call in calls) / 1e3

        for done in tries(self.session.conditions.cv_target, lambda: claim() is Claim.FORGED, most, called_s):
            for case in input_cases(self.setting):
                reading, called = self._burst(case, calls, held, views, work[case])
                for call in called:
                    check(call)
                found[case] = replace(reading, reference_ms=_median(reference_ms[case]))
                if claim() is not Claim.AGREES:
                    reference_ms[case].append(self._reference_ms(called))
                    others.append(share_of_others())
                    found[case] = replace(
                        reading, reference_ms=_median(reference_ms[case]), others=statistics.fmean(others)
                    )
            if claim() is Claim.AGREES and done >= enough:
                break
        self.session.ask(op="close_burst")
        views.clear()
        memory.close()
        return longest(found.values())

    def _burst(
        self, case: InputCase, calls: int, held: bool, views: list[torch.Tensor], work: list[_Call]
    ) -> tuple[Reading, list[Called]]:
        """Make so many calls; return what a call takes, and those that are to be compared.

        ``work`` is that of the calls before, to which that of these is added: the reading is of all of them, as the
        least of some bursts would be that of a call with lucky inputs.
        """
        self.session.ask(op="prepare_burst", calls=calls)
        self.session.wait_for_quiet()
        called, made, empty = [], [], []
        left_s = self.session.conditions.timeout_s  # of all its calls: honest ones take a hundredth of a second
        compared = compared_calls(calls)
        rehearsed = compared_calls(calls)  # others than the compared: their times would tell which those are
        for call in range(calls):
            (drawn,), (seed,) = fresh_seeds(1), fresh_seeds(1)
            inputs = self.setting.draw_one(drawn, case.draw)
            for view, tensor in zip(views, tensors_of(inputs)):
                view.copy_(tensor)
            times, answer = _timed(self.session.worker, self.session.ask, "burst", seed)
            made.append(times)
            left_s -= times.took_ms / 1e3
            if left_s < 0:
                message = f"{call + 1} calls in a row took longer than {self.session.conditions.timeout_s:g} s together"
                raise CandidateFailure(Status.TIMEOUT, message)
            if call in compared:
                left = [view.clone() for view in views]
                called.append(Called(case, inputs, drawn, seed, self._left(answer), left))
            if call in rehearsed:
                count = -(-_LEAST_REHEARSALS // len(rehearsed))
                empty += self.rehearsal.calls(count, self.session.worker.rested.threads)
        # medians of both: where others come to the cores, calls and empty calls wait alike
        without = _Call(*(statistics.median(part) for part in zip(*map(astuple, empty))))
        work += [_Call(*(ms - empty_ms for ms, empty_ms in zip(astuple(one), astuple(without)))) for one in made]
        took, *worked = zip(*map(astuple, work))
        cpu_ms, busiest_ms = (max(0.0, mean_of_undisturbed(part)) for part in worked)
        burst_ms, overhead_ms = calls * (statistics.median(took) + without.took_ms), calls * without.took_ms
        return Reading(burst_ms, overhead_ms, None, calls, held, cpu_ms, busiest_ms), called

    def _left(self, answer: dict[str, Any]) -> list[torch.Tensor]:
        """The outputs of the last call, from the worker's memory."""
        outputs = []
        for output, kind in enumerate(self.session.prepared.facts.kinds):
            order = order_in_memory(answer, 0, output, kind.dim())
            size = math.prod(kind.shape) * kind.dtype.itemsize
            try:
                data = self.session.worker.memory.read(answer["addresses"][0][output], size)
            except (KeyError, IndexError, TypeError, OSError, OverflowError):
                raise CandidateFailure(
                    Status.CRASHED, "the outputs of a call in a row are not in memory where the worker says they are"
                ) from None
            raw = torch.frombuffer(data, dtype=torch.uint8) if size else torch.empty(0, dtype=torch.uint8)
            outputs.append(in_order(raw.view(kind.dtype).view(kind.shape), order))
        return outputs

    def _reference_ms(self, called: list[Called]) -> float:
        """Return ms of a call of the reference meanwhile, on the candidate's inputs: others may use the cores.

        But not the kernel, with what the candidate's last call had it do.
        """
        if self.session.prepared.cores_rest:
            wait_for_idle_cores(_PATIENCE_FOR_KERNEL_S)
        begin, done = time.perf_counter(), 0
        # a slice of somebody's time is four of a short call: one alone would excuse that much
        for call in itertools.islice(itertools.cycle(called), max(_LEAST_REFERENCE_CALLS, len(called))):
            outputs_of(self.reference, self.setting, call.inputs, call.seed)
            done += 1
            took_ms = (time.perf_counter() - begin) * 1e3
            if took_ms > _REFERENCE_MS:
                break
        return took_ms / done


@dataclass(frozen=True)
class _Call:
    """Wall time until all of a worker was at rest again, CPU time meanwhile, and that of its busiest thread."""

    took_ms: float
    cpu_ms: float
    busiest_ms: float


def _timed(worker: Worker, ask: Callable, op: str, seed: int) -> tuple[_Call, dict[str, Any]]:
    """Make one call; return the answer too, which may be large and is not to be kept.

    CPU time since the last rest is the call's own: others' inputs lay there already.
    """
    worker.check_limits(runs=False)  # here no clock runs: there are many calls in a row, each too short to be checked
    cpu_ms, unasked_ms = worker.rested.cpu_ms, worker.check_rest()
    begin = time.perf_counter()
    answer = ask(op=op, seeds=[seed])
    took_ms = (worker.rest() - begin) * 1e3 + unasked_ms
    return _Call(took_ms, max(0.0, worker.rested.cpu_ms - cpu_ms), worker.rested.busiest_ms), answer


def _median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None


def tries(
    cv_target: float = CV_TARGET,
    is_forged: Callable[[], bool] = lambda: False,
    enough: int = _LEAST_TRIES,
    called_s: Callable[[], float] = lambda: math.inf,
) -> Iterator[int]:
    """Count them from 1: ``enough``, and for long enough; fewer where each is long, as a forged clock can make it.

    But only where the calls are, ``called_s`` of all until now: who sleeps between them, when a call was lucky, would
    choose which calls count.
    """
    begin, share = time.perf_counter(), min(1.0, CV_TARGET / cv_target)
    for done in itertools.count():
        took_s = time.perf_counter() - begin
        if done and is_forged():
            least, patience_s = _TRIES, _PATIENCE_BEFORE_REJECTION_S
        else:
            least, patience_s = max(enough, round(share * _TRIES)), share * _PATIENCE_S
        if done >= least and took_s > patience_s:
            return
        if done >= _LEAST_TRIES and took_s > MOST_S and called_s() > _SHARE_OF_CALLS * MOST_S:
            return
        yield done + 1
