"""The two sides of an evaluation, the candidate in its worker and the reference here: play, fetch, compare."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from harness.faults import MachineFault, is_of_machine
from harness.integrity import out_of_bounds, overwritten_inputs
from harness.judge import argument_order, soundness
from harness.judge.compare import (
    RARE_TOLERANCE,
    Criterion,
    Errors,
    check_kind,
    check_structure,
    check_values,
    strict_criterion,
)
from harness.judge.conditions import Conditions
from harness.judge.reference import PUBLISHED, InputCase, Reference
from harness.memory.cuda_ipc import DeviceMemory
from harness.memory.placement import Placement
from harness.memory.shared_tensors import SharedTensors, lay_out
from harness.problem.inputs import DTYPES, fresh_seeds, tensors_of
from harness.problem.module import ProblemError, Workload
from harness.problem.signature import Signature
from harness.process.deadline import within
from harness.process.worker_process import Worker
from harness.result import CandidateFailure, Status
from harness.tensors.dtypes import are_same, count_marked
from harness.tensors.outputs import as_tensor
from harness.timing import Round, timer_for
from harness.timing.rounds import RunConfig, count_launches, play

_CACHE_MEMORY_SHARE = 4  # of the device's memory, what the judge's allocator may keep between rounds
# What a process may keep besides its tensors: context, code, workspaces of libraries; and the context of a worker
# without a candidate.
_CONTEXT_BYTES = 5 << 29


class EvaluationSession:
    """``kinds`` are the reference's outputs without data, ``traffic`` the bytes of one call.

    ``worker`` is None before its start and after its end. ``signature`` is what a library is called with;
    its outputs have no ``structure``, nor has a Python solution a signature.
    """

    def __init__(self, workload: Workload, conditions: Conditions, weight_seed: int):
        setting = RunConfig(workload, conditions.device, DTYPES[conditions.precision])
        self.reference = Reference(setting, weight_seed)
        self.timer = timer_for(conditions.device)
        self._places = Placement(conditions.device) if conditions.device.type == "cuda" else None
        self.errors = Errors()
        self.kinds: list[torch.Tensor] = []
        self.structure: str | None = None
        self.signature: Signature | None = None
        self.worker: Worker | None = None
        self.outbox: SharedTensors | None = None
        self._workload, self._conditions = workload, conditions
        self.traffic = 0
        self._room_bytes = self._not_others()
        self._losses: dict[tuple[InputCase, int], float] = {}  # by trial and output

    @property
    def criteria(self) -> list[Criterion]:
        """The criterion of each output."""
        problem, precision = self._workload.problem, self.reference.setting.dtype
        return [strict_criterion(problem, precision, kind.dtype) for kind in self.kinds]

    def play_candidate(self, trial: InputCase, seeds: list[int], held: bool | None) -> Round:
        """The candidate's round; its outputs stay in the worker, what they look like is checked here.

        With ``held`` launches are kept out of its times; None: it has none.
        """
        if held is not None:
            self.timer.wait_for_bandwidth()
        answer = self.ask(op="run", seeds=seeds, draw=trial.draw, weights=trial.weights, held=held)
        outputs, structures, timed = answer.get("outputs"), answer.get("structures"), held is not None
        times = answer.get("times_ms") if timed else [None] * len(seeds)
        if not all(isinstance(part, list) and len(part) == len(seeds) for part in (times, outputs, structures)):
            raise CandidateFailure(Status.CRASHED, "the worker's answer does not match the calls that were asked for")
        for returned in structures if self.structure else []:
            check_structure(returned, self.structure)
        for described in outputs:
            check_kind(described, self.kinds, self._conditions.worker_device)
        if not timed:
            return Round([], [], [])
        empty_ms = number(answer.get("empty_ms")) if self._conditions.device.type == "cuda" else 0.0
        return Round([], [], [number(t) for t in times], answer.get("queue_full") is True, empty_ms)

    def play_reference(self, trial: InputCase, seeds: list[int], held: bool | None = True) -> Round:
        self.rest()
        if held is not None:
            self.timer.wait_for_bandwidth()
        drawn = "" if trial == PUBLISHED else str(trial)
        played = self.of_reference(lambda: self.reference.play(trial, seeds, self.timer, held), drawn)
        _give_memory_back(self._conditions.device)
        return played

    def example(self) -> Round:
        """One call of the reference on published inputs; raises ProblemError where no candidate can be held to it."""
        (seed,) = fresh_seeds(1)
        example = self.play_reference(PUBLISHED, [seed])
        self.of_reference(lambda: soundness.check(self.reference, seed, example), "")
        return example

    def of_reference(self, action: Callable[[], Any], drawn: str) -> Any:
        """``action()``, with room, which calls the reference on what is ``drawn``, '' if as published.

        Raises ProblemError where that fails, and MachineFault where memory or the device is to blame.
        """
        try:
            with within("the reference", self._conditions.reference_s):
                return self.with_room(action)
        except (CandidateFailure, MachineFault, ProblemError):
            raise
        except Exception as error:
            problem = self._workload.problem
            which = drawn and f" with {drawn} (what inputs it takes is for DOMAIN to say)"
            kind = MachineFault if is_of_machine(error) else ProblemError
            raise kind(
                f"the reference of {problem.id} ({self._workload.name}, {self._conditions.precision}) fails on "
                f"{self._conditions.device}{which}: {type(error).__name__}: {error}"
            ) from error

    def play(self, model: Callable, seeds: list[int], held: bool = True) -> Round:
        """Times of another form of the reference on the inputs that are timed."""
        self.rest()
        self.timer.wait_for_bandwidth()
        with within("a baseline", self._conditions.build_timeout_s + self._conditions.reference_s):  # it may compile
            played = self.with_room(lambda: play(model, self.reference.setting, seeds, self.timer, held=held))
        played.outputs, played.inputs = [], []
        return played

    def launches(self, model: Callable) -> int:
        """Return how many kernels, copies and fills one call of a form of the reference starts on the device."""
        return self.with_room(lambda: count_launches(model, self.reference.setting, self.timer))

    def compare(self, trial: InputCase, seeds: list[int], call: int, reference: Round, with_inputs: bool) -> None:
        """Every output of one call of the last round, and with ``with_inputs`` what became of its inputs."""
        expected = [as_tensor(leaf) for leaf in reference.outputs[call]]
        inputs = tensors_of(reference.inputs[call]) if with_inputs or self.signature else []
        reference.outputs, reference.inputs = [], []  # frees what is not needed here
        try:
            self._compare_outputs(trial, call, seeds[call], expected)
            if with_inputs:
                self._compare_inputs(call, inputs)
        except CandidateFailure as failure:
            if self.signature and argument_order.may_explain(failure):
                unwritten = [count_marked(read()) for read in self._fetched(call, "outputs", expected)]
                left = zip(self._fetched(call, "inputs", inputs), inputs)
                written = [not are_same(read(), tensor) for read, tensor in left]
                argument_order.explain(failure, self.signature, unwritten, written)
            raise

    def _fetched(self, call: int, what: str, like: list[torch.Tensor]) -> list[Callable[[], torch.Tensor]]:
        """Return a reader of the ``outputs`` or the ``inputs`` of one call of the candidate's last round."""
        self.ask(op="fetch", call=call, what=what)
        return [functools.partial(self.outbox.read, slot) for slot in lay_out(like)]

    def _compare_outputs(self, trial: InputCase, call: int, seed: int, expected: list[torch.Tensor]) -> None:
        for index, (read, tensor) in enumerate(zip(self._fetched(call, "outputs", expected), expected)):
            which = "the output" if len(expected) == 1 else f"output {index}"
            which += "" if trial == PUBLISHED else f" ({trial})"
            self.check_output(read, tensor, which, trial, index, seed)

    def _compare_inputs(self, call: int, inputs: list[torch.Tensor]) -> None:
        for index, (read, tensor) in enumerate(zip(self._fetched(call, "inputs", inputs), inputs)):
            overwritten_inputs.check(self.with_room(read), tensor, index)

    def check_output(
        self,
        read: Callable[[], torch.Tensor],
        expected: torch.Tensor,
        which: str,
        trial: InputCase,
        index: int,
        seed: int,
    ) -> None:
        """Compare one output, if need be once more, knowing what PyTorch's own result loses on these inputs."""
        try:
            self._check_values(read, expected, which, trial, index)
        except CandidateFailure as failure:
            if trial in (PUBLISHED, self.reference.setting.timed):
                self.with_room(lambda: soundness.must_have_values(self.reference, seed, [expected]))
            if failure.status is not Status.WRONG_VALUE:
                raise
            self._learn_losses(trial, seed)
            self._check_values(read, expected, which, trial, index)

    def _check_values(self, read, expected: torch.Tensor, which: str, trial: InputCase, index: int) -> None:
        criterion = replace(self.criteria[index], loss=self._losses.get((trial, index), 0.0))
        if trial == self.reference.setting.rare:
            criterion = criterion.loosened(RARE_TOLERANCE)
        check_values(self.with_room(read), expected, criterion, which, self.errors)

    def _learn_losses(self, trial: InputCase, seed: int) -> None:
        """Keep the error of PyTorch's own result on this call for its trial: it costs an FP64 forward."""
        losses = self.with_room(lambda: self.reference.losses(trial, seed))
        for output, loss in enumerate(losses):
            self._losses[trial, output] = max(loss, self._losses.get((trial, output), 0.0))

    def with_room(self, action: Callable[[], Any]) -> Any:
        """``action()``; where the device's memory is full, once more after both sides emptied their caches."""
        try:
            return action()
        except torch.OutOfMemoryError:
            if self.worker is None:
                raise
        self.trim()
        try:
            return action()
        except torch.OutOfMemoryError:
            self.check_memory_hog()
            raise

    def rest(self) -> float:
        """Wait on a CPU until the candidate's processes are suspended; return the moment since which they are."""
        if self._conditions.device.type == "cpu" and self.worker:
            return self.worker.rest()
        return time.perf_counter()

    def trim(self) -> None:
        """Have both sides give back what their allocators keep."""
        self._give_back("trim")

    def clear(self) -> None:
        """Release caches after the candidate's last outputs, so that both sides allocate anew."""
        self._give_back("clear")

    def _give_back(self, op: str) -> None:
        if self._places:
            if self.worker:
                self.ask(op=op)
            self._places.give_back()

    def move(self) -> None:
        """Reshuffle memory: both sides allocate at other addresses from now on."""
        if self.worker:
            self.ask(op="move")
        self._places.change()

    def check_memory_hog(self) -> None:
        """Raise CandidateFailure if memory is short and the candidate keeps more than a call takes.

        Its last round is freed, so nothing of that can be compared any more.
        """
        self.clear()
        kept = self._room_bytes - self._not_others()
        if kept > 2 * self.traffic + _CONTEXT_BYTES:
            raise CandidateFailure(
                Status.OUT_OF_MEMORY,
                f"between its calls it keeps {kept / 1e9:.1f} of {self._room_bytes / 1e9:.1f} GB of the device's "
                f"memory, where inputs, weights and outputs of a call take {self.traffic / 1e9:.1f}: too little is "
                "left to judge it",
            )

    def _not_others(self) -> int:
        """Bytes of the device that are free or this process's own; 0 without a GPU."""
        device = self._conditions.device
        if device.type != "cuda":
            return 0
        return torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device) + DeviceMemory.held

    def ask(self, **request: Any) -> dict[str, Any]:
        limits = self._conditions
        # the worker's own deadline is earlier: this one is for a hang around it
        with within("a step of the candidate", 2 * (limits.timeout_s + limits.build_timeout_s) + 60):
            answer = self.worker.request(request, limits.timeout_s)
        out_of_bounds.check(answer.get("overruns"))
        return answer


def number(value: Any) -> float:
    """A finite, positive number from the worker; anything else is the candidate's failure."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e12:
        return float(value)
    raise CandidateFailure(Status.CRASHED, f"the worker reported {value!r} where a time was expected")


def _give_memory_back(device: torch.device) -> None:
    """Leave the device's memory to the worker where the judge's cache holds much of it."""
    if device.type != "cuda":
        return
    total = torch.cuda.get_device_properties(device).total_memory
    if torch.cuda.memory_reserved(device) > total // _CACHE_MEMORY_SHARE:
        torch.cuda.empty_cache()
