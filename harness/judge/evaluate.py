"""The trusted side of one evaluation: prepare, load, check, time, cross-check, time alone, score.

The candidate runs in a worker of its own. It learns the seed of a call only when it is to make that call. The judge
draws the same inputs afterwards, calls the reference, and compares. A timed round has several calls, of candidate
and baselines in turn; one of them, chosen afterwards, is compared too.
"""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from harness import device as devices
from harness.compile.artefact import Artefact, BuildContext
from harness.compile.extension.build import ExtensionBuilder
from harness.faults import MachineFault
from harness.integrity.plausibility import check_plausible
from harness.job import encode_problem
from harness.judge import record
from harness.judge.check import allclose, check
from harness.judge.conditions import Conditions
from harness.judge.cross_check.base import NotHeld, Rehearsal
from harness.judge.cross_check.check import cross_check
from harness.judge.cross_check.cpu import CpuRehearsal, CpuWallClockCheck
from harness.judge.cross_check.gpu import GpuRehearsal, GpuWallClockCheck
from harness.judge.reference.prepare import Prepared, prepare
from harness.judge.reference.session import ReferenceSession
from harness.judge.session import EvaluationSession, number
from harness.judge.time_alone import time_alone
from harness.judge.time_candidate import Timed, time_in_turn
from harness.problem.math_modes import pin_math_modes
from harness.problem.module import ProblemError, Workload
from harness.process.fork_server import ForkServer
from harness.process.worker_process import Builder, Worker
from harness.result import CandidateFailure, Result, Status
from harness.solution.discover import Solution
from harness.solution.visible_files import own_files
from harness.timing.interleaved import CANDIDATE

_GUARDED = (
    "\na guard page lies behind every input, weight and output: it may have read or written past the end of one"
)


def evaluate(
    workload: Workload,
    solution: Solution,
    artefact: Artefact,
    conditions: Conditions,
    server: ForkServer,
    phase: Callable[[str], None] = lambda text: None,
    check_only: bool = False,
) -> Result:
    """Check and time one built candidate; with ``check_only`` a right one has no times in its record.

    Raises ProblemError where the reference does not run or cannot be judged against, and MachineFault
    where the machine fails; everything that the candidate does ends in the result's status.
    """
    begin = time.perf_counter()
    result = record.blank_result(workload, solution, conditions)
    result.build = artefact.to_json()
    stages = record.Stages()
    try:
        stages.begin("wait")  # for the device
        with devices.exclusive(conditions.device, phase):
            evaluation = Evaluation(solution, artefact, conditions, server, phase, stages)
            (evaluation.run if workload.is_timed and not check_only else evaluation.check)(workload, result)
        result.status = Status.OK
    except CandidateFailure as failure:
        if artefact.library and conditions.device.type == "cpu" and "SIGSEGV" in failure.message:
            failure.message += _GUARDED
        record.add_failure(result, solution, failure)
    stages.end()
    result.stages_s = stages.seconds
    result.seconds = round(time.perf_counter() - begin + artefact.seconds, 3)
    return result


@contextlib.contextmanager
def _beside_candidate() -> Iterator[None]:
    """Raise MachineFault for a problem that fails while a candidate is there, which may have made it fail.

    Or may be wrong only where the reference has no value: it is tried again, and beside the reference in its place.
    """
    try:
        yield
    except ProblemError as error:
        raise MachineFault(str(error)) from error


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """One candidate's way through check and timing."""

    solution: Solution
    artefact: Artefact
    conditions: Conditions
    server: ForkServer
    phase: Callable[[str], None]
    stages: record.Stages

    def run(self, workload: Workload, result: Result) -> None:
        """Fill ``result`` as things become known; raises CandidateFailure where the candidate fails."""
        conditions = self.conditions
        self.stages.begin("reference")
        result.integrity["track"] = "kernels" if conditions.needs_own_kernels else "open"
        result.conditions = pin_math_modes() | {"isolation": self.server.isolation}
        prepared = prepare(workload, conditions, is_library=self.artefact.library is not None)
        result.workload["bytes"] = prepared.facts.traffic
        judge = ReferenceSession(prepared, conditions)
        builder = self.builder()
        with contextlib.closing(prepared.outbox), contextlib.closing(self._rehearsal(judge)) as rehearsal:
            self.stages.begin("load")
            worker = self.start_worker(prepared, [rehearsal.fd], builder)
            try:
                with _beside_candidate(), worker:
                    timed = self._judge(EvaluationSession(prepared, conditions, worker), rehearsal, result)
                    self.stages.begin("close")
            finally:
                result.conditions["left_behind"] = worker.left
        self.stages.begin("time")
        time_alone(judge, result, timed)
        self.stages.begin("analyse")
        record.add_rates(result, workload, conditions)
        own, kind = conditions.needs_own_kernels, conditions.device.type
        check_plausible(result, self.solution, self.artefact, builder.libraries, own, kind)

    def check(self, workload: Workload, result: Result) -> None:
        """Fill ``result`` with what a check says, without timing; raises CandidateFailure where the candidate fails."""
        result.conditions = pin_math_modes() | {"isolation": self.server.isolation}
        prepared = prepare(workload, self.conditions, is_library=self.artefact.library is not None)
        with contextlib.closing(prepared.outbox), self.start_worker(prepared, [], self.builder()) as worker:
            session = EvaluationSession(prepared, self.conditions, worker)
            with _beside_candidate():
                self._check(session, result)
            result.correctness |= session.errors.to_json()

    def _judge(self, session: EvaluationSession, rehearsal: Rehearsal, result: Result) -> Timed:
        """Load, check, time and cross-check, while the candidate is there."""
        self._check(session, result, timed_after=True)
        timed = self._time(session, rehearsal, result)
        result.correctness |= session.errors.to_json()
        return timed

    def _check(self, session: EvaluationSession, result: Result, timed_after: bool = False) -> None:
        """Load the candidate and compare its outputs."""
        self.phase("load")
        loaded = self.load(session)
        weights_copied = self.artefact.library is not None or loaded.get("weights") == "copied"
        self.stages.begin("check")
        if session.reference.setting.workload.problem.allclose:
            result.correctness = {"allclose": allclose(session)}
        cases = check(session, weights_copied, self.phase, timed_after)
        result.correctness = (result.correctness or {}) | {
            "trials": [str(case) for case in cases],
            "timed": str(session.reference.setting.timed),
            "weights": "copied" if weights_copied else "seeded",
            "setup_s": number(loaded.get("setup_s")),
            "tolerance": max(criterion.tolerance for criterion in session.criteria),
        }

    def _time(self, session: EvaluationSession, rehearsal: Rehearsal, result: Result) -> Timed:
        """Time both sides in turn and cross-check; once more with launches where they cannot be kept out."""
        clock = (GpuWallClockCheck if self._on_gpu else CpuWallClockCheck)(session, rehearsal)
        launch_bound: frozenset[str] = frozenset()
        while True:
            self.phase("time")
            self.stages.begin("time")
            timed = time_in_turn(session, result, self.phase, launch_bound)
            self.phase("cross-check")
            self.stages.begin("cross_check")
            try:
                cross_check(clock, result, timed)
            except NotHeld:
                launch_bound = frozenset({CANDIDATE})  # whose bursts are not held
            else:
                return timed

    @property
    def _on_gpu(self) -> bool:
        return self.conditions.device.type == "cuda"  # what runs there may open GPUs, and nobody else

    def _rehearsal(self, judge: ReferenceSession) -> Rehearsal:
        """Learn what the judge's own clock takes by itself, while there is no candidate to disturb it."""
        limits, env = self.conditions, devices.environment_of_one(self.conditions.device)

        def fork(fds: list[int]) -> Worker:
            return self.server.fork(env, limits.memory_bytes, fds, devices=self._on_gpu)

        return (GpuRehearsal if self._on_gpu else CpuRehearsal)(judge, limits.timeout_s, fork)

    def builder(self) -> ExtensionBuilder:
        """Return what builds the extensions that the candidate asks for."""
        return ExtensionBuilder(self.solution, self._build_context())

    def start_worker(
        self, prepared: Prepared, fds: list[int], builder: Builder, readable: Sequence[Path] = ()
    ) -> Worker:
        """Start the candidate's process, with the descriptors ``fds`` behind those of its outbox.

        For a library nothing is built: it has no way to ask, but by messages of its own.
        """
        problem = prepared.reference.setting.workload.problem
        others = [path.resolve() for path in (problem.path, *readable)]
        source, *files = own_files(self.solution)
        own = files if self.artefact.library else [source, *files]  # see ``harness.compile.code_digest``
        return self.server.fork(
            self.artefact.env | devices.environment_of_one(self.conditions.device),
            self.conditions.memory_bytes,
            [*prepared.outbox.fds, *fds],
            None if self.artefact.library else builder,
            readable=[*own, *others],
            writable=self.artefact.writable,
            devices=self._on_gpu,
        )

    def _build_context(self) -> BuildContext:
        limits = self.conditions
        arch = devices.architecture(limits.device)
        return BuildContext(self.server, arch, torch.__version__, limits.build_timeout_s, limits.memory_bytes)

    @staticmethod
    def copy_for(worker: Worker) -> Path:
        """Return where a worker's copy of a library is."""
        return worker.scratch / "solution.so"

    def load(self, session: EvaluationSession) -> dict[str, Any]:
        """Have the worker load the candidate; return its answer."""
        prepared, setting = session.prepared, session.reference.setting
        library = None
        if self.artefact.library:  # which is told neither its source nor its place in the cache
            path = shutil.copyfile(self.artefact.library, self.copy_for(session.worker))
            library = {"path": str(path), "signature": prepared.facts.signature.for_library()}
        return session.ask(
            op="load",
            solution="" if library else str(self.solution.path),
            library=library,
            setting={
                "problem": encode_problem(setting.workload.problem),
                "workload": setting.workload.name,
                "changed": setting.workload.changed,
                "device": str(self.conditions.worker_device),
                "precision": self.conditions.precision,
                "timed": dataclasses.astuple(setting.timed),
            },
            seed=session.reference.weight_seed,
            outbox=prepared.outbox.handle,
        )
