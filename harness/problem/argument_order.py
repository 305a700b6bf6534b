"""Explanations of wrong outputs of a library: most often it takes its arguments in another order."""

from __future__ import annotations

import torch

from harness.problem.signature import Signature, TensorSpec
from harness.result import CandidateFailure, Status

_BY_VALUE = (Status.WRONG_VALUE, Status.NONFINITE, Status.REJECTED)


def may_explain(failure: CandidateFailure) -> bool:
    """Return whether a failure can come from arguments that were mixed up."""
    return failure.status in _BY_VALUE


def explain(failure: CandidateFailure, signature: Signature, unwritten: list[int], written: list[bool]) -> None:
    """Say in the message which outputs were not written and which inputs were, and how ``solution`` is called.

    Parameters
    ----------
    unwritten
        For each output, how many elements hold what they held before the call.
    written
        For each input tensor, whether the call changed it.
    """
    found, mixed_up = [], any(written)
    for spec, count in zip(signature.outputs, unwritten):
        if count and count == spec.elements:
            mixed_up = True
            found.append(f"`{spec.name}` was never written: all {count} elements hold what they held before the call")
        elif count and _is_certain(spec):
            found.append(f"{count} of {spec.elements} elements of `{spec.name}` were never written")
    found += [f"the call wrote into input `{spec.name}`" for spec, did in zip(signature.inputs, written) if did]
    failure.message = "; ".join([*found, failure.message])
    if mixed_up:
        failure.message += f"\nThe judge calls solution with these arguments, in this order:\n{signature.declaration()}"


def _is_certain(spec: TensorSpec) -> bool:
    """Return whether no computed value looks like one that was never written: with 8 bits any value may."""
    return spec.dtype.itemsize > 1 or spec.dtype is torch.bool
