"""Compare a candidate's output with the reference's: first what it is, then every element.

An element is right where ``|actual - expected| <= tolerance * |expected| + slack``.
The slack is ``tolerance`` times the root mean square of the expected tensor: in the
units of the output, and not a constant, so that outputs which are small as a whole
are still checked. Where a correct computation cannot keep that, it is what
PyTorch's own result loses against FP64, times ``LOSS_FACTOR``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from harness.problem import Problem
from harness.result import CandidateFailure, Status

LOSS_FACTOR = 4
TOLERANCES = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2, torch.float64: 1e-6}

CHUNK = 1 << 25  # elements compared at a time, so that temporaries stay small
_TINY = torch.finfo(torch.float32).tiny


@dataclass(frozen=True)
class Criterion:
    """What error is allowed: relative to the element and to the whole, or as large as PyTorch's own, in its units."""

    tolerance: float
    loss: float = 0.0

    def slack(self, scale: float) -> float:
        """What is allowed of an element that is 0, where the root mean square is ``scale``."""
        return max(self.tolerance * scale, LOSS_FACTOR * self.loss)


def strict_criterion(problem: Problem, dtype: torch.dtype) -> Criterion:
    """What a problem asks of results of ``dtype``; its ``TOLERANCE`` is for FP32."""
    tolerance = TOLERANCES[dtype]
    if dtype is torch.float32:
        tolerance = getattr(problem.module, "TOLERANCE", tolerance)
    return Criterion(tolerance)


@dataclass
class Errors:
    """The worst found so far, over all outputs of all trials."""

    max_abs_error: float = 0.0
    max_error_ratio: float = 0.0  # error over what is allowed; above 1 is wrong

    def to_json(self) -> dict[str, float]:
        return {"max_abs_error": self.max_abs_error, "max_error_ratio": self.max_error_ratio}


def check_kind(described: Any, expected: list[torch.Tensor], device: torch.device) -> None:
    """Number, shapes, types and place of the outputs, from what the worker says of them.

    Raises CandidateFailure ``wrong_shape`` or ``wrong_dtype``.
    """
    if not isinstance(described, list) or len(described) != len(expected):
        count = len(described) if isinstance(described, list) else "no"
        raise CandidateFailure(Status.WRONG_SHAPE, f"returned {count} output(s), expected {len(expected)}")
    for index, (actual, tensor) in enumerate(zip(described, expected)):
        actual = actual if isinstance(actual, dict) else {}
        which = "the output" if len(expected) == 1 else f"output {index}"
        if actual.get("type") != "Tensor":
            raise CandidateFailure(
                Status.WRONG_DTYPE, f"{which} is a {actual.get('type')}, expected a plain torch.Tensor"
            )
        if actual.get("shape") != list(tensor.shape):
            raise CandidateFailure(
                Status.WRONG_SHAPE, f"{which} has shape {actual.get('shape')}, expected {list(tensor.shape)}"
            )
        dtype = str(tensor.dtype).removeprefix("torch.")
        if actual.get("dtype") != dtype:
            raise CandidateFailure(Status.WRONG_DTYPE, f"{which} is {actual.get('dtype')}, expected {dtype}")
        if actual.get("device") != str(device):
            raise CandidateFailure(Status.WRONG_DTYPE, f"{which} is on {actual.get('device')}, expected {device}")


def check_values(actual: torch.Tensor, expected: torch.Tensor, criterion: Criterion, which: str, worst: Errors) -> None:
    """Every element of one output; updates ``worst`` where all are right.

    Raises CandidateFailure ``nonfinite`` or ``wrong_value`` with the first
    mismatching index, both values there, the worst error and how many are off.
    """
    if expected.is_floating_point():
        scale = root_mean_square(expected)
        within = all(_within(*chunk, criterion, scale, worst) for chunk in _chunks(actual, expected))
    else:
        scale = 0.0
        within = torch.equal(actual, expected)
    if not within:
        _explain(actual, expected, criterion, scale, which)


def _within(actual: torch.Tensor, expected: torch.Tensor, criterion: Criterion, scale: float, worst: Errors) -> bool:
    """Whether a chunk is right as a whole; quick, because nearly all are. NaN and infinity are left to ``_explain``."""
    max_error, max_ratio = _largest(actual, expected, criterion, scale)
    if not max_ratio <= 1.0:
        return False
    worst.max_abs_error = max(worst.max_abs_error, max_error)
    worst.max_error_ratio = max(worst.max_error_ratio, max_ratio)
    return True


def _largest(actual: torch.Tensor, expected: torch.Tensor, criterion: Criterion, scale: float) -> tuple[float, float]:
    """Error, and error over what is allowed, of a chunk."""
    if expected.dtype.itemsize < 4:
        actual, expected = actual.float(), expected.float()
    error = (actual - expected).abs_()
    allowed = expected.abs().mul_(criterion.tolerance).add_(max(criterion.slack(scale), _TINY))
    return float(error.max()), float(error.div_(allowed).max())


def differ(ours: torch.Tensor, theirs: torch.Tensor, criterion: Criterion) -> float:
    """How far finite outputs of two calls are apart: the largest difference over what is allowed."""
    if not ours.is_floating_point() or ours.shape != theirs.shape:
        return 0.0 if torch.equal(ours, theirs) else math.inf
    scale = root_mean_square(theirs)
    return max((_largest(*chunk, criterion, scale)[1] for chunk in _chunks(ours, theirs)), default=0.0)


def _explain(actual: torch.Tensor, expected: torch.Tensor, criterion: Criterion, scale: float, which: str) -> None:
    """Find out exactly which elements are off, and raise if there are any."""
    wrong = nonfinite = 0
    first: int | None = None
    largest = (0.0, 0)  # error, index
    begin = 0
    for a, e in _chunks(actual, expected):
        a, e = a.double(), e.double()
        same = (a == e) | (a.isnan() & e.isnan())  # infinities and NaNs must be the reference's own
        error = torch.where(same, 0.0, (a - e).abs())
        allowed = criterion.tolerance * e.abs() + criterion.slack(scale)
        off = ~same & ~(e.isfinite() & (error <= allowed))
        nonfinite += int((~a.isfinite() & e.isfinite()).sum())
        if count := int(off.sum()):
            wrong += count
            first = begin + int(off.nonzero()[0]) if first is None else first
            error = torch.where(error.isfinite(), error, 0.0)
            peak = int(error.argmax())
            largest = max(largest, (float(error[peak]), begin + peak))
        begin += a.numel()
    if not wrong:
        return

    shape = tuple(expected.shape)
    actual, expected = actual.reshape(-1), expected.reshape(-1)

    def at(index: int) -> str:
        return f"at {_unravel(index, shape)} got {actual[index].item():.7g}, expected {expected[index].item():.7g}"

    share = f"{wrong} of {expected.numel()} elements of {which} are off ({100 * wrong / expected.numel():.3g} %)"
    message = f"{share}; first {at(first)}"
    if nonfinite:
        raise CandidateFailure(Status.NONFINITE, f"NaN or infinity in {nonfinite} elements of {which}; {message}")
    message += f"; worst error {largest[0]:.3g} {at(largest[1])}"
    message += f"; allowed {criterion.tolerance:g} x |expected| + {criterion.slack(scale):.3g}"
    raise CandidateFailure(Status.WRONG_VALUE, message)


def _chunks(actual: torch.Tensor, expected: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Both tensors piece by piece, flat."""
    if expected.numel() == 0:
        return iter(())
    return zip(actual.reshape(-1).split(CHUNK), expected.reshape(-1).split(CHUNK))


def root_mean_square(tensor: torch.Tensor) -> float:
    """Over the finite elements."""
    total, count = 0.0, 0
    for chunk in tensor.reshape(-1).split(CHUNK):
        norm = float(torch.linalg.vector_norm(chunk, dtype=torch.float64))
        if not math.isfinite(norm):
            chunk = chunk[chunk.isfinite()]
            norm = float(torch.linalg.vector_norm(chunk, dtype=torch.float64))
        total, count = total + norm**2, count + chunk.numel()
    return math.sqrt(total / count) if count else 0.0


def _unravel(index: int, shape: tuple[int, ...]) -> str:
    coordinates = []
    for size in reversed(shape):
        coordinates.append(index % size)
        index //= size
    return "[" + ", ".join(map(str, reversed(coordinates))) + "]"
