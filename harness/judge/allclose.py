"""A second criterion beside the judge's own, for problems that state one: recorded, and without effect on the status.

Benchmarks that accept ``torch.allclose`` with one tolerance for every type are compared with by their own rule.
"""

from __future__ import annotations

from typing import Any

import torch

from harness.judge.reference.model import PUBLISHED
from harness.judge.session import EvaluationSession
from harness.problem.inputs import fresh_seeds
from harness.tensors.outputs import as_tensor


def check(session: EvaluationSession) -> dict[str, Any]:
    """Call the candidate once on published inputs and compare every output with ``torch.allclose``.

    Returns
    -------
    dict
        ``tolerance``, absolute and relative; ``passes``; and ``max_excess``, the largest error over what is allowed,
        None where an element is not finite on one side only. NaN equals NaN.

    Raises
    ------
    CandidateFailure
        The call fails, or returns other shapes or types.
    """
    (seed,) = fresh_seeds(1)
    tolerance = session.reference.setting.workload.problem.allclose
    session.call_candidate(PUBLISHED, seed)
    _, leaves = session.call_reference(PUBLISHED, seed).take(0)
    expected = [as_tensor(leaf) for leaf in leaves]
    excesses = [
        _excess(session.with_room(read), tensor, tolerance)
        for read, tensor in zip(session.fetched_outputs(expected), expected)
    ]
    worst = max(excesses, default=0.0)
    return {
        "tolerance": tolerance,
        "passes": worst <= 1.0,
        "max_excess": worst if worst < float("inf") else None,
    }


def _excess(actual: torch.Tensor, expected: torch.Tensor, tolerance: float) -> float:
    if not expected.numel():
        return 0.0
    wide = torch.complex128 if expected.is_complex() else torch.float64
    actual, expected = actual.to(wide), expected.to(wide)
    same = (actual == expected) | (actual.isnan() & expected.isnan())
    excess = torch.where(same, 0.0, (actual - expected).abs() / (tolerance + tolerance * expected.abs()))
    return float(excess.nan_to_num_(nan=float("inf"), posinf=float("inf")).max())
