"""The trusted side of one evaluation: seeds, reference, comparison, timing, verdict.

The path of a candidate: ``evaluate`` starts a worker, has it load the candidate,
then plays rounds. In each round the worker runs the candidate on inputs drawn
from seeds that it learns only then; afterwards, and only then, the judge draws
the same inputs, runs the reference and compares. Rounds of one call come first
(the correctness trials, on hardened draws too), then timed rounds of several
calls on published inputs, candidate and baseline in turn; of each of those, one
call that nobody could foresee is compared too.
"""

from __future__ import annotations

import datetime
import random
import secrets
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from harness import device as devices
from harness.build.artefact import Artefact, BuildContext
from harness.build.extension import ExtensionBuilder
from harness.codec import encode_problem
from harness.draw import DTYPES, as_tensor
from harness.integrity import below_floor, forged_clock, library_only, overwritten_inputs, slowed_baseline
from harness.integrity.static import findings
from harness.judge import profile
from harness.judge.baselines import BASELINES, COMPILING_CALLS, EAGER
from harness.judge.clock import Burst, JudgeClock
from harness.judge.compare import Errors, check_kind, check_values, strict_criterion
from harness.judge.contest import CANDIDATE, Contest, bytes_of_call, calls_a_round
from harness.judge.overflow import overflown
from harness.judge.reference import PUBLISHED, Reference, Trial
from harness.judge.stages import Stages
from harness.math_modes import pin_math_modes
from harness.outbox import Outbox, lay_out
from harness.problem import Problem, ProblemError, Workload
from harness.process import ForkServer, Worker
from harness.result import CandidateFailure, Result, Status
from harness.rounds import Round, Setting, outputs_of, play
from harness.signature import derive_signature
from harness.sol.headroom import headroom
from harness.solution import Solution
from harness.timing import cupti, timer_for
from harness.timing.burst import GateError
from harness.timing.paired import Series

_LAUNCH_BOUND_CALLS = 20
_PROFILED_CALLS = 5
_ROUNDS_ALONE = 5
_READINGS = 3
_ERROR_CHARACTERS = 2000
_CACHE_MEMORY_SHARE = 4  # and what the judge's allocator keeps between rounds, one in so many


@dataclass(frozen=True)
class Conditions:
    """How a candidate is evaluated, apart from problem and solution."""

    device: torch.device
    precision: str = "fp32"
    timeout_s: float = 120.0
    memory_bytes: int = 8 << 30
    build_timeout_s: float = 900.0  # of what a candidate builds only when it is loaded or called
    baselines: tuple[str, ...] = (EAGER,)  # timed in turn; the first is what the speedup is over
    criterion: str = "sem"
    track: str | None = None  # 'kernels' or 'open'; None is 'kernels' on a GPU, where kernels are seen, else 'open'

    @property
    def needs_own_kernels(self) -> bool:
        return (self.track or ("kernels" if self.device.type == "cuda" else "open")) == "kernels"


def evaluate(
    workload: Workload,
    solution: Solution,
    artefact: Artefact,
    conditions: Conditions,
    server: ForkServer,
    phase: Callable[[str], None] = lambda text: None,
) -> Result:
    """Check and time one built candidate.

    Raises ProblemError where the reference itself does not run; everything that
    the candidate does ends in the result's status.
    """
    begin = time.perf_counter()
    result = blank_result(workload, solution, conditions)
    result.build = artefact.to_json()
    stages = Stages()
    try:
        stages.begin("wait")  # for the device
        with devices.exclusive(conditions.device):
            stages.begin("reference")
            _Evaluation(workload, solution, artefact, conditions, server, phase, stages).into(result)
        result.status = Status.OK
    except CandidateFailure as failure:
        _record_failure(result, failure)
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
    _record_failure(result, failure)
    return result


def _record_failure(result: Result, failure: CandidateFailure) -> None:
    result.status, result.message, result.log, result.rule = failure.status, failure.message, failure.log, failure.rule


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
        setting = Setting(workload, conditions.device, DTYPES[conditions.precision])
        self._weight_seed = secrets.randbits(62)
        self._reference = Reference(setting, self._weight_seed)
        self._criterion = strict_criterion(self._problem, setting.dtype)
        self._losses: dict[tuple[Trial, int], float] = {}  # by trial and output
        self._random = random.SystemRandom()
        self._errors = Errors()
        self._worker: Worker | None = None

    def into(self, result: Result) -> None:
        """Fill ``result`` as things become known; raises CandidateFailure where the candidate fails."""
        result.integrity["track"] = "kernels" if self._conditions.needs_own_kernels else "open"
        result.conditions = pin_math_modes() | {"isolation": self._server.isolation}
        self._timer = timer_for(self._device)
        seed = secrets.randbits(62)
        example = self._play_reference(PUBLISHED, [seed])
        self._must_be_finite(seed, example.outputs[0])
        self._expected_kind = [as_tensor(leaf).to("meta") for leaf in example.outputs[0]]
        inputs = _tensors(example.inputs[0])
        traffic = bytes_of_call(self._workload, self._reference.model(), inputs, self._expected_kind)
        result.workload["bytes"] = traffic
        outbox = Outbox(self._device, self._expected_kind, inputs)
        del example, inputs
        setting = self._reference.setting
        self._clock = JudgeClock(setting, self._reference.model(), self._ask, self._timer, self._conditions.timeout_s)
        self._stages.begin("load")
        try:
            builder = ExtensionBuilder(self._solution, self._build_context())
            limit = self._conditions.memory_bytes
            fds = [*outbox.fds, *self._clock.fds]
            readable = [self._problem.path, self._solution.root, *self._artefact.readable]
            writable = self._artefact.writable
            with self._server.fork(self._artefact.env, limit, fds, builder, readable, writable) as worker:
                self._worker = worker
                self._outbox = outbox
                self._phase("load")
                loaded = self._load()
                self._stages.begin("check")
                copied = loaded.get("weights") == "copied"
                trials = self._check(copied)
                result.correctness = {
                    "trials": [str(trial) for trial in trials],
                    "weights": "copied" if copied else "seeded",
                    "setup_s": _number(loaded.get("setup_s")),
                    "tolerance": self._criterion.tolerance,
                }
                self._phase("time")
                self._stages.begin("time")
                contest = self._time(result, traffic)
                self._stages.begin("witness")
                self._phase("witness")
                self._witness(result, traffic)
                result.correctness |= self._errors.to_json()
                self._stages.begin("close")
        finally:
            outbox.close()
            self._clock.close()
            self._clock = None  # it refers back to this evaluation, which holds device memory
            if self._worker:
                result.conditions["left_behind"] = self._worker.left
        self._stages.begin("analyse")
        self._worker = None
        self._time_alone(result, contest)
        median_ms = result.timing["median_ms"]
        result.speedup = next((b["speedup"] for b in result.baselines.values() if "speedup" in b), None)
        result.gbps = traffic / median_ms / 1e6
        if self._workload.flops is not None:
            result.gflops = self._workload.flops / median_ms / 1e6
        result.sol = headroom(self._workload, self._reference.setting.dtype, self._device, median_ms, result.conditions)
        self._judge_identity(result, bool(builder.keys))

    def _judge_identity(self, result: Result, built: bool) -> None:
        """Is the time possible, and is the work the solution's own?"""
        median_ms, profile = result.timing["median_ms"], result.timing.get("profile")
        below_floor.check(median_ms, result.sol)
        result.integrity["faster_than_direct"] = below_floor.between_bounds(median_ms, result.sol)
        if profile:
            own, share = library_only.own_kernels(profile)
            result.integrity |= {"own_kernels": own, "own_share": share}
        if not self._conditions.needs_own_kernels:
            return
        if self._device.type == "cuda" and profile:
            library_only.check(profile)
        elif self._device.type == "cpu":
            library_only.check_on_cpu(built or self._artefact.library is not None)

    def _build_context(self) -> BuildContext:
        limits = self._conditions
        arch = devices.architecture(self._device)
        return BuildContext(self._server, arch, torch.__version__, limits.build_timeout_s, limits.memory_bytes)

    def _load(self) -> dict[str, Any]:
        signature = None
        if self._artefact.library:
            derived = derive_signature(self._workload, self._reference.setting.dtype)
            signature = {
                "outputs": [{"shape": t.shape, "dtype": str(t.dtype).removeprefix("torch.")} for t in derived.outputs],
                "scalars": [{"value": s.value, "c_type": s.c_type} for s in derived.scalars],
            }
        return self._ask(
            op="load",
            problem=encode_problem(self._problem),
            workload=self._workload.name,
            solution=str(self._solution.path),
            library=str(self._artefact.library) if self._artefact.library else None,
            signature=signature,
            device=str(self._device),
            precision=self._conditions.precision,
            seed=self._weight_seed,
            outbox=self._outbox.handle,
        )

    def _check(self, copied: bool) -> list[Trial]:
        """The correctness trials, one call each, every output compared; returns those that could be judged.

        Only a candidate whose state is ``copied`` from the reference can follow it to other weights.
        """
        judged = []
        trials = [trial for trial in self._reference.trials() if copied or trial.weights == "initial"]
        for number, trial in enumerate(trials):
            self._phase(f"check {number + 1}/{len(trials)}")
            seeds = [secrets.randbits(62)]
            self._play_candidate(trial, seeds)
            reference = self._play_reference(trial, seeds)
            if trial == PUBLISHED or _finite(reference.outputs[0]):  # else outside of the function's domain
                self._compare(trial, seeds, 0, reference, with_inputs=trial.weights == "initial")
                judged.append(trial)
        self._ask(op="forget", weights="hardened")
        self._reference.forget("hardened")
        return judged

    def _time(self, result: Result, traffic: int) -> Contest:
        """Paired rounds of candidate and baselines; fills in what they tell."""
        baselines = {name: BASELINES[name](self._reference.model()) for name in self._conditions.baselines}
        baselines = {name: model for name, model in baselines.items() if self._runs(name, model, result)}
        calls = calls_a_round(self._device, self._conditions.memory_bytes, traffic)
        contest = Contest(
            lambda calls, first: self._timed_round(calls, baselines, first),
            self._timer, self._device, self._conditions.criterion,
        )  # fmt: skip
        contest.run(calls)
        result.timing = contest.record(CANDIDATE)
        result.conditions |= contest.conditions()
        for name in baselines:
            result.baselines[name] = contest.record(name) | contest.comparison(name)
        return contest

    def _runs(self, name: str, model: Callable, result: Result) -> bool:
        """Whether a baseline runs at all, which for a compiled one is when it is compiled."""
        if name == EAGER:
            return True
        self._phase(f"compile {name}")
        try:
            for _ in range(COMPILING_CALLS):
                self._with_room(lambda: play(model, self._reference.setting, [secrets.randbits(62)], self._timer))
        except CandidateFailure:
            raise
        except Exception as error:
            result.baselines[name] = {"error": f"{type(error).__name__}: {error}"[:_ERROR_CHARACTERS]}
            return False
        return True

    def _timed_round(self, calls: int, baselines: dict[str, Callable], first: bool) -> dict[str, Round]:
        """Candidate, then the baselines on the same inputs; one call's output is compared."""
        seeds = [secrets.randbits(62) for _ in range(calls)]
        played = {CANDIDATE: self._play_candidate(PUBLISHED, seeds)}
        reference = self._play_reference(PUBLISHED, seeds)
        self._compare(PUBLISHED, seeds, self._random.randrange(calls), reference, with_inputs=first)
        for name, model in baselines.items():
            if name == EAGER:
                played[name] = reference
            else:
                played[name] = self._with_room(lambda m=model: play(m, self._reference.setting, seeds, self._timer))
                played[name].outputs, played[name].inputs = [], []
        return played

    def _witness(self, result: Result, traffic: int) -> None:
        """What CUPTI and the judge's own clock say about the candidate's time."""
        timing = result.timing
        if self._device.type == "cuda":
            seeds = [secrets.randbits(62) for _ in range(min(_LAUNCH_BOUND_CALLS, 2 * timing["calls_a_round"]))]
            timing["launch_bound_ms"] = _number(self._ask(op="launch_bound", seeds=seeds).get("wall_ms"))
            if cupti.available():
                timing["profile"] = self._profile(timing["calls_a_round"])
        launches = timing.get("profile", {}).get("launches", 1) + len(self._expected_kind)
        calls = self._clock.calls(timing["median_ms"], launches, traffic)
        if calls == 0:
            timing["judge_clock"] = "not read: a burst does not fit the memory"
            return
        try:
            for _ in range(_READINGS):  # somebody else's work may be in one of them, a forged clock is in all
                reading = self._clock.read(self._expected_kind, calls, timing["queue_full"], self._compare_burst)
                if forged_clock.agree(timing["median_ms"], reading.call_ms, reading.held, self._device.type):
                    break
        except (GateError, torch.OutOfMemoryError) as error:
            timing["judge_clock"] = f"not read: {error}"
            return
        except CandidateFailure as failure:
            if failure.status is not Status.OUT_OF_MEMORY:
                raise
            timing["judge_clock"] = "not read: a burst does not fit the memory"
            return
        timing["judge_clock"] = reading.to_json()
        forged_clock.check(timing["median_ms"], reading.call_ms, calls, reading.held, self._device.type)

    def _profile(self, calls_a_round: int) -> dict[str, Any]:
        """What the device runs in a call, of a few the one with the median span."""
        calls = min(_PROFILED_CALLS, calls_a_round)
        found = []
        for _ in range(-(-_PROFILED_CALLS // calls)):
            seeds = [secrets.randbits(62) for _ in range(calls)]
            found.append(profile.checked(self._ask(op="profile", seeds=seeds)))
        return sorted(found, key=lambda one: one["span_ms"])[len(found) // 2]

    def _compare_burst(self, burst: Burst, call: int, outputs: list[torch.Tensor]) -> None:
        """The outputs of one call of a burst, as they lay in the judge's memory when its clock stopped."""
        setting = self._reference.setting
        expected = outputs_of(self._reference.model(), setting, burst.inputs[call], burst.seeds[call])
        for index, (actual, tensor) in enumerate(zip(outputs, expected)):
            which = "the output of a call in a row" if len(expected) == 1 else f"output {index} of a call in a row"
            self._check_output(lambda actual=actual: actual, tensor, which, PUBLISHED, index, burst.drawn[call])

    def _time_alone(self, result: Result, contest: Contest) -> None:
        """The baseline once more, when the candidate has ended: was it slower beside it?"""
        name = next(iter(self._conditions.baselines), None)
        if name != EAGER or self._device.type != "cuda":
            return
        rounds = Series()
        for _ in range(_ROUNDS_ALONE):
            seeds = [secrets.randbits(62) for _ in range(len(contest.series[name].rounds_ms[0]))]
            played = self._play_reference(PUBLISHED, seeds)
            played.outputs, played.inputs = [], []
            rounds.add(played.times_ms, True, False)
        beside_ms = statistics.median(contest.series[name].means_ms)
        alone_ms = statistics.median(rounds.means_ms) - self._timer.overhead_ms
        result.baselines[name]["alone_ms"] = alone_ms
        slowed_baseline.check(beside_ms, alone_ms)

    def _play_candidate(self, trial: Trial, seeds: list[int]) -> Round:
        """The candidate's round; its outputs stay in the worker, what they look like is checked here."""
        answer = self._ask(op="run", seeds=seeds, draw=trial.draw, weights=trial.weights)
        times, outputs = answer.get("times_ms"), answer.get("outputs")
        if not isinstance(times, list) or not isinstance(outputs, list) or not len(times) == len(outputs) == len(seeds):
            raise CandidateFailure(Status.CRASHED, "the worker's answer does not match the calls that were asked for")
        for described in outputs:
            check_kind(described, self._expected_kind, self._device)
        return Round([], [], [_number(t) for t in times], answer.get("queue_full") is True)

    def _play_reference(self, trial: Trial, seeds: list[int]) -> Round:
        try:
            played = self._with_room(lambda: self._reference.play(trial, seeds, self._timer))
        except CandidateFailure:
            raise
        except Exception as error:
            problem = self._problem
            raise ProblemError(
                f"the reference of {problem.id} ({self._workload.name}, {self._conditions.precision}) fails on "
                f"{self._device}: {type(error).__name__}: {error}"
            ) from error
        _give_memory_back(self._device)
        return played

    def _must_be_finite(self, seed: int, outputs: list) -> None:
        """Raises ProblemError where the precision cannot hold what the reference computes on published inputs."""
        if _finite(outputs):
            return
        if lost := self._with_room(lambda: overflown(self._reference, seed)):
            raise ProblemError(
                f"the reference of {self._problem.id} ({self._workload.name}) is not finite in {lost} elements with "
                f"{self._conditions.precision}, but is with FP64: there is nothing to compare with; "
                "choose another --precision"
            )

    def _compare(self, trial: Trial, seeds: list[int], call: int, reference: Round, with_inputs: bool) -> None:
        """Every output of one call of the last round, and with ``with_inputs`` what became of its inputs."""
        expected = [as_tensor(leaf) for leaf in reference.outputs[call]]
        inputs = _tensors(reference.inputs[call]) if with_inputs else []
        reference.outputs, reference.inputs = [], []  # frees what is not needed here
        self._ask(op="fetch", call=call, what="outputs")
        for index, (slot, tensor) in enumerate(zip(lay_out(expected), expected)):
            which = "the output" if len(expected) == 1 else f"output {index}"
            which += "" if trial == PUBLISHED else f" ({trial})"
            self._check_output(lambda slot=slot: self._outbox.read(slot), tensor, which, trial, index, seeds[call])
        if with_inputs:
            self._ask(op="fetch", call=call, what="inputs")
            for index, (slot, tensor) in enumerate(zip(lay_out(inputs), inputs)):
                left = self._with_room(lambda slot=slot: self._outbox.read(slot))
                overwritten_inputs.check(left, tensor, index)

    def _check_output(
        self, read: Callable[[], torch.Tensor], expected: torch.Tensor, which: str, trial: Trial, index: int, seed: int
    ) -> None:
        """Compare one output, if need be once more, knowing what PyTorch's own result loses on these inputs."""
        try:
            self._check_values(read, expected, which, trial, index)
        except CandidateFailure as failure:
            if trial == PUBLISHED:
                self._must_be_finite(seed, [expected])
            if failure.status is not Status.WRONG_VALUE:
                raise
            self._learn_losses(trial, seed)
            self._check_values(read, expected, which, trial, index)

    def _check_values(self, read, expected: torch.Tensor, which: str, trial: Trial, index: int) -> None:
        criterion = replace(self._criterion, loss=self._losses.get((trial, index), 0.0))
        check_values(self._with_room(read), expected, criterion, which, self._errors)

    def _with_room(self, action: Callable[[], Any]) -> Any:
        """``action()``; where the device's memory is full, once more after both sides emptied their caches."""
        try:
            return action()
        except torch.OutOfMemoryError:
            if self._worker is None:
                raise
        self._ask(op="trim")
        torch.cuda.empty_cache()
        return action()

    def _ask(self, **request: Any) -> dict[str, Any]:
        return self._worker.request(request, self._conditions.timeout_s)

    def _learn_losses(self, trial: Trial, seed: int) -> None:
        """What PyTorch's own result loses on this call; kept for its trial, because it costs an FP64 forward."""
        losses = self._with_room(lambda: self._reference.losses(trial, seed))
        for output, loss in enumerate(losses):
            self._losses[trial, output] = max(loss, self._losses.get((trial, output), 0.0))


def _tensors(values: list) -> list[torch.Tensor]:
    return [value for value in values if isinstance(value, torch.Tensor)]


def _finite(leaves: list) -> bool:
    return all(bool(as_tensor(leaf).isfinite().all()) for leaf in leaves)


def _number(value: Any) -> float:
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
