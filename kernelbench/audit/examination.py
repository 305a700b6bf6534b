"""Audit one workload of one problem.

Plays the correctness trials that a candidate would meet, with trivial answers and with
mutants of the reference in the candidate's place, and reports which of them pass.
Everything runs in this process: the reference is trusted, and so are its mutants.
"""

from __future__ import annotations

import contextlib
import copy
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from harness import device as devices
from harness.judge.compare import Errors, check_values
from harness.judge.criterion import Criterion, strict_criterion
from harness.judge.reference import soundness
from harness.judge.reference.model import PUBLISHED, InputCase, Loss, Reference, cast, default_dtype
from harness.problem.inputs import DTYPES, call, seed_generators
from harness.problem.math_modes import pin_math_modes
from harness.problem.module import Workload
from harness.problem.signature import Signature, derive_signature
from harness.result import CandidateFailure
from harness.sol.operators import trace
from harness.tensors.dtypes import is_finite
from harness.tensors.outputs import as_tensor, flatten
from harness.timing.rounds import RunConfig
from kernelbench.audit.answers import ANSWERS, Known
from kernelbench.audit.mutants import LIMIT, STALE, Mutant, Mutating, Recorder, candidates
from kernelbench.audit.operator_call import Inapplicable
from kernelbench.audit.record import Audit

_WEIGHT_SEED = 7
_EXAMPLE_SEED = 2000
_GIVE_UP = 3  # failures after which a mutation counts as inapplicable to an operator
_EQUIVALENT = 1e-9  # of the root mean square, in FP64


@dataclass
class Scene:
    """One trial: its inputs, what is expected, and the model that gives it."""

    trial: InputCase
    seed: int
    inputs: list
    expected: list[Tensor]
    other: list[Tensor]
    other_inputs: list
    model: torch.nn.Module
    loss: list[Loss] | None = None  # found out where it is needed
    wide: list[Tensor] | None = None  # expected in FP64, the same


def audit(workload: Workload, device: torch.device) -> Audit:
    """Raises ProblemError where the reference does not run, or the judge would not judge against it."""
    begin = time.perf_counter()
    pin_math_modes()
    examined = _Examination(workload, device)
    examined.check_soundness()
    record = examined.record()
    examined.mutate(record)
    record.seconds = round(time.perf_counter() - begin, 1)
    return record


class _Examination:
    def __init__(self, workload: Workload, device: torch.device):
        self._workload, self._device = workload, device
        self._problem = workload.problem
        self._reference = Reference(RunConfig(workload, device, DTYPES["fp32"]), _WEIGHT_SEED)
        self._wide_models: dict[str, torch.nn.Module] = {}

    def check_soundness(self) -> None:
        """Check a reference as the judge does before any candidate; raises ProblemError."""
        example = self._reference.call(PUBLISHED, _EXAMPLE_SEED)
        soundness.check(self._reference, _EXAMPLE_SEED, example)

    @cached_property
    def scenes(self) -> list[Scene]:
        """The trials whose reference is finite, as the judge would play them."""
        scenes = []
        for seed, trial in enumerate(self._reference.trials(copied=True)):
            model = self._reference.model(trial.weights)
            inputs, other_inputs = self._inputs(trial, seed), self._inputs(trial, 1000 + seed)
            expected, other = self._run(model, inputs, seed), self._run(model, other_inputs, 1000 + seed)
            if trial == PUBLISHED or all(map(is_finite, expected)):
                scenes.append(Scene(trial, seed, inputs, expected, other, other_inputs, model))
        return scenes

    def record(self) -> Audit:
        """Everything but the mutants."""
        workload, first = self._workload, self.scenes[0]
        published = self._problem.workload(next(iter(self._problem.workloads)))
        signature = derive_signature(workload)
        recorder = Recorder()
        again = self._run(first.model, first.inputs, first.seed, recorder)
        self._operators = recorder.operators
        shapes = [tuple(t.shape) for t in first.expected]
        return Audit(
            problem=str(self._problem.id),
            name=self._problem.name,
            sha256=self._problem.sha256,
            workload=workload.name,
            sizes=workload.sizes,
            operators=dict(Counter(recorder.operators)),
            flops=workload.flops,
            bytes=_traffic(workload, signature),
            published_flops=published.flops,
            published_bytes=_traffic(published, derive_signature(published)),
            outputs=[list(shape) for shape in shapes],
            finite=all(map(is_finite, first.expected)),
            deterministic=all(torch.equal(a, b) for a, b in zip(first.expected, again)),
            shapes_as_declared=shapes == [t.shape for t in signature.outputs],
            flops_as_declared=workload.flops in (None, trace(workload).flops),
            trials=[str(scene.trial) for scene in self.scenes],
            without_effect=self._without_effect(),
            answers=self._answers(),
            explained=getattr(self._problem.module, "TRIVIAL", {}),
            device=devices.describe(self._device)["name"],
            versions=devices.versions(self._device),
        )

    def mutate(self, record: Audit) -> None:
        """Try mutants until ``LIMIT`` of them compute another function, or there are no more."""
        refused: Counter[tuple[str, str]] = Counter()
        seed = 1000 * self._problem.id.level + self._problem.id.number
        for mutant in candidates(self._operators, seed):
            kind = (mutant.mutation, mutant.operator)
            if record.mutants >= LIMIT:
                return
            if refused[kind] >= _GIVE_UP:
                continue
            try:
                killer = self._killed_by(mutant)
            except Equivalent:
                record.equivalent += 1
                refused[kind] += 1
                continue
            except Exception:  # inapplicable, or a computation that does not run: no mutant
                refused[kind] += 1
                continue
            record.mutants += 1
            record.killed += killer is not None
            record.killed_as_published += killer == PUBLISHED
            if killer is None:
                record.survivors.append(str(mutant))

    # -- what passes --------------------------------------------------------------------------

    def _passes(self, actual: list[Tensor], scene: Scene) -> bool:
        """The judge's comparison, the appeal to PyTorch's own loss included."""
        for index, (mine, expected) in enumerate(zip(actual, scene.expected)):
            if mine.shape != expected.shape or mine.dtype != expected.dtype:
                return False
            criterion = strict_criterion(self._problem, torch.float32, expected.dtype)
            if not _within(mine, expected, criterion):
                if scene.loss is None:
                    scene.loss = self._reference.losses(scene.trial, scene.seed)
                loss, instead = scene.loss[index]
                if not _within(mine, expected if instead is None else instead, replace(criterion, loss=loss)):
                    return False
        return True

    def _answers(self) -> dict[str, list[str]]:
        passed: dict[str, list[str]] = {}
        previous = self.scenes[-1].expected
        for scene in self.scenes:
            known = Known(scene.inputs, scene.other, previous, scene.expected)
            for name, answer in ANSWERS.items():
                actual = answer(known)
                if actual is not None and self._passes(actual, scene):
                    passed.setdefault(name, []).append(str(scene.trial))
            previous = scene.expected
        return passed

    # -- mutants ------------------------------------------------------------------------------

    def _killed_by(self, mutant: Mutant) -> InputCase | None:
        """The first trial that the mutant fails; raises Equivalent where it computes the same function."""
        identical = True
        for scene in self.scenes:
            actual = self._mutated(scene.model, scene, mutant)
            if not self._passes(actual, scene):
                return scene.trial
            identical = identical and all(torch.equal(a, e) for a, e in zip(actual, scene.expected))
        if identical or all(self._same_in_fp64(mutant, scene) for scene in self.scenes):
            raise Equivalent
        return None

    def _mutated(self, model: torch.nn.Module, scene: Scene, mutant: Mutant, dtype=torch.float32) -> list[Tensor]:
        stale = None
        if mutant.mutation == STALE:
            recorder = Recorder(keep=mutant)
            self._run(model, cast(scene.other_inputs, dtype), 1000 + scene.seed, recorder)
            stale = recorder.kept
        mutating = Mutating(mutant, stale)
        outputs = self._run(model, cast(scene.inputs, dtype), scene.seed, mutating)
        if not mutating.applied:
            raise Inapplicable
        return outputs

    def _same_in_fp64(self, mutant: Mutant, scene: Scene) -> bool:
        """Return whether the mutant differs by no more than rounding there."""
        wide = self._wide(scene)
        if scene.wide is None:
            scene.wide = self._run(wide, cast(scene.inputs, torch.float64), scene.seed)
        try:
            actual = self._mutated(wide, scene, mutant, torch.float64)
        except Exception:  # in FP64 the forward takes other operators
            return False
        return all(_within(a, e, Criterion(_EQUIVALENT)) for a, e in zip(actual, scene.wide))

    def _wide(self, scene: Scene) -> torch.nn.Module:
        """The model in FP64, made once for each set of weights."""
        if scene.trial.weights not in self._wide_models:
            self._wide_models[scene.trial.weights] = copy.deepcopy(scene.model).double()
        return self._wide_models[scene.trial.weights]

    # -- what matters -------------------------------------------------------------------------

    def _without_effect(self) -> list[str]:
        """Inputs and parameters whose change changes no output, in any trial."""
        names = {f"input {i}" for i, value in enumerate(self.scenes[0].inputs) if isinstance(value, Tensor)}
        names |= {name for name, _ in self.scenes[0].model.named_parameters()}
        for scene in self.scenes:
            names -= set(self._effective(scene, names))
            if not names:
                break
        return sorted(names)

    def _effective(self, scene: Scene, names: set[str]) -> Iterator[str]:
        """Return those of ``names`` that, drawn anew, change the output by more than rounding in FP64."""
        model = self._wide(scene)
        inputs = cast(scene.inputs, torch.float64)
        expected = self._run(model, inputs, scene.seed)
        parameters = dict(model.named_parameters())
        for name in names:
            if name.startswith("input "):
                index = int(name.removeprefix("input "))
                changed = [*inputs]
                changed[index] = cast(scene.other_inputs, torch.float64)[index]
                actual = self._run(model, changed, scene.seed)
            else:
                parameter = parameters[name]
                with torch.no_grad():
                    before = parameter.clone()
                    parameter.add_(torch.randn_like(parameter) * (parameter.abs().mean() + 0.1))
                    actual = self._run(model, inputs, scene.seed)
                    parameter.copy_(before)
            if not all(_within(a, e, Criterion(_EQUIVALENT)) for a, e in zip(actual, expected)):
                yield name

    # -- running ------------------------------------------------------------------------------

    def _inputs(self, trial: InputCase, seed: int) -> list:
        return self._reference.setting.draw_one(seed, trial.draw)

    def _run(self, model: torch.nn.Module, inputs: list, seed: int, mode=None) -> list[Tensor]:
        """Outputs of one forward under ``mode``, on copies of the inputs."""
        seed_generators(seed, self._device)
        wide = any(isinstance(v, Tensor) and v.dtype is torch.float64 for v in inputs)
        copies = [value.clone() if isinstance(value, Tensor) else value for value in inputs]
        with default_dtype(torch.float64 if wide else torch.float32), mode or contextlib.nullcontext():
            outputs = call(model, copies)
        return [as_tensor(leaf).contiguous() for leaf in flatten(outputs)]


class Equivalent(Exception):
    """A mutant that computes the same function as the reference."""


def _traffic(workload: Workload, signature: Signature) -> int:
    return workload.declared_bytes if workload.declared_bytes is not None else signature.bytes


def _within(actual: Tensor, expected: Tensor, criterion: Criterion) -> bool:
    try:
        check_values(actual, expected, criterion, "the output", Errors())
    except CandidateFailure:
        return False
    return True
