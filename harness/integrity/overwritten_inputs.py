"""overwrites_inputs: a candidate may not write into its inputs, unless the reference does the same."""

from __future__ import annotations

import torch

from harness.result import CandidateFailure, Status

RULE = "overwrites_inputs"


def check(after_candidate: list[torch.Tensor], after_reference: list[torch.Tensor]) -> None:
    """Compare the inputs of one call as candidate and reference left them, bit for bit.

    Raises CandidateFailure ``rejected`` with the input and how much of it changed.
    """
    for index, (ours, theirs) in enumerate(zip(after_candidate, after_reference)):
        same = (ours == theirs) | ((ours != ours) & (theirs != theirs))
        if changed := int((~same).sum()):
            raise CandidateFailure(
                Status.REJECTED,
                f"{RULE}: the call changed {changed} of {ours.numel()} elements of input tensor {index}, "
                "which its caller still needs",
                rule=RULE,
            )
