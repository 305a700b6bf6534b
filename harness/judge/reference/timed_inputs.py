"""Choose what is timed: inputs and weights with which outputs show that work was left out."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from harness.judge.compare import differ, errors_and_allowed, root_mean_square
from harness.judge.criterion import Criterion, loses_much, strict_criterion
from harness.judge.reference.model import PUBLISHED, InputCase, Reference
from harness.problem.distributions import SIZED, TIMED, VARIED
from harness.problem.inputs import fresh_seeds, tensors_of
from harness.problem.module import ProblemError
from harness.problem.weights import hides_work
from harness.tensors.dtypes import EXACT, bits, is_finite, is_scaled
from harness.timing.rounds import outputs_of

# The first of these whose outputs tell one call's inputs from another's, and those inputs from themselves in fewer
# bits. Sums of thousands of numbers in [0, 1) are so large that what is allowed hides either, and in FP16 and BF16
# that half of them was left out.
_DRAWS = (TIMED, "signed", VARIED, SIZED)
_CASES = tuple(InputCase(draw, weights) for weights in ("initial", "hardened") for draw in _DRAWS)
TELLING = Criterion(tolerance=0.02)  # more than TF32 loses, and than is allowed for
# The next coarser format for matrices, as the bits of the significand that its elements lack. In FP32 it is BF16.
_LACKING_OF_FP8 = {torch.float16: 7, torch.bfloat16: 4}  # FP8 E4M3 has 4 bits, one of them not stored
_OFF = (1.0, 4.0)  # times what is allowed: at least, and to choose no further; others may round better than BF16
_SHARE = 0.1  # of the outputs, at least, that another call's differ from: of 2/93 as published one in a million does
_DIFFERS, _MOST_LOOKED_AT = 1e-3, 1 << 20  # by how much, of an element and the root mean square; elements
_AMPLIFIED = 1000.0  # times what is allowed, that inputs in eight bits are off: rounding is amplified, as in 3/24
_NOISY = 0.99  # apart at most, so that other inputs come first
_BEYOND = 2.0  # times what PyTorch's own result may lose, at least: a mean of several answers is half as far from each
_NOISE = 1e-5  # of the inputs, the most that a mean of normalised values in FP32 may be; in 2/23 it is 1e-8
_MOST_WEIGHTS = 8  # chosen, for what is timed: with a third of those of 2/58 every output is clamped to the same value
_MOST_TRIED = 3  # chosen, where they tell something: at 1e-4 eight bits of inputs do with a third of those of 2/49


class OnlyNoise(ProblemError):
    """Nothing that could be timed tells an answer from rounding, with these weights."""


class _Telling(NamedTuple):
    """Outputs of two calls, and how much they tell of their inputs: the larger, the more.

    How far they are ``apart``, up to 1, -1 if they are not finite; how many of ``_OFF`` those for inputs in fewer
    ``bits`` are off, with the better of the two calls; and whether enough elements differ. Where it is ``noise``, what
    PyTorch's own result may lose is about as large as they are, and they are not clearly further apart.
    """

    apart: float
    bits: int
    by_many: bool
    noise: bool = False


def choose_timed(reference: Reference, seeds: list[int], structure: str = "") -> InputCase:
    """Return the inputs to time: those with which the answer to one of two ``seeds`` is wrong for the other.

    Averages over many elements hardly differ where inputs are drawn alike, and in some deep networks PyTorch's
    initial weights let all signal fade under the biases. A recurrent one, or one with attention, has other
    weights anyway: with its initial ones the last steps alone, or the mean of what is weighed, would do. The
    answer to inputs in fewer bits is wrong too, if there are such inputs: else whoever sees what he is given may
    work in less precision, or on fewer elements. A tenth of the outputs differ: else whoever finds those few may
    write a constant into all others. Where nothing has finite outputs but published inputs, it is these: a
    function's domain may be narrower than what is declared of it. Inputs of a ``structure`` come first.

    Raises OnlyNoise where nothing tells an answer from rounding: deep networks in BF16.
    """
    if reference.only_published:
        return PUBLISHED
    told: dict[InputCase, _Telling] = {}
    problem = reference.setting.workload.problem
    weights = {"hardened"} if hides_work(reference.model(), problem) else {"initial", "hardened"}
    for case in (*([InputCase(structure)] if structure else []), *_CASES):
        if case.weights in weights and (case.weights == "initial" or reference.has_weights()):
            told[case] = _telling(reference, case, seeds, wanted=case.draw == structure)
            if told[case] == _Telling(1.0, len(_OFF), True):
                break
    timed = max(told, key=told.__getitem__)
    if told[timed].noise:
        raise OnlyNoise(
            f"the reference of {problem.id} cannot be judged against in {reference.precision}: what PyTorch's own "
            "result may lose is as large as its outputs, so that any answer would do; choose another --precision"
        )
    return timed if told[timed].apart >= 0.0 else PUBLISHED


def choose_with_weights(
    reference: Reference, on_two_seeds: Callable[[Callable[[list[int]], Any]], Any], structure: str = ""
) -> tuple[InputCase, tuple[bool, bool], Reference]:
    """Return what is timed, what outputs tell of it, and a reference with the weights that tell most of some.

    ``reference`` has the first. ``on_two_seeds`` calls a function with two fresh seeds. Raises OnlyNoise where with
    none they tell anything.
    """
    found, noise = [], None
    for tried in range(1, _MOST_WEIGHTS + 1):
        try:
            timed = on_two_seeds(functools.partial(choose_timed, reference, structure=structure))
            found.append((on_two_seeds(functools.partial(tells, reference, timed)), timed, reference.weight_seed))
        except OnlyNoise as error:
            noise = error
        told = max((told for told, *_ in found), default=(False, False))
        if all(told) or not reference.has_weights() or (tried >= _MOST_TRIED and (told[0] or not found)):
            break
        reference = Reference(reference.setting, *fresh_seeds(1))
    if noise and not found:
        raise noise
    return next((timed, told, Reference(reference.setting, seed)) for one, timed, seed in found if one == told)


def tells(reference: Reference, case: InputCase, seeds: list[int]) -> tuple[bool, bool]:
    """Return whether outputs depend on the inputs with these weights, a tenth of them at least; and on all bits."""
    telling = _telling(reference, case, seeds)
    return telling.apart >= 1.0 and telling.by_many, telling.bits >= 1


def _telling(reference: Reference, case: InputCase, seeds: list[int], wanted: bool = False) -> _Telling:
    """Return what the outputs of two calls tell of ``case``; but for being apart it is all if it is ``wanted``."""
    answers = [reference.outputs(case, seed) for seed in seeds]
    _must_have_one_shape(reference, *answers)
    if not all(is_finite(tensor) for answer in answers for tensor in answer):
        return _Telling(-1.0, 0, False)
    apart, noise, off = _apart(*answers, [TELLING] * len(answers[0])), False, 0.0
    if apart >= 1.0:
        off = min(map(functools.partial(_off_in_fewer_bits, reference, case), seeds, answers))
        if _has_few_bits(reference) or off >= _AMPLIFIED or _may_be_noise(reference, case, seeds[0], answers[0]):
            lost = [reference.losses(case, seed) for seed in seeds]
            answers = [
                [t if loss.instead is None else loss.instead for t, loss in zip(*one)] for one in zip(answers, lost)
            ]
            losses = [max(loss.error for loss in of_output) for of_output in zip(*lost)]
            criteria = [replace(TELLING, loss=_BEYOND * loss) for loss in losses]
            beyond = _apart(*answers, criteria)
            scales = (root_mean_square(t) if is_scaled(t) else math.inf for t in answers[0])
            if much := any(map(loses_much, losses, scales)):
                beyond = min(beyond, max(map(_tenth_apart, *answers, criteria)))
            if beyond < 1.0:
                apart, off, noise = min(_NOISY, beyond), 0.0, much
    apart = min(apart, 1.0)
    if wanted:
        return _Telling(apart, len(_OFF), True, noise)
    share = max(map(_share_that_differs, *answers), default=0.0)
    return _Telling(apart, sum(off >= least for least in _OFF), share >= _SHARE, noise)


def _must_have_one_shape(reference: Reference, ours: list[Tensor], theirs: list[Tensor]) -> None:
    if shapes := next(((list(a.shape), list(b.shape)) for a, b in zip(ours, theirs) if a.shape != b.shape), None):
        raise ProblemError(
            f"the reference of {reference.setting.workload.problem.id} cannot be judged against: the shape of an "
            f"output depends on the values of the inputs, as {shapes[0]} and {shapes[1]}; return one of a fixed shape"
        )


def _apart(ours: list[Tensor], theirs: list[Tensor], criteria: list[Criterion]) -> float:
    return max(map(differ, ours, theirs, criteria), default=0.0)


def _tenth_apart(ours: Tensor, theirs: Tensor, criterion: Criterion) -> float:
    """Return how far a tenth of the elements are apart at least: the difference over what is allowed.

    Single ones say nothing of all others: what is allowed may be as large as most outputs are.
    """
    if ours.dtype in EXACT or not ours.numel():
        return differ(ours, theirs, criterion)
    scale = root_mean_square(theirs)
    error, allowed = errors_and_allowed(_sampled(ours), _sampled(theirs), criterion, scale)
    return float((error / allowed).quantile(1 - _SHARE))


def _off_in_fewer_bits(reference: Reference, case: InputCase, seed: int, exact: list[Tensor]) -> float:
    """Return how many times what is allowed an output is off whose inputs have the next coarser format's bits.

    These are the eight bits of BF16 in FP32, and the four of FP8 in FP16 and BF16. Infinite in other precisions.
    """
    setting = reference.setting
    if setting.dtype is not torch.float32 and not _has_few_bits(reference):
        return math.inf
    inputs = list(map(_in_fewer_bits, reference.inputs(case, seed)))
    coarse = outputs_of(reference.model(case.weights), setting, inputs, seed)
    return _apart(coarse, exact, [strict_criterion(setting.workload.problem, setting.dtype, t.dtype) for t in exact])


def _may_be_noise(reference: Reference, case: InputCase, seed: int, outputs: list[Tensor]) -> bool:
    """Return whether an output is so small beside the inputs that it may be nothing but PyTorch's own error.

    Then it differs from call to call, and zeros are as right: the mean of what was normalised, as in 2/23.
    """
    inputs = tensors_of(reference.inputs(case, seed))
    largest = max((root_mean_square(tensor) for tensor in inputs if is_scaled(tensor)), default=0.0)
    return any(root_mean_square(tensor) < _NOISE * largest for tensor in outputs if is_scaled(tensor))


def _has_few_bits(reference: Reference) -> bool:
    return reference.setting.dtype in _LACKING_OF_FP8


def _share_that_differs(ours: Tensor, theirs: Tensor) -> float:
    """Return the share of the elements that differ."""
    if not ours.numel():
        return 0.0
    one, other = map(_sampled, (ours, theirs))
    if ours.dtype in EXACT:
        return float((bits(one) != bits(other)).double().mean())
    one, other = (tensor.to(torch.complex128 if ours.is_complex() else torch.float64) for tensor in (one, other))
    return float(((one - other).abs() > _DIFFERS * (one.abs() + root_mean_square(one))).double().mean())


def _sampled(tensor: Tensor) -> Tensor:
    """Return about a million elements, at equal distances."""
    return tensor.reshape(-1)[:: max(1, tensor.numel() // _MOST_LOOKED_AT)]


def _in_fewer_bits(value: object) -> object:
    """Return a tensor with elements as the next coarser format has them, within the range of its own type."""
    if not isinstance(value, Tensor):
        return value
    if value.dtype is torch.float32:
        return value.to(torch.bfloat16).to(value.dtype)
    if (lacking := _LACKING_OF_FP8.get(value.dtype)) is None:
        return value
    raw = value.clone().view(torch.int16)  # a carry goes into the exponent, as it should
    return raw.add_(1 << (lacking - 1)).bitwise_and_(-1 << lacking).view(value.dtype)
