"""The reference on the judge's side: its rounds, and what precision PyTorch itself loses in them."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from harness.hardened import DRAWS, TIMED, is_constant
from harness.judge.compare import CHUNK
from harness.rounds import Setting, outputs_of, play
from harness.timing import Round


@dataclass(frozen=True)
class Trial:
    """On which draw of its inputs, and with which weights, a candidate is called."""

    draw: str = "published"
    weights: str = "initial"

    def __str__(self) -> str:
        return f"{self.draw} inputs, {self.weights} weights"


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


class Reference:
    """``Model`` of a problem, with weights from one seed."""

    def __init__(self, setting: Setting, weight_seed: int):
        self.setting = setting
        self._weight_seed = weight_seed
        self._models: dict[str, torch.nn.Module] = {}

    @property
    def timed(self) -> Trial:
        return Trial(self.setting.timed_draw)

    def choose_timed_draw(self, seed: int) -> None:
        """Time published inputs as they are where the function's domain, of which nothing is declared, is narrower."""
        if not all(bool(tensor.isfinite().all()) for tensor in self.outputs(Trial(TIMED), seed)):
            self.setting = replace(self.setting, timed_draw=PUBLISHED.draw)

    def model(self, weights: str = "initial") -> torch.nn.Module:
        if weights not in self._models:
            model_class = self.setting.workload.problem.module.Model
            self._models[weights] = self.setting.build(model_class, self._weight_seed, weights)
        return self._models[weights]

    def forget(self, weights: str) -> None:
        """Free the model with these weights; it is built again when it is needed."""
        self._models.pop(weights, None)

    def trials(self, copied: bool) -> list[Trial]:
        """Those of ``TRIALS`` that differ: without parameters there are no other weights.

        Other weights are for a candidate whose state is ``copied``; another one could leave out what starts as
        ones or zeros, and is given other ones.
        """
        parameters = list(self.model().parameters())
        trials = [trial for trial in TRIALS if parameters and copied or trial.weights == "initial"]
        return trials if copied or not any(map(is_constant, parameters)) else [*trials, CHANGED]

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
