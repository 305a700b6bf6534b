"""The reference on the judge's side: its rounds, and what precision PyTorch itself loses in them."""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode

from harness.judge.compare import (
    Criterion,
    differ,
    in_own_units,
    largest_error,
    root_mean_square,
    strict_criterion,
)
from harness.problem.distributions import DRAWS, TIMED, VARIED
from harness.problem.inputs import tensors_of
from harness.problem.module import ProblemError
from harness.problem.weights import hides_work, is_constant
from harness.tensors.dtypes import EXACT, bits, is_finite, is_scaled
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
# What may be timed: the first of these whose outputs tell one call's inputs from another's, and those inputs from
# themselves in fewer bits. Sums of thousands of numbers in [0, 1) are so large that what is allowed hides either, and
# in FP16 and BF16 that half of them was left out.
_TIMED = tuple(InputCase(draw, weights) for weights in ("initial", "hardened") for draw in (TIMED, "signed", VARIED))
# The next coarser format for matrices, as the bits of the significand that its elements lack. In FP32 it is BF16.
_LACKING_OF_FP8 = {torch.float16: 7, torch.bfloat16: 4}  # FP8 E4M3 has 4 bits, one of them not stored
_OFF = (1.0, 4.0)  # times what is allowed: at least, and to choose no further; others may round better than BF16
_SHARE = 0.1  # of the outputs, at least, that another call's differ from: of 2/93 as published one in a million does
_DIFFERS, _MOST_LOOKED_AT = 1e-3, 1 << 20  # by how much, of an element and the root mean square; elements
_NOISY = 0.99  # apart at most, so that other inputs come first
_RANDOM_LIKE = (torch.randn_like, torch.rand_like)
_RANDOM = (torch.randn, torch.rand, *_RANDOM_LIKE)
_NOISE = 1e-5  # of the inputs, the most that a mean of normalised values in FP32 may be; in 2/23 it is 1e-8
TELLING = Criterion(tolerance=0.02)  # more than TF32 loses, and than is allowed for


class _Telling(NamedTuple):
    """What the outputs of two calls tell of their inputs, the more the larger.

    How far they are ``apart``, up to 1; how many of ``_OFF`` those for inputs in fewer ``bits`` are off, with the
    better of the two calls; and whether enough elements differ.
    """

    apart: float
    bits: int
    by_many: bool


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

    def choose_timed(self, seeds: list[int], structure: str = "") -> InputCase:
        """Return the inputs to time: those with which the answer to one of two ``seeds`` is wrong for the other.

        Averages over many elements hardly differ where inputs are drawn alike, and in some deep networks PyTorch's
        initial weights let all signal fade under the biases. A recurrent one, or one with attention, has other
        weights anyway: with its initial ones the last steps alone, or the mean of what is weighed, would do. The
        answer to inputs in fewer bits is wrong too, if there are such inputs: else whoever sees what he is given may
        work in less precision, or on fewer elements. A tenth of the outputs differ: else whoever finds those few may
        write a constant into all others. Where nothing has finite outputs but published inputs, it is these: a
        function's domain may be narrower than what is declared of it. Inputs of a ``structure`` come first.
        """
        if self._only_published:
            return PUBLISHED
        told: dict[InputCase, _Telling] = {}
        weights = {"hardened"} if hides_work(self.model(), self.setting.workload.problem) else {"initial", "hardened"}
        for trial in (*([InputCase(structure)] if structure else []), *_TIMED):
            if trial.weights in weights and (trial.weights == "initial" or self.has_weights()):
                told[trial] = self._telling(trial, seeds, wanted=trial.draw == structure)
                if told[trial] == _Telling(1.0, len(_OFF), True):
                    break
        timed = max(told, key=told.__getitem__)
        return timed if told[timed].apart >= 0.0 else PUBLISHED

    def tells(self, trial: InputCase, seeds: list[int]) -> tuple[bool, bool]:
        """Return whether outputs depend on the inputs with these weights, a tenth of them at least; and on all bits."""
        telling = self._telling(trial, seeds)
        return telling.apart >= 1.0 and telling.by_many, telling.bits >= 1

    def _telling(self, trial: InputCase, seeds: list[int], wanted: bool = False) -> _Telling:
        """Return what the outputs of two calls tell of ``trial``; but for being apart it is all if it is ``wanted``."""
        answers = [self.outputs(trial, seed) for seed in seeds]
        apart, share = self._apart(trial, seeds[0], *answers)
        if wanted:
            return _Telling(min(apart, 1.0), len(_OFF), True)
        off = min(map(functools.partial(self._off_in_fewer_bits, trial), seeds, answers)) if apart >= 1.0 else 0.0
        return _Telling(min(apart, 1.0), sum(off >= least for least in _OFF), share >= _SHARE)

    def _apart(
        self, trial: InputCase, seed: int, ours: list[torch.Tensor], theirs: list[torch.Tensor]
    ) -> tuple[float, float]:
        """Return how far the outputs of two calls are, at most, -1 if they are not finite; and how many differ."""
        if shapes := next(((list(a.shape), list(b.shape)) for a, b in zip(ours, theirs) if a.shape != b.shape), None):
            raise ProblemError(
                f"the reference of {self.setting.workload.problem.id} cannot be judged against: the shape of an output "
                f"depends on the values of the inputs, as {shapes[0]} and {shapes[1]}; return one of a fixed shape"
            )
        if not all(map(is_finite, (*ours, *theirs))):
            return -1.0, 0.0
        apart = max(map(differ, ours, theirs, itertools.repeat(TELLING)), default=0.0)
        share = max(map(_share_that_differs, ours, theirs), default=0.0)
        if apart < 1.0 or not self._may_be_noise(trial, seed, ours):
            return apart, share
        beyond_loss = [replace(TELLING, loss=loss) for loss in self.losses(trial, seed)]
        return min(_NOISY, max(map(differ, ours, theirs, beyond_loss))), share

    def _off_in_fewer_bits(self, trial: InputCase, seed: int, exact: list[torch.Tensor]) -> float:
        """Return how many times what is allowed an output is off whose inputs have the next coarser format's bits.

        These are the eight bits of BF16 in FP32, and the four of FP8 in FP16 and BF16. Infinite in other precisions.
        """
        if self.setting.dtype is not torch.float32 and self.setting.dtype not in _LACKING_OF_FP8:
            return math.inf
        inputs = list(map(_in_fewer_bits, self._inputs(trial, seed)))
        coarse = outputs_of(self.model(trial.weights), self.setting, inputs, seed)
        problem = self.setting.workload.problem
        criteria = [strict_criterion(problem, self.setting.dtype, tensor.dtype) for tensor in exact]
        return max(map(differ, coarse, exact, criteria), default=0.0)

    def _may_be_noise(self, trial: InputCase, seed: int, outputs: list[torch.Tensor]) -> bool:
        """Return whether an output is so small beside the inputs that it may be nothing but PyTorch's own error.

        Then it differs from call to call, and zeros are as right: the mean of what was normalised, as in 2/23.
        """
        inputs = tensors_of(self._inputs(trial, seed))
        largest = max((root_mean_square(tensor) for tensor in inputs if is_scaled(tensor)), default=0.0)
        return any(root_mean_square(tensor) < _NOISE * largest for tensor in outputs if is_scaled(tensor))

    @property
    def _only_published(self) -> bool:
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
        if self._only_published:
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

    def losses(self, trial: InputCase, seed: int) -> list[float]:
        """Return the largest error of PyTorch's own result for each output of the call with ``seed``, in its units.

        Against the same model in FP64 on the same inputs and weights; with TF32
        allowed where PyTorch offers it, in matmuls as in convolutions. Where FP64 does
        not fit the memory, or an operator lacks it, against FP32 without TF32. 0 for
        outputs that are compared exactly.
        """
        exact = None
        if not self.setting.workload.problem.keeps_dtypes:
            with contextlib.suppress(RuntimeError):
                exact = self.in_fp64(trial, seed)
        if exact is None:  # outside of the handler, which would hold the memory of what failed
            with _tf32(False):
                exact = self.outputs(trial, seed)
        with _tf32(True):
            own = self.outputs(trial, seed)
        if independent := self.setting.workload.problem.independent:
            return [largest_error(*in_own_units(a, b, independent)) for a, b in zip(own, exact)]
        return [largest_error(a, b) for a, b in zip(own, exact)]

    def outputs(self, trial: InputCase, seed: int) -> list[torch.Tensor]:
        """Return outputs of the call with ``seed``."""
        return outputs_of(self.model(trial.weights), self.setting, self._inputs(trial, seed), seed)

    def in_fp64(self, trial: InputCase, seed: int) -> list[torch.Tensor]:
        """Return outputs of the call with ``seed`` in FP64; raise RuntimeError where an operator lacks it."""
        inputs = cast(self._inputs(trial, seed), torch.float64)
        with default_dtype(torch.float64), _DrawnIn(self.setting.dtype):
            return outputs_of(copy.deepcopy(self.model(trial.weights)).double(), self.setting, inputs, seed)

    def _inputs(self, trial: InputCase, seed: int) -> list:
        return self.setting.draw_one(seed, trial.draw)


class _DrawnIn(TorchFunctionMode):
    """Have ``forward`` draw the random numbers that it draws in ``dtype``, whose bits others do not share."""

    def __init__(self, dtype: torch.dtype):
        super().__init__()
        self._dtype = dtype

    def __torch_function__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if function not in _RANDOM:
            return function(*args, **kwargs)
        wanted = kwargs.get("dtype") or (args[0].dtype if function in _RANDOM_LIKE else torch.get_default_dtype())
        return function(*args, **kwargs | {"dtype": self._dtype}).to(wanted)


def _share_that_differs(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """Return the share of the elements that differ, of about a million at equal distances."""
    if not ours.numel():
        return 0.0
    step = max(1, ours.numel() // _MOST_LOOKED_AT)
    one, other = (tensor.reshape(-1)[::step] for tensor in (ours, theirs))
    if ours.dtype in EXACT:
        return float((bits(one) != bits(other)).double().mean())
    one, other = (tensor.to(torch.complex128 if ours.is_complex() else torch.float64) for tensor in (one, other))
    return float(((one - other).abs() > _DIFFERS * (one.abs() + root_mean_square(one))).double().mean())


def _in_fewer_bits(value: object) -> object:
    """Return a tensor with elements as the next coarser format has them, within the range of its own type."""
    if not isinstance(value, torch.Tensor):
        return value
    if value.dtype is torch.float32:
        return value.to(torch.bfloat16).to(value.dtype)
    if (lacking := _LACKING_OF_FP8.get(value.dtype)) is None:
        return value
    raw = value.clone().view(torch.int16)  # a carry goes into the exponent, as it should
    return raw.add_(1 << (lacking - 1)).bitwise_and_(-1 << lacking).view(value.dtype)


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
