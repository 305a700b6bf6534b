"""Whether a precision can hold what a reference computes."""

from __future__ import annotations

import copy

import torch

from harness.judge.reference import Reference, cast, default_dtype
from harness.rounds import outputs_of


def overflown(reference: Reference, seed: int) -> int:
    """How many elements of the call on published inputs are not finite although FP64 finds them in FP32's range.

    What FP64 does not find finite either belongs to the function, as the logarithm of 0 does.
    """
    setting = reference.setting
    inputs = setting.draw([seed])[0]
    own = outputs_of(reference.model(), setting, inputs, seed)
    if all(bool(tensor.isfinite().all()) for tensor in own):
        return 0
    try:
        with default_dtype(torch.float64):
            wide = copy.deepcopy(reference.model()).double()
            exact = outputs_of(wide, setting, cast(inputs, torch.float64), seed)
    except RuntimeError:  # no FP64 to ask: nothing speaks for what is not finite
        return sum(int((~tensor.isfinite()).sum()) for tensor in own)
    return sum(int((~o.isfinite() & e.float().isfinite()).sum()) for o, e in zip(own, exact))
