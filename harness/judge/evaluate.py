"""The trusted side of one evaluation: seeds, reference, comparison, timing, verdict.

The path of a candidate: ``evaluate`` starts a worker, has it load the candidate,
then plays rounds. In each round the worker runs the candidate on inputs drawn
from seeds that it learns only then; afterwards, and only then, the judge draws
the same inputs, runs the reference and compares. Rounds of one call come first
(the correctness trials, on hardened draws too), then timed rounds of several
calls, candidate and baseline in turn; of each of those, one call that nobody
could foresee is compared too.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from harness import device as devices
from harness.compile.artefact import Artefact, BuildContext
from harness.compile.extension.build import ExtensionBuilder
from harness.integrity import below_floor, library_only
from harness.integrity.origin import Origin
from harness.integrity.static import findings
from harness.job import encode_problem
from harness.judge.conditions import Conditions
from harness.judge.cross_check.base import WallClockCheck
from harness.judge.cross_check.cpu import CpuWallClockCheck
from harness.judge.cross_check.gpu import GpuWallClockCheck
from harness.judge.memory_needs import check_room
from harness.judge.reference import CHANGED, PUBLISHED, InputCase
from harness.judge.session import EvaluationSession, number
from harness.judge.stages import Stages
from harness.judge.time_candidate import Measurement
from harness.memory.shared_tensors import SharedTensors
from harness.problem.inputs import fresh_seeds, tensors_of
from harness.problem.math_modes import pin_math_modes
from harness.problem.module import Problem, Workload
from harness.problem.signature import signature_of
from harness.process.worker_process import ForkServer, Worker
from harness.result import CandidateFailure, Result, Status
from harness.sol.headroom import headroom
from harness.solution.discover import Solution
from harness.solution.visible_files import own_files
from harness.tensors.dtypes import is_finite
from harness.tensors.outputs import as_tensor
from harness.timing.interleaved import bytes_of_call

_CHECKOUT, _PACKAGES = Path(__file__).resolve().parents[2], Path(torch.__file__).resolve().parents[1]


def evaluate(
    workload: Workload,
    solution: Solution,
    artefact: Artefact,
    conditions: Conditions,
    server: ForkServer,
    phase: Callable[[str], None] = lambda text: None,
) -> Result:
    """Check and time one built candidate.

    Raises ProblemError where the reference does not run or cannot be judged against, and MachineFault
    where the machine fails; everything that the candidate does ends in the result's status.
    """
    begin = time.perf_counter()
    result = blank_result(workload, solution, conditions)
    result.build = artefact.to_json()
    stages = Stages()
    try:
        stages.begin("wait")  # for the device
        with devices.exclusive(conditions.device, phase):
            stages.begin("reference")
            check_room(workload, conditions)
            _Evaluation(workload, solution, artefact, conditions, server, phase, stages).into(result)
        result.status = Status.OK
    except CandidateFailure as failure:
        if artefact.library and conditions.device.type == "cpu" and "SIGSEGV" in failure.message:
            failure.message += _GUARDED
        _record_failure(result, solution, failure)
    stages.end()
    result.stages_s = stages.seconds
    result.seconds = round(time.perf_counter() - begin + artefact.seconds, 3)
    return result


def blank_result(workload: Workload, solution: Solution, conditions: Conditions) -> Result:
    """A record with everything that is known before anything has run."""
    problem = workload.problem
    return Result(
        problem=str(problem.id),
        problem_name=problem.name,
        workload={"name": workload.name, "sizes": workload.sizes, "flops": workload.flops, "bytes": None},
        solution={
            "name": solution.name,
            "sample": solution.sample,
            "kind": solution.kind,
            "language": solution.language,
            "sha256": solution.sha256,
            **({"helpers": solution.helpers} if solution.helpers else {}),
        },
        status=Status.CRASHED,
        precision=conditions.precision,
        integrity={"findings": [finding.to_json() for finding in findings(solution, conditions.precision)]},
        device=devices.describe(conditions.device),
        versions=devices.versions(conditions.device),
        started=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    )


def failed_result(workload: Workload, solution: Solution, conditions: Conditions, failure: CandidateFailure) -> Result:
    """The record of a candidate that failed before it could be evaluated, as in its build."""
    result = blank_result(workload, solution, conditions)
    _record_failure(result, solution, failure)
    return result


def _record_failure(result: Result, solution: Solution, failure: CandidateFailure) -> None:
    result.status, result.rule = failure.status, failure.rule
    result.message = _without_folders(failure.message, solution)
    result.log = _without_folders(failure.log, solution)
    if failure.killed_by:
        result.conditions["killed_by"] = failure.killed_by


def _without_folders(text: str, solution: Solution) -> str:
    """Paths relative to the solutions, the harness or the packages: records are shown to others, homes are not."""
    folders = {str(folder): "" for folder in (solution.root.absolute(), solution.root.resolve(), _CHECKOUT, _PACKAGES)}
    for folder, name in (folders | {os.path.expanduser("~"): "~/"}).items():
        if folder != "/":
            text = text.replace(f"{folder}/", name)
    return text


class _Evaluation:
    """One candidate's way through check and timing."""

    def __init__(self, workload, solution, artefact, conditions, server, phase, stages):
        self._stages: Stages = stages
        self._workload: Workload = workload
        self._problem: Problem = workload.problem
        self._solution: Solution = solution
        self._artefact: Artefact = artefact
        self._conditions: Conditions = conditions
        self._server: ForkServer = server
        self._phase = phase
        self._device = conditions.device
        self._on_gpu = self._device.type == "cuda"  # what runs there may open GPUs, and nobody else
        self._weight_seed = secrets.randbits(62)
        self._sides = EvaluationSession(workload, conditions, self._weight_seed)

    def into(self, result: Result) -> None:
        """Fill ``result`` as things become known; raises CandidateFailure where the candidate fails."""
        result.integrity["track"] = "kernels" if self._conditions.needs_own_kernels else "open"
        result.conditions = pin_math_modes() | {"isolation": self._server.isolation}
        outbox, reference = self._prepare(), self._sides.reference
        result.workload["bytes"] = traffic = self._sides.traffic
        clock = self._clock()
        measurement = Measurement(self._sides, self._conditions, clock, self._phase)
        self._stages.begin("load")
        try:
            builder = ExtensionBuilder(self._solution, self._build_context())
            limit = self._conditions.memory_bytes
            fds = [*outbox.fds, clock.fd]
            readable = [self._problem.path, *own_files(self._solution), *self._artefact.readable]
            writable = self._artefact.writable
            env = self._artefact.env | devices.environment_of_one(self._device)
            with self._server.fork(env, limit, fds, builder, readable, writable, devices=self._on_gpu) as worker:
                self._sides.worker = worker
                self._sides.outbox = outbox
                self._phase("load")
                loaded = self._load()
                self._stages.begin("check")
                copied = loaded.get("weights") == "copied"
                trials = self._check(copied)
                result.correctness = {
                    "trials": [str(trial) for trial in trials],
                    "timed": str(self._sides.reference.setting.timed),
                    "weights": "copied" if copied else "seeded",
                    "setup_s": number(loaded.get("setup_s")),
                    "tolerance": max(criterion.tolerance for criterion in self._sides.criteria),
                }
                self._phase("time")
                self._stages.begin("time")
                contest = measurement.time(result)
                self._stages.begin("cross_check")
                self._phase("cross-check")
                contest = measurement.witness(result, contest)
                result.correctness |= self._sides.errors.to_json()
                self._stages.begin("close")
        finally:
            outbox.close()
            clock.close()
            if self._sides.worker:
                result.conditions["left_behind"] = self._sides.worker.left
        self._stages.begin("analyse")
        self._sides.worker = None
        measurement.time_alone(result, contest)
        median_ms = result.timing["median_ms"]
        result.speedup = result.speedup_over_first()
        result.gbps = traffic / median_ms / 1e6
        if self._workload.flops is not None:
            result.gflops = self._workload.flops / median_ms / 1e6
        dtype, clock_mhz = reference.setting.dtype, self._conditions.clock_mhz
        result.sol = headroom(self._workload, dtype, self._device, median_ms, result.conditions, clock_mhz)
        self._judge_identity(result, builder.libraries)

    def _prepare(self) -> SharedTensors:
        """Learn from a call of the reference what one takes and returns; the memory for what comes back of it."""
        sides = self._sides
        example = sides.example()
        sides.of_reference(lambda: sides.reference.choose_timed(fresh_seeds(2)), "timed inputs")
        sides.kinds = [as_tensor(leaf).to("meta") for leaf in example.outputs[0]]
        inputs, model = tensors_of(example.inputs[0]), sides.reference.model()
        sides.traffic = bytes_of_call(self._workload, model, inputs, sides.kinds)
        if self._artefact.library:  # from a call that was made: tracing one first imports what takes seconds
            sides.signature = signature_of(self._workload, example.inputs[0], model.state_dict(), sides.kinds)
        else:
            sides.structure = example.structures[0]
        return SharedTensors(self._device, sides.kinds, inputs)

    def _judge_identity(self, result: Result, built: list[Path]) -> None:
        """Is the time possible, and is the work the solution's own?"""
        median_ms, profile = result.timing["median_ms"], result.timing.get("profile")
        below_floor.check(median_ms, result.sol)
        result.integrity["faster_than_direct"] = below_floor.between_bounds(median_ms, result.sol)
        if profile:
            origin = self._origin(built)
            own, share = library_only.own_kernels(profile, origin)
            result.integrity |= {"own_kernels": own, "own_share": share}
        if not self._conditions.needs_own_kernels:
            return
        if self._device.type == "cuda" and profile:
            library_only.check(profile, origin)
        elif self._device.type == "cpu":
            library_only.check_on_cpu(bool(built) or self._artefact.library is not None)

    def _origin(self, built: list[Path]) -> Origin | None:
        """Return what can be the solution's own; None where that is gone by now, and names have to do."""
        artefacts = [*built, *filter(None, [self._artefact.library])]
        try:
            return Origin.of(self._solution, artefacts)
        except OSError:
            return None

    def _clock(self) -> WallClockCheck:
        """The judge's own, made while there is no candidate to disturb it."""
        limits, env = self._conditions, devices.environment_of_one(self._device)

        def fork(fds: list[int]) -> Worker:
            return self._server.fork(env, limits.memory_bytes, fds, devices=self._on_gpu)

        return (GpuWallClockCheck if self._on_gpu else CpuWallClockCheck)(self._sides, limits.timeout_s, fork)

    def _build_context(self) -> BuildContext:
        limits = self._conditions
        arch = devices.architecture(self._device)
        return BuildContext(self._server, arch, torch.__version__, limits.build_timeout_s, limits.memory_bytes)

    def _load(self) -> dict[str, Any]:
        signature = self._sides.signature
        return self._sides.ask(
            op="load",
            problem=encode_problem(self._problem),
            workload=self._workload.name,
            solution=str(self._solution.path),
            library=str(self._artefact.library) if self._artefact.library else None,
            signature=signature.for_library() if signature else None,
            device=str(self._conditions.worker_device),
            precision=self._conditions.precision,
            seed=self._weight_seed,
            timed=dataclasses.astuple(self._sides.reference.setting.timed),
            outbox=self._sides.outbox.handle,
        )

    def _check(self, copied: bool) -> list[InputCase]:
        """The correctness trials, one call each, every output compared; returns those that could be judged."""
        judged = []
        trials = self._sides.reference.trials(copied)
        for position, trial in enumerate(trials, start=1):
            self._phase(f"check {position}/{len(trials)}")
            seeds = fresh_seeds(1)
            self._sides.play_candidate(trial, seeds, held=None)
            reference = self._sides.play_reference(trial, seeds, held=None)
            finite = all(is_finite(as_tensor(leaf)) for leaf in reference.outputs[0])
            if trial == PUBLISHED or finite:  # else outside of the function's domain
                with _explained(trial, copied):
                    self._sides.compare(trial, seeds, 0, reference, with_inputs=trial.weights == "initial")
                judged.append(trial)
        for weights in {trial.weights for trial in trials} - {self._sides.reference.setting.timed.weights}:
            self._sides.ask(op="forget", weights=weights)
        self._sides.reference.forget_others()
        return judged


_GUARDED = (
    "\na guard page lies behind every input, weight and output: it may have read or written past the end of one"
)
_CHANGED = (
    "weights of the reference that start as ones, zeros or another constant were changed, and so were "
    "tensors of the candidate that start as the same constant of as many elements"
)
_HARDENED = (
    "with the initial weights outputs hardly depend on inputs, so layers start with larger ones here, and with others "
    "than ones and zeros"
)
_NOT_COPIED = "With the names and shapes of the reference's state it would be given all weights"


@contextlib.contextmanager
def _explained(trial: InputCase, copied: bool) -> Iterator[None]:
    """A failure under weights that only a part of the candidates gets says what these are."""
    try:
        yield
    except CandidateFailure as failure:
        if trial.weights != "initial" and not copied:
            failure.message += f"; {_CHANGED if trial == CHANGED else _HARDENED}. {_NOT_COPIED}"
        raise
