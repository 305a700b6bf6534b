"""Compare a candidate's output with the reference's: first what it is, then every element.

Integers and booleans must be equal. An element of another type is right where
``|actual - expected| <= tolerance * |expected| + slack``; of a complex one this is the modulus. What that is, a
``Criterion`` says. Of a problem that says which of its parts are independent, each is compared in units of its own root
mean square.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from harness.judge.criterion import Criterion
from harness.result import CandidateFailure, Status
from harness.tensors.dtypes import EXACT, bits, finite_elements, parts, widened

CHUNK = 1 << 25  # elements compared at a time, so that temporaries stay small
_TINY = torch.finfo(torch.float32).tiny


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
        dtype = _name(tensor.dtype)
        if actual.get("dtype") != dtype:
            raise CandidateFailure(Status.WRONG_DTYPE, f"{which} is {actual.get('dtype')}, expected {dtype}")
        if actual.get("device") != str(device):
            raise CandidateFailure(Status.WRONG_DTYPE, f"{which} is on {actual.get('device')}, expected {device}")


def check_structure(returned: Any, expected: str) -> None:
    """Compare the nesting of a call's output with the reference's, both as ``outputs.structure_of`` writes it.

    Raises CandidateFailure ``wrong_shape``, or ``wrong_dtype`` for a call that returned None.
    """
    if not isinstance(returned, str):
        raise CandidateFailure(Status.CRASHED, "the worker does not say how the outputs of a call are nested")
    if returned != expected:
        status = Status.WRONG_DTYPE if returned == "None" else Status.WRONG_SHAPE
        raise CandidateFailure(status, f"returned {returned}, expected {expected}")


def check_values(actual: torch.Tensor, expected: torch.Tensor, criterion: Criterion, which: str, worst: Errors) -> None:
    """Compare every element of one output; updates ``worst`` where all are right.

    Raises CandidateFailure ``nonfinite`` or ``wrong_value`` with the first
    mismatching index, both values there, the worst error and how many are off.
    """
    if expected.dtype in EXACT:
        if not all(torch.equal(*map(bits, chunk)) for chunk in _chunks(actual, expected)):
            _explain_unequal(actual, expected, which)
        return
    if criterion.independent:
        actual, expected = in_own_units(actual, expected, criterion.independent)
        which += f", in units of its parts of dimensions {', '.join(map(str, criterion.independent))},"
    scale = root_mean_square(expected)
    criterion = criterion.at(scale)
    if not all(_within(*chunk, criterion, scale, worst) for chunk in _chunks(actual, expected)):
        _explain(actual, expected, criterion, scale, which)


def is_right_at_once(
    look: Callable[[], torch.Tensor], expected: torch.Tensor, criterion: Criterion, worst: Errors
) -> bool:
    """Return whether one output is right, from one look at each element of ``look()``; updates ``worst`` if so.

    False where that does not tell: ``check_values`` does.
    """
    one_pass = _one_pass(expected.device)
    if criterion.independent or not one_pass or expected.dtype not in one_pass.DTYPES or not expected.numel():
        return False
    expected = expected.contiguous()
    scale = one_pass.root_mean_square(expected)
    if not math.isfinite(scale):
        return False
    criterion = criterion.at(scale)
    slack = max(criterion.slack(scale), _TINY)
    largest = one_pass.largest_errors(look().contiguous(), expected, criterion.tolerance, slack)
    return _is_right(*largest, worst)


@functools.cache
def _one_pass(device: torch.device) -> ModuleType | None:
    """Import what compares in one pass, which takes a second, so not before it is needed; None where it does not work.

    There may be no Triton, or it may fail when it compiles: it needs a C compiler, and a folder that it can write.
    """
    if device.type != "cuda":
        return None
    try:
        one_pass = importlib.import_module("harness.tensors.one_pass")
        few = torch.ones(32, device=device)
        one_pass.root_mean_square(few)
        one_pass.largest_errors(few, few, 1.0, 1.0)
    except Exception:  # whatever Triton, its compiler or a driver raises: the other way to compare needs none of them
        return None
    return one_pass


def in_own_units(
    actual: torch.Tensor, expected: torch.Tensor, independent: tuple[int, ...]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return both with every part of ``expected`` in units of its own root mean square, to a power of two.

    A part holds the elements with the same indices in the dimensions ``independent``. One without a finite,
    positive root mean square stays as it is.
    """
    actual, expected = widened(actual), widened(expected)
    others = [dimension for dimension in range(expected.ndim) if dimension not in independent]
    scales = torch.linalg.vector_norm(expected, dim=others, keepdim=True, dtype=torch.float64)
    scales /= math.sqrt(max(1, math.prod(expected.shape[dimension] for dimension in others)))
    # a power of two, so that no quotient is rounded
    units = torch.exp2(scales.log2().round()).where(scales.isfinite() & (scales > 0), 1.0).to(expected.dtype)
    return actual / units, expected / units


def _within(actual: torch.Tensor, expected: torch.Tensor, criterion: Criterion, scale: float, worst: Errors) -> bool:
    """Return whether a chunk is right as a whole. NaN and infinity are left to ``_explain``."""
    return _is_right(*_largest(actual, expected, criterion, scale), worst)


def _is_right(max_error: float, max_ratio: float, worst: Errors) -> bool:
    if not max_ratio <= 1.0:
        return False
    worst.max_abs_error = max(worst.max_abs_error, max_error)
    worst.max_error_ratio = max(worst.max_error_ratio, max_ratio)
    return True


def _largest(actual: torch.Tensor, expected: torch.Tensor, criterion: Criterion, scale: float) -> tuple[float, float]:
    """Error, and error over what is allowed, of a chunk."""
    error, allowed = errors_and_allowed(actual, expected, criterion, scale)
    return float(error.max()), float(error.div_(allowed).max())


def errors_and_allowed(
    actual: torch.Tensor, expected: torch.Tensor, criterion: Criterion, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the error of each element and what is allowed of it, where the root mean square is ``scale``."""
    actual, expected = widened(actual), widened(expected)
    error = actual - expected
    error = error.abs() if error.is_complex() else error.abs_()
    return error, expected.abs().mul_(criterion.tolerance).add_(max(criterion.slack(scale), _TINY))


def differ(ours: torch.Tensor, theirs: torch.Tensor, criterion: Criterion) -> float:
    """Return how far finite outputs of two calls are apart: the largest difference over what is allowed."""
    if ours.dtype in EXACT or ours.shape != theirs.shape:
        same = ours.shape == theirs.shape and torch.equal(bits(ours), bits(theirs))
        return 0.0 if same else math.inf
    scale = root_mean_square(theirs)
    return max((_largest(*chunk, criterion, scale)[1] for chunk in _chunks(ours, theirs)), default=0.0)


def largest_error(own: torch.Tensor, exact: torch.Tensor) -> float:
    """Return the largest error of a result against one in FP64, in its units; 0 for types that are compared exactly.

    ``exact`` may be on another device.
    """
    if own.dtype in EXACT:
        return 0.0
    chunks = _chunks(own, exact, CHUNK // 8)  # both as FP64
    errors = (torch.linalg.vector_norm(parts(a) - parts(e.to(a.device)), dim=1) for a, e in chunks)
    return max((float(error.nan_to_num_(posinf=0.0).max()) for error in errors), default=0.0)


def _explain_unequal(actual: torch.Tensor, expected: torch.Tensor, which: str) -> None:
    """Raise for an output that is compared exactly and differs."""
    wrong, first, begin = 0, 0, 0
    for a, e in _chunks(actual, expected):
        off = bits(a) != bits(e)
        if count := int(off.sum()):
            first = first if wrong else begin + int(off.nonzero()[0])
            wrong += count
        begin += a.numel()
    message = f"{_share(wrong, expected, which)}; first {_at(actual, expected, first)}"
    raise CandidateFailure(Status.WRONG_VALUE, f"{message}; {_name(expected.dtype)} must be equal")


def _explain(actual: torch.Tensor, expected: torch.Tensor, criterion: Criterion, scale: float, which: str) -> None:
    """Find out exactly which elements are off, and raise if there are any.

    Infinities and NaNs must be the reference's own, in each part of a complex element.
    """
    wrong = nonfinite = 0
    first: int | None = None
    largest = (0.0, 0)  # error, index
    begin = 0
    for actual_chunk, expected_chunk in _chunks(actual, expected):
        a, e = parts(actual_chunk), parts(expected_chunk)
        same = (a == e) | (a.isnan() & e.isnan())
        error = torch.linalg.vector_norm(torch.where(same, 0.0, a - e), dim=1)
        size = torch.linalg.vector_norm(torch.where(e.isfinite(), e, 0.0), dim=1)
        off = ~(error.isfinite() & (error <= criterion.tolerance * size + criterion.slack(scale)))
        nonfinite += int((e.isfinite().all(1) & ~a.isfinite().all(1)).sum())
        if count := int(off.sum()):
            wrong += count
            first = begin + int(off.nonzero()[0]) if first is None else first
            error = torch.where(error.isfinite(), error, 0.0)
            peak = int(error.argmax())
            largest = max(largest, (float(error[peak]), begin + peak))
        begin += error.numel()
    if not wrong:
        return
    message = f"{_share(wrong, expected, which)}; first {_at(actual, expected, first)}"
    if nonfinite:
        raise CandidateFailure(Status.NONFINITE, f"NaN or infinity in {nonfinite} elements of {which}; {message}")
    message += f"; worst error {largest[0]:.3g} {_at(actual, expected, largest[1])}"
    message += f"; allowed {criterion.tolerance:g} x |expected| + {criterion.slack(scale):.3g}"
    raise CandidateFailure(Status.WRONG_VALUE, message)


def _share(wrong: int, expected: torch.Tensor, which: str) -> str:
    return f"{wrong} of {expected.numel()} elements of {which} are off ({100 * wrong / expected.numel():.3g} %)"


def _at(actual: torch.Tensor, expected: torch.Tensor, index: int) -> str:
    got, wanted = (_shown(tensor.reshape(-1)[index]) for tensor in (actual, expected))
    return f"at {_unravel(index, tuple(expected.shape))} got {got}, expected {wanted}"


def _shown(element: torch.Tensor) -> str:
    if element.dtype is torch.bool and (byte := int(bits(element))) > 1:
        return f"a byte of {byte}, which is no bool"
    value = element.item()
    return str(value) if element.dtype in EXACT else f"{value:.7g}"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _chunks(
    actual: torch.Tensor, expected: torch.Tensor, size: int = CHUNK
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Both tensors piece by piece, flat."""
    if expected.numel() == 0:
        return iter(())
    return zip(actual.reshape(-1).split(size), expected.reshape(-1).split(size))


def root_mean_square(tensor: torch.Tensor) -> float:
    """Root mean square of the finite elements, by the modulus of complex ones."""
    norm_of_all, count = 0.0, 0
    for chunk in tensor.reshape(-1).split(CHUNK):
        norm = _norm(chunk)
        if not math.isfinite(norm):
            chunk = chunk[finite_elements(chunk)]
            unit = largest_value(chunk)  # whose squares FP64 holds
            norm = unit * _norm(chunk / unit) if chunk.numel() else 0.0
        norm_of_all, count = math.hypot(norm_of_all, norm), count + chunk.numel()
    return norm_of_all / math.sqrt(count) if count else 0.0


def largest_value(tensor: torch.Tensor) -> float:
    """Return the largest absolute value of the finite elements, by the modulus of complex ones; above 0."""
    sizes = (widened(chunk).abs().nan_to_num_(0.0, 0.0, 0.0).max() for chunk in tensor.reshape(-1).split(CHUNK))
    return max(_TINY, *map(float, sizes)) if tensor.numel() else _TINY


def _norm(flat: torch.Tensor) -> float:
    flat = widened(flat)
    return float(torch.linalg.vector_norm(torch.view_as_real(flat) if flat.is_complex() else flat, dtype=torch.float64))


def _unravel(index: int, shape: tuple[int, ...]) -> str:
    coordinates = []
    for size in reversed(shape):
        coordinates.append(index % size)
        index //= size
    return "[" + ", ".join(map(str, reversed(coordinates))) + "]"
