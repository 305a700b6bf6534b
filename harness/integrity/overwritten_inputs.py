"""overwrites_inputs: a candidate may not write into its inputs, unless the reference does the same."""

from __future__ import annotations

import torch

from harness.result import CandidateFailure, Status
from harness.tensors.dtypes import are_same, same_values

RULE = "overwrites_inputs"


def check(after_candidate: torch.Tensor, after_reference: torch.Tensor, index: int) -> None:
    """Compare input tensor ``index`` of one call as candidate and reference left it.

    Raises CandidateFailure ``rejected`` with how much of it changed.
    """
    if are_same(after_candidate, after_reference):
        return
    changed = int((~same_values(after_candidate, after_reference)).sum())
    raise CandidateFailure(
        Status.REJECTED,
        f"{RULE}: the call changed {changed} of {after_reference.numel()} elements of input tensor {index}, "
        "which its caller still needs",
        rule=RULE,
    )
