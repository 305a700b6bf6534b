"""Overflow: elements that a precision cannot hold and FP64 can."""

from __future__ import annotations

import torch

from harness.judge.reference.model import PUBLISHED, Reference
from harness.tensors.dtypes import finite_elements, is_finite


def overflown(reference: Reference, seed: int) -> int:
    """Return how many elements of the call on published inputs are not finite although FP64 finds them in FP32's range.

    What FP64 does not find finite either belongs to the function, as the logarithm of 0 does.
    """
    own = reference.outputs(PUBLISHED, seed)
    if all(map(is_finite, own)):
        return 0
    if reference.setting.workload.problem.keeps_dtypes:
        return 0
    try:
        exact = reference.in_fp64(PUBLISHED, seed)
    except RuntimeError:  # no FP64 to ask: nothing speaks for what is not finite
        return sum(int((~finite_elements(tensor)).sum()) for tensor in own)
    return sum(int((~finite_elements(o) & _in_fp32s_range(e)).sum()) for o, e in zip(own, exact))


def _in_fp32s_range(exact: torch.Tensor) -> torch.Tensor:
    return finite_elements(exact.to(torch.complex64) if exact.is_complex() else exact.float())
