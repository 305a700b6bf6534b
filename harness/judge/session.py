"""One evaluation's two sides: the candidate in its worker and the reference here. Call, time, fetch, compare."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from harness.integrity import out_of_bounds, overwritten_inputs
from harness.judge.compare import (
    Errors,
    check_kind,
    check_structure,
    check_values,
    is_right_at_once,
    largest_value,
    root_mean_square,
)
from harness.judge.conditions import Conditions
from harness.judge.criterion import RARE_TOLERANCE, Criterion, loses_much, strict_criterion
from harness.judge.reference import soundness
from harness.judge.reference.model import PUBLISHED, InputCase, Loss
from harness.judge.reference.prepare import Prepared
from harness.judge.reference.session import ReferenceSession
from harness.memory.cuda_ipc import DeviceMemory
from harness.memory.shared_tensors import lay_out
from harness.problem import argument_order
from harness.process.deadline import within
from harness.process.worker_process import Worker
from harness.result import CandidateFailure, Status
from harness.tensors.dtypes import are_same, count_marked
from harness.timing import Round

# What a process may keep besides its tensors: context, code, workspaces of libraries; and the context of a worker
# without a candidate. On an H100 contexts take 0.6 GB each (kb redteam, 2026-11-24), workspaces and graphs the rest.
_CONTEXT_BYTES = 5 << 29
_OTHER_CALLS = "the worker's answer does not match the calls that were asked for"


@dataclass(frozen=True)
class Left:
    """A tensor that the candidate left: ``read`` returns a copy, and ``look`` what may change while it is looked at."""

    read: Callable[[], torch.Tensor]
    look: Callable[[], torch.Tensor]


class EvaluationSession(ReferenceSession):
    """A worker that holds the candidate, beside the reference. ``errors`` are the worst found so far."""

    def __init__(self, prepared: Prepared, conditions: Conditions, worker: Worker):
        super().__init__(prepared, conditions)
        self.worker, self.errors = worker, Errors()
        self._room_bytes = self._not_others()
        self._losses: dict[tuple[InputCase, int], float] = {}  # by case and output, in its unit
        self._last_losses: tuple[Any, list[Loss]] = None, []

    @functools.cached_property
    def criteria(self) -> list[Criterion]:
        """The criterion of each output."""
        setting, kinds = self.reference.setting, self.prepared.facts.kinds
        return [strict_criterion(setting.workload.problem, setting.dtype, kind.dtype) for kind in kinds]

    def call_candidate(self, case: InputCase, seed: int) -> None:
        """Call the candidate once, untimed; its outputs stay in the worker, what they look like is checked here."""
        self.bound_cache()  # outputs of an earlier call were compared since
        self._check_described(self.ask(op="call", seed=seed, draw=case.draw, weights=case.weights), 1)

    def time_candidate(self, seeds: list[int], held: bool) -> Round:
        """Time the candidate on the inputs that are timed; outputs stay in the worker. See ``rounds.play``."""
        self.bound_cache()
        self.timer.wait_for_bandwidth()
        answer = self.ask(op="run", seeds=seeds, held=held)
        self._check_described(answer, len(seeds))
        times = answer.get("times_ms")
        if not isinstance(times, list) or len(times) != len(seeds):
            raise CandidateFailure(Status.CRASHED, _OTHER_CALLS)
        on_gpu = self.conditions.device.type == "cuda"
        empty_ms = number(answer.get("empty_ms")) if on_gpu else 0.0
        queue_full = answer.get("queue_full") is True or not on_gpu  # a CPU has none: rounds would be left out for it
        self.wait_for_quiet()
        waited = 1.0 if on_gpu else self.worker.rested.waited
        return Round([], [], [number(t) for t in times], queue_full, empty_ms, waited)

    def _check_described(self, answer: dict[str, Any], calls: int) -> None:
        outputs, structures = answer.get("outputs"), answer.get("structures")
        if not all(isinstance(part, list) and len(part) == calls for part in (outputs, structures)):
            raise CandidateFailure(Status.CRASHED, _OTHER_CALLS)
        for returned in structures if self.prepared.facts.structure else []:
            check_structure(returned, self.prepared.facts.structure)
        for described in outputs:
            check_kind(described, self.prepared.facts.kinds, self.conditions.worker_device)

    def compare(
        self, case: InputCase, seed: int, call: int, expected: list[torch.Tensor], inputs: list[torch.Tensor] | None
    ) -> None:
        """Compare every output of one call of the last round, and with ``inputs`` what became of its inputs."""
        try:
            self._compare_outputs(case, call, seed, expected)
            if inputs is not None and not self.reference.setting.workload.problem.overwrites_inputs:
                self._compare_inputs(call, inputs)
        except CandidateFailure as failure:
            if self.prepared.facts.signature and argument_order.may_explain(failure):
                self._explain_arguments(failure, call, expected, inputs or [])
            raise

    def _explain_arguments(
        self, failure: CandidateFailure, call: int, expected: list[torch.Tensor], inputs: list[torch.Tensor]
    ) -> None:
        unwritten = [count_marked(left.read()) for left in self._fetched(call, "outputs", expected)]
        fetched = zip(self._fetched(call, "inputs", inputs), inputs)
        written = [not are_same(left.read(), tensor) for left, tensor in fetched]
        argument_order.explain(failure, self.prepared.facts.signature, unwritten, written)

    def fetched_outputs(self, like: list[torch.Tensor]) -> list[Callable[[], torch.Tensor]]:
        """Return a reader of each output of the candidate's last call."""
        return [left.read for left in self._fetched(0, "outputs", like)]

    def _fetched(self, call: int, what: str, like: list[torch.Tensor]) -> list[Left]:
        """Return the ``outputs`` or the ``inputs`` of one call of the candidate's last round."""
        self.ask(op="fetch", call=call, what=what)
        outbox, bound = self.prepared.outbox, functools.partial
        return [Left(bound(outbox.read, slot), bound(outbox.look, slot)) for slot in lay_out(like)]

    def _compare_outputs(self, case: InputCase, call: int, seed: int, expected: list[torch.Tensor]) -> None:
        for index, (left, tensor) in enumerate(zip(self._fetched(call, "outputs", expected), expected)):
            which = "the output" if len(expected) == 1 else f"output {index}"
            which += "" if case == PUBLISHED else f" ({case})"
            self.check_output(left, tensor, which, case, index, seed)

    def _compare_inputs(self, call: int, inputs: list[torch.Tensor]) -> None:
        for index, (left, tensor) in enumerate(zip(self._fetched(call, "inputs", inputs), inputs)):
            if not are_same(self.with_room(left.look), tensor):
                overwritten_inputs.check(self.with_room(left.read), tensor, index)

    def check_output(
        self,
        left: Left,
        expected: torch.Tensor,
        which: str,
        case: InputCase,
        index: int,
        seed: int,
    ) -> None:
        """Compare one output, if need be once more, knowing what PyTorch's own result loses on these inputs."""
        try:
            self._check_values(left, expected, which, case, index)
            return
        except CandidateFailure as error:
            failure = error.with_traceback(None)  # whose frames would hold the copy of an output
        if case in (PUBLISHED, self.reference.setting.timed):
            self.with_room(lambda: soundness.must_have_values(self.reference, seed, [expected]))
        if failure.status is not Status.WRONG_VALUE:
            raise failure
        loss, instead = self._loss_on(case, seed)[index]
        if instead is not None:
            expected, which = instead, f"{which}, to be as without TF32 or as with PyTorch's own,"
        self._keep_loss(loss, expected, case, index)
        self._check_values(left, expected, which, case, index, loss)

    def _check_values(
        self, left: Left, expected: torch.Tensor, which: str, case: InputCase, index: int, loss: float = 0.0
    ) -> None:
        if kept := self._losses.get((case, index), 0.0):
            loss = max(loss, kept * self._unit(expected, index))
        criterion = self.criteria[index].allowing(loss, lambda: largest_value(expected))
        if case == self.reference.setting.rare:
            criterion = criterion.loosened(RARE_TOLERANCE)
        if not is_right_at_once(left.look, expected, criterion, self.errors):
            check_values(self.with_room(left.read), expected, criterion, which, self.errors)

    def _loss_on(self, case: InputCase, seed: int) -> list[Loss]:
        """Return the error of PyTorch's own result for each output of this call: it costs an FP64 forward."""
        if self._last_losses[0] != (case, seed):
            self._last_losses = (case, seed), self.with_room(lambda: self.reference.losses(case, seed))
        return self._last_losses[1]

    def _keep_loss(self, loss: float, expected: torch.Tensor, case: InputCase, index: int) -> None:
        """Keep it for other calls of the case, unless it is so large that it may be of these inputs alone."""
        if 0.0 < loss and not loses_much(loss, unit := self._unit(expected, index)):
            self._losses[case, index] = max(loss / unit, self._losses.get((case, index), 0.0))

    def _unit(self, expected: torch.Tensor, index: int) -> float:
        """Return what an output's errors are in units of; of independent parts each has its own."""
        if self.criteria[index].independent:
            return 1.0
        return largest_value(expected) if self.criteria[index].proportional else root_mean_square(expected)

    def with_room(self, action: Callable[[], Any]) -> Any:
        """Return ``action()``; where the device's memory is full, once more after both sides released their caches."""
        try:
            return action()
        except torch.OutOfMemoryError:
            pass  # outside of the handler, which would hold the memory of what failed
        self.release_caches()
        try:
            return action()
        except torch.OutOfMemoryError:
            self.check_memory_hog()
            raise

    def wait_for_quiet(self) -> None:
        """Wait on a CPU until the candidate's processes are suspended."""
        if self.conditions.device.type == "cpu":
            self.worker.rest()

    def release_caches(self) -> None:
        """Have both sides give back what their allocators keep."""
        if self._placement:
            self.ask(op="trim")
        super().release_caches()

    def release_outputs(self) -> None:
        """Release caches after the candidate's last outputs, so that both sides allocate anew."""
        if self._placement:
            self.ask(op="clear")
        super().release_caches()

    def reshuffle(self) -> None:
        """Reshuffle memory: both sides allocate at other addresses from now on."""
        self.ask(op="move")
        super().reshuffle()

    def check_memory_hog(self) -> None:
        """Raise CandidateFailure if memory is short and the candidate keeps more than a call takes.

        Its last round is freed, so nothing of that can be compared any more.
        """
        self.release_outputs()
        kept, traffic = self._room_bytes - self._not_others(), self.prepared.facts.traffic
        if kept > 2 * traffic + _CONTEXT_BYTES:
            raise CandidateFailure(
                Status.OUT_OF_MEMORY,
                f"between its calls it keeps {kept / 1e9:.1f} of {self._room_bytes / 1e9:.1f} GB of the device's "
                f"memory, where inputs, weights and outputs of a call take {traffic / 1e9:.1f}: too little is "
                "left to judge it",
            )

    def _not_others(self) -> int:
        """Bytes of the device that are free or this process's own; 0 without a GPU."""
        device = self.conditions.device
        if device.type != "cuda":
            return 0
        return torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device) + DeviceMemory.held

    def ask(self, **request: Any) -> dict[str, Any]:
        limits = self.conditions
        # the worker's own deadline is earlier: this one is for a hang around it
        with within("a step of the candidate", 2 * (limits.timeout_s + limits.build_timeout_s) + 60):
            answer = self.worker.request(request, limits.timeout_s)
        out_of_bounds.check(answer.get("overruns"))
        return answer


def number(value: Any) -> float:
    """A number of ms from the worker, of a femtosecond at least; anything else is the candidate's failure."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 1e-12 <= value < 1e12:
        return float(value)
    raise CandidateFailure(Status.CRASHED, f"the worker reported {value!r} where a time was expected")
