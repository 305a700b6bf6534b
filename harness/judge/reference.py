"""The reference on the judge's side: its rounds, and what precision PyTorch itself loses in them."""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Iterator
from dataclasses import replace

import torch

from harness.hardened import DRAWS, TIMED, is_constant
from harness.judge.compare import CHUNK, Criterion, differ
from harness.rounds import Setting, Trial, outputs_of, play
from harness.timing import Round

PUBLISHED = Trial()
# The correctness checks. Twice as published, so that an answer kept from the first does not do for the second.
TRIALS = (
    PUBLISHED,
    *(Trial(draw) for draw in DRAWS),
    Trial("signed", "hardened"),
    Trial("mixed", "hardened"),
)
# Of a candidate with a state of its own, that nobody could copy other weights into: constants in it can be found.
CHANGED = Trial("signed", "changed")
# What may be timed: the first of these whose outputs tell one call's inputs from another's.
_TIMED = (Trial(TIMED), Trial("mixed"), Trial(TIMED, "hardened"), Trial("mixed", "hardened"))
_TELLING = Criterion(tolerance=0.02)  # more than TF32 loses, and than is allowed for


class Reference:
    """``Model`` of a problem, with weights from one seed."""

    def __init__(self, setting: Setting, weight_seed: int):
        self.setting = setting
        self._weight_seed = weight_seed
        self._models: dict[str, torch.nn.Module] = {}

    def choose_timed(self, seeds: list[int]) -> None:
        """Have those inputs and weights timed with which the answer to one of two ``seeds`` is wrong for the other.

        Averages over many elements hardly differ where inputs are drawn alike, and in some deep networks PyTorch's
        initial weights let all signal fade under the biases. Where nothing has finite outputs but published inputs,
        it is these: a function's domain may be narrower than what is declared of it.
        """
        apart: dict[Trial, float] = {}
        for trial in _TIMED:
            if trial.weights == "initial" or self._has_weights():
                apart[trial] = self._apart(trial, seeds)
                if apart[trial] >= 1.0:
                    break
        timed = max(apart, key=apart.__getitem__)
        self.setting = replace(self.setting, timed=timed if apart[timed] >= 0.0 else PUBLISHED)
        if self.setting.timed.weights == "initial":  # else both are needed for the trials
            self.forget_others()

    def _apart(self, trial: Trial, seeds: list[int]) -> float:
        """How far the outputs of two calls are, at most; -1 if they are not finite."""
        ours, theirs = (self.outputs(trial, seed) for seed in seeds)
        if not all(bool(tensor.isfinite().all()) for tensor in (*ours, *theirs)):
            return -1.0
        return max(map(differ, ours, theirs, itertools.repeat(_TELLING)), default=0.0)

    def _has_weights(self) -> bool:
        return next(self.model().parameters(), None) is not None

    def model(self, weights: str = "initial") -> torch.nn.Module:
        if weights not in self._models:
            model_class = self.setting.workload.problem.module.Model
            self._models[weights] = self.setting.build(model_class, self._weight_seed, weights)
        return self._models[weights]

    def timed_model(self) -> torch.nn.Module:
        return self.model(self.setting.timed.weights)

    def forget_others(self) -> None:
        """Free all models but the timed one; they are built again when they are needed."""
        self._models = {w: model for w, model in self._models.items() if w == self.setting.timed.weights}

    def trials(self, copied: bool) -> list[Trial]:
        """Those of ``TRIALS`` that differ: without parameters there are no other weights.

        Other weights are for a candidate whose state is ``copied``; another one could leave out what starts as
        ones or zeros, and is given other ones. With what is timed all are tried.
        """
        with_weights = copied and self._has_weights()
        trials = [trial for trial in TRIALS if with_weights or trial.weights == "initial"]
        if not copied and any(map(is_constant, self.model().parameters())):
            trials.append(CHANGED)
        if self.setting.timed.weights != "initial" and self.setting.timed not in trials:
            trials.append(self.setting.timed)
        return trials

    def play(self, trial: Trial, seeds: list[int], timer, held: bool | None = True) -> Round:
        return play(self.model(trial.weights), self.setting, seeds, timer, trial.draw, held)

    def losses(self, trial: Trial, seed: int) -> list[float]:
        """For each output of the call with ``seed``, the largest error of PyTorch's own result, in its units.

        Against the same model in FP64 on the same inputs and weights; with TF32
        allowed where PyTorch offers it, in matmuls as in convolutions. Where FP64 does
        not fit the memory, or an operator lacks it, against FP32 without TF32. 0 for
        outputs that are not floating-point.
        """
        try:
            exact = [t.float() if t.dtype is torch.float64 else t for t in self.in_fp64(trial, seed)]
        except RuntimeError:
            exact = None
        if exact is None:  # outside of the handler, which would hold the memory of what failed
            with _tf32(False):
                exact = self.outputs(trial, seed)
        with _tf32(True):
            own = self.outputs(trial, seed)
        return [_loss(a, b) for a, b in zip(own, exact)]

    def outputs(self, trial: Trial, seed: int) -> list[torch.Tensor]:
        """Of the call with ``seed``."""
        return outputs_of(self.model(trial.weights), self.setting, self._inputs(trial, seed), seed)

    def in_fp64(self, trial: Trial, seed: int) -> list[torch.Tensor]:
        """Of the call with ``seed``, computed in FP64; RuntimeError where an operator lacks it, or the memory."""
        inputs = cast(self._inputs(trial, seed), torch.float64)
        with default_dtype(torch.float64):
            return outputs_of(copy.deepcopy(self.model(trial.weights)).double(), self.setting, inputs, seed)

    def _inputs(self, trial: Trial, seed: int) -> list:
        return self.setting.draw_one(seed, trial.draw)


def _loss(own: torch.Tensor, exact: torch.Tensor) -> float:
    if not exact.is_floating_point() or not exact.numel():
        return 0.0
    pieces = zip(own.reshape(-1).split(CHUNK), exact.reshape(-1).split(CHUNK))
    return max(float((a - e).abs_().nan_to_num_(posinf=0.0).max()) for a, e in pieces)


def cast(inputs: list, dtype: torch.dtype) -> list:
    """The inputs of a call with floating-point tensors of ``dtype``."""
    return [v.to(dtype) if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in inputs]


@contextlib.contextmanager
def _tf32(allowed: bool) -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """For tensors that a forward makes itself."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
