"""The error that is allowed of an output.

A share of the root mean square of the expected tensor is allowed of every element: in the units of the output, and not
a constant, so that outputs which are small as a whole are still checked. Where a correct computation cannot keep that,
it is what PyTorch's own result loses against FP64, times ``LOSS_FACTOR``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from harness.problem.module import Problem
from harness.tensors.dtypes import EXACT, STEPS, TOLERANCES

LOSS_FACTOR = 4  # times the error of PyTorch's own result: another order of sums loses as much
# Where rare elements outweigh all others, a plain sum in FP32 rounds the others off: an H100 added 32,768 losses by
# atomics 4e-4 apart from PyTorch. Work that is left out there is off by more than a hundredth.
RARE_TOLERANCE = 0.01
_MUCH = 0.5  # of the root mean square: in 3/10 in BF16 what may be lost is 5, in 1/95 0.03
_HELD_IN_FP64 = 1e-12  # what PyTorch's own result loses at most, of the root mean square, if it is computed in FP64


@dataclass(frozen=True)
class Criterion:
    """Error that is allowed: relative to the element and to the whole, or as large as PyTorch's own, in its units.

    ``share`` is of the root mean square, by default the tolerance; ``step`` is the least distance of two
    values. ``below_fp64`` is the tolerance where PyTorch's own result turns out not to be computed in FP64.
    ``independent`` are the dimensions of ``Problem.independent``. Where errors are those of one factor of all elements,
    they are ``proportional`` to the elements.
    """

    tolerance: float
    loss: float = 0.0
    share: float | None = None
    step: float = 0.0
    below_fp64: float | None = None
    independent: tuple[int, ...] = ()
    proportional: bool = False

    def slack(self, scale: float) -> float:
        """Error allowed of an element that is 0, where the root mean square is ``scale``."""
        return max(self._share * scale, self.step, LOSS_FACTOR * self.loss)

    @property
    def _share(self) -> float:
        return self.tolerance if self.share is None else self.share

    def allowing(self, loss: float, largest: Callable[[], float]) -> Criterion:
        """Return the criterion for an output of which PyTorch's own result loses ``loss``.

        ``largest`` tells the largest absolute value of the output, which is off by that if errors are proportional.
        """
        if not self.proportional or not loss:
            return replace(self, loss=loss)
        return replace(self, tolerance=max(self.tolerance, LOSS_FACTOR * loss / largest()), share=self._share)

    def loosened(self, tolerance: float) -> Criterion:
        """Return the criterion with at least so much ``tolerance``, to an element and to the whole."""
        share = None if self.share is None else max(self.share, tolerance)
        return replace(self, tolerance=max(self.tolerance, tolerance), share=share, below_fp64=None)

    def at(self, scale: float) -> Criterion:
        """The criterion that holds where the root mean square is ``scale``."""
        if self.below_fp64 is not None and self.loss > _HELD_IN_FP64 * scale:
            return replace(self, tolerance=self.below_fp64, below_fp64=None)
        return self


def loses_much(loss: float, scale: float) -> bool:
    """Return whether what is allowed for this ``loss`` is about as large as an output of root mean square ``scale``."""
    return LOSS_FACTOR * loss >= _MUCH * scale


def loses_all(loss: float, scale: float) -> bool:
    """Return whether a result that loses that is noise: it is off by the root mean square of the output, and more."""
    return loss >= scale


def strict_criterion(problem: Problem, precision: torch.dtype, dtype: torch.dtype | None = None) -> Criterion:
    """Return what is asked of an output of ``dtype`` in a run of ``precision``.

    The tolerance is that of the coarser of both, in FP32 the problem's ``TOLERANCE``. Two exceptions:
    eight bits are only how a result is stored, so the slack stays that of the run; 64 bits are the
    problem's own choice, and are compared as such where PyTorch computes in FP64 too.
    """
    dtype = dtype or precision
    if dtype in EXACT:
        return Criterion(0.0)
    of_run, own = (_tolerance(problem, one) for one in (precision, dtype))
    if dtype in STEPS:
        return Criterion(own, share=of_run, step=STEPS[dtype])
    if dtype in (torch.float64, torch.complex128):
        return Criterion(own, below_fp64=of_run)
    return Criterion(max(of_run, own), independent=problem.independent, proportional=problem.squared)


def _tolerance(problem: Problem, dtype: torch.dtype) -> float:
    if dtype in (torch.float32, torch.complex64):
        return getattr(problem.module, "TOLERANCE", TOLERANCES[dtype])
    return TOLERANCES[dtype]
