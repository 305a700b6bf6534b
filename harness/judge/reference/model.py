"""The reference on the judge's side: its rounds, and what precision PyTorch itself loses in them."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from harness.judge.compare import in_own_units, largest_error, root_mean_square
from harness.judge.criterion import loses_all
from harness.problem.distributions import DRAWS
from harness.problem.inputs import DTYPES
from harness.problem.weights import is_constant
from harness.tensors.dtypes import is_scaled
from harness.timing import Round
from harness.timing.rounds import InputCase, RunConfig, outputs_of, play, play_untimed

PUBLISHED = InputCase()
# The correctness checks. Twice as published, so that an answer kept from the first does not do for the second.
TRIALS = (
    PUBLISHED,
    *(InputCase(draw) for draw in DRAWS),
    InputCase("signed", "hardened"),
    InputCase("mixed", "hardened"),
)
# Of a candidate with a state of its own, that nobody could copy other weights into: constants in it can be found.
CHANGED = InputCase("signed", "changed")
_RANDOM_LIKE = (torch.randn_like, torch.rand_like)
_RANDOM = (torch.randn, torch.rand, *_RANDOM_LIKE)
_DROPOUTS = (F.dropout, F.dropout1d, F.dropout2d, F.dropout3d)
_IN_PLACE = (torch.Tensor.uniform_, torch.Tensor.normal_, torch.Tensor.bernoulli_, torch.Tensor.exponential_)


class Loss(NamedTuple):
    """The largest error of PyTorch's own result; and where with TF32 it is noise, the result ``instead``, without."""

    error: float
    instead: torch.Tensor | None = None


class Reference:
    """``Model`` of a problem, with weights from one seed."""

    def __init__(self, setting: RunConfig, weight_seed: int):
        self.setting, self.weight_seed = setting, weight_seed
        self._models: dict[str, torch.nn.Module] = {}

    def timed_on(self, case: InputCase) -> Reference:
        """Return this reference with ``case`` as what is timed; it keeps only the models that it still needs."""
        other = Reference(replace(self.setting, timed=case), self.weight_seed)
        if case.weights == "initial":
            other._models = {name: model for name, model in self._models.items() if name == "initial"}
        else:  # both are needed for the trials
            other._models = dict(self._models)
        return other

    @property
    def precision(self) -> str:
        """Return the name of the precision."""
        return next(name for name, dtype in DTYPES.items() if dtype is self.setting.dtype)

    @property
    def only_published(self) -> bool:
        """Return whether no other inputs are known to be valid, and no weights are the reference's own."""
        return getattr(self.setting.workload.problem.module, "DOMAIN", "") == "published" and not self.has_weights()

    def has_weights(self) -> bool:
        """Return whether the model has parameters."""
        return next(self.model().parameters(), None) is not None

    def model(self, weights: str = "initial") -> torch.nn.Module:
        if weights not in self._models:
            model_class = self.setting.workload.problem.module.Model
            self._models[weights] = self.setting.build(model_class, self.weight_seed, weights)
        return self._models[weights]

    def timed_model(self) -> torch.nn.Module:
        return self.model(self.setting.timed.weights)

    def forget_others(self) -> None:
        """Free all models but the timed one; they are built again when they are needed."""
        self._models = {w: model for w, model in self._models.items() if w == self.setting.timed.weights}

    def trials(self, copied: bool, structure: str = "") -> list[InputCase]:
        """Return those of ``TRIALS`` that differ, and inputs of ``structure``.

        Without parameters there are no other weights.

        Other weights are for a candidate whose state is ``copied``; another one could leave out what starts as
        ones or zeros, and is given other ones. With what is timed all are tried.
        """
        if self.only_published:
            return [PUBLISHED, PUBLISHED]
        with_weights = copied and self.has_weights()
        trials = [trial for trial in TRIALS if with_weights or trial.weights == "initial"]
        if not copied and any(map(is_constant, self.model().parameters())):
            trials.append(CHANGED)
        if self.setting.timed.weights != "initial" and self.setting.timed not in trials:
            trials.append(self.setting.timed)
        trials += [InputCase(structure)] if structure else []
        return trials + ([self.setting.rare] if self.setting.rare else [])

    def call(self, trial: InputCase, seed: int) -> Round:
        """Call it once, untimed."""
        return play_untimed(self.model(trial.weights), self.setting, seed, trial.draw)

    def play(self, seeds: list[int], timer, held: bool = True) -> Round:
        """Time one call for each seed."""
        return play(self.timed_model(), self.setting, seeds, timer, held)

    def losses(self, trial: InputCase, seed: int) -> list[Loss]:
        """Return what PyTorch's own result loses in each output of the call with ``seed``, in its units.

        Against the same model in FP64 on the same inputs and weights; with TF32
        allowed where PyTorch offers it, in matmuls as in convolutions. Where that
        leaves nothing but noise, without TF32. Where FP64 does not fit the memory, or
        an operator lacks it, against FP32 without TF32. 0 for outputs that are compared
        exactly.
        """
        own, exact, in_fp64 = self._own_and_exact(trial, seed)
        losses = [Loss(self._error(a, b)) for a, b in zip(own, exact)]
        noise = [self._is_noise(loss, output) for loss, output in zip(losses, own)]
        if not (in_fp64 and self.setting.dtype is torch.float32 and any(noise)):
            return losses
        with _tf32(False):
            own = self.outputs(trial, seed)
        without = [Loss(self._error(a, b), a) for a, b in zip(own, exact)]
        return [b if is_noise and b.error < a.error else a for a, b, is_noise in zip(losses, without, noise)]

    def _own_and_exact(self, trial: InputCase, seed: int) -> tuple[list[torch.Tensor], list[torch.Tensor], bool]:
        """Return PyTorch's own outputs, the most exact that fit the memory with them, and whether these are in FP64.

        Where they are not, they are on the host: on a device of 80 GB four tensors of 10 GB leave no room for one more.
        """
        if not self.setting.workload.problem.keeps_dtypes:
            with contextlib.suppress(RuntimeError):  # of memory, too
                return self._beside_fp64(trial, seed)
        with _tf32(False):  # outside of the handler, which would hold the memory of what failed
            exact = [output.cpu() for output in self.outputs(trial, seed)]
        with _tf32(True):
            return self.outputs(trial, seed), exact, False

    def _beside_fp64(self, trial: InputCase, seed: int) -> tuple[list[torch.Tensor], list[torch.Tensor], bool]:
        exact = self.in_fp64(trial, seed)
        with _tf32(True):
            return self.outputs(trial, seed), exact, True

    def _error(self, own: torch.Tensor, exact: torch.Tensor) -> float:
        if independent := self.setting.workload.problem.independent:
            return largest_error(*in_own_units(own, exact.to(own.device), independent))
        return largest_error(own, exact)

    def size_of(self, output: torch.Tensor) -> float:
        """Return how large an output is, in the units of ``losses``."""
        return 1.0 if self.setting.workload.problem.independent else root_mean_square(output)

    def _is_noise(self, loss: Loss, output: torch.Tensor) -> bool:
        return is_scaled(output) and loses_all(loss.error, self.size_of(output))

    def outputs(self, trial: InputCase, seed: int) -> list[torch.Tensor]:
        """Return outputs of the call with ``seed``."""
        return outputs_of(self.model(trial.weights), self.setting, self.inputs(trial, seed), seed)

    def in_fp64(self, trial: InputCase, seed: int) -> list[torch.Tensor]:
        """Return outputs of the call with ``seed`` in FP64; raise RuntimeError where an operator lacks it."""
        inputs = cast(self.inputs(trial, seed), torch.float64)
        with default_dtype(torch.float64), _DrawnIn(self.setting.dtype):
            return outputs_of(copy.deepcopy(self.model(trial.weights)).double(), self.setting, inputs, seed)

    def inputs(self, trial: InputCase, seed: int) -> list:
        return self.setting.draw_one(seed, trial.draw)


class _DrawnIn(TorchFunctionMode):
    """Have ``forward`` draw the random numbers that it draws in ``dtype``: in another one they are others.

    On a GPU that holds for the mask of a dropout, too.
    """

    def __init__(self, dtype: torch.dtype):
        super().__init__()
        self._dtype = dtype

    def __torch_function__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if function in _DROPOUTS:
            return self._dropped(function, *args, **kwargs)
        if function in _IN_PLACE:
            drawn = function(args[0].to(self._dtype, copy=True), *args[1:], **kwargs)
            return args[0].copy_(drawn)
        if function not in _RANDOM:
            return function(*args, **kwargs)
        wanted = kwargs.get("dtype") or (args[0].dtype if function in _RANDOM_LIKE else torch.get_default_dtype())
        return function(*args, **kwargs | {"dtype": self._dtype}).to(wanted)

    def _dropped(
        self, function: Callable, input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> torch.Tensor:
        if not training or p in (0.0, 1.0):
            return function(input, p, training, inplace)
        kept = function(torch.ones_like(input, dtype=self._dtype), p, training, False) != 0
        output = input * kept / (1.0 - p)
        return input.copy_(output) if inplace else output


def cast(inputs: list, dtype: torch.dtype) -> list:
    """The inputs of a call with floating-point tensors of ``dtype``; complex ones go with FP64."""
    return [_cast(value, dtype) if isinstance(value, torch.Tensor) else value for value in inputs]


def _cast(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if tensor.is_complex() and dtype is torch.float64:
        return tensor.to(torch.complex128)
    return tensor.to(dtype) if is_scaled(tensor) else tensor


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
    """Set the type of tensors that a forward creates itself."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
