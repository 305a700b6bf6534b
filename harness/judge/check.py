"""Check the candidate's outputs: one untimed call for each input distribution and set of weights."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from harness.judge.reference.model import CHANGED, PUBLISHED, InputCase
from harness.judge.session import EvaluationSession
from harness.problem.distributions import rare
from harness.problem.inputs import fresh_seeds, tensors_of
from harness.result import CandidateFailure
from harness.tensors.dtypes import is_finite
from harness.tensors.outputs import as_tensors

_CHANGED = (
    "weights of the reference that start as ones, zeros or another constant were changed, and so were "
    "tensors of the candidate that start as the same constant of as many elements"
)
_HARDENED = (
    "with the initial weights outputs hardly depend on inputs, so it is tested with He-initialised weights and "
    "random values in place of ones and zeros"
)
_NOT_COPIED = "With the names and shapes of the reference's state it would be given all weights"


def check(
    session: EvaluationSession, weights_copied: bool, phase: Callable[[str], None], timed_after: bool = False
) -> list[InputCase]:
    """Compare every output of every case; return the cases that could be compared.

    A case where the reference is not finite lies outside of the function's domain. What is ``timed_after`` is compared
    then: inputs of a structure would tell beforehand that it is a held-out workload. Raises CandidateFailure.
    """
    structure, setting = session.conditions.structure, session.reference.setting
    compared, cases = [], session.reference.trials(weights_copied, structure)
    if timed_after and structure and setting.timed.draw == structure:
        cases = [case for case in cases if case.draw not in (structure, rare(structure))]
    for position, case in enumerate(cases, start=1):
        phase(f"check {position}/{len(cases)}")
        (seed,) = fresh_seeds(1)
        session.call_candidate(case, seed)
        inputs, leaves = session.call_reference(case, seed).take(0)
        expected = as_tensors(leaves, session.conditions.device)
        if case == PUBLISHED or all(map(is_finite, expected)):
            inputs = tensors_of(inputs) if case.weights == "initial" else None
            with _explained(case, weights_copied):
                session.compare(case, seed, 0, expected, inputs)
            compared.append(case)
    for weights in {case.weights for case in cases} - {session.reference.setting.timed.weights}:
        session.ask(op="forget", weights=weights)
    session.reference.forget_others()
    return compared


@contextlib.contextmanager
def _explained(case: InputCase, weights_copied: bool) -> Iterator[None]:
    """Say what the weights are in a failure under weights that only a part of the candidates gets."""
    try:
        yield
    except CandidateFailure as failure:
        if case.weights != "initial" and not weights_copied:
            failure.message += f"; {_CHANGED if case == CHANGED else _HARDENED}. {_NOT_COPIED}"
        raise


def allclose(session: EvaluationSession) -> dict[str, Any]:
    """Call the candidate once on published inputs and compare every output with ``torch.allclose``.

    Of problems that state a tolerance for it. It is recorded beside the judge's own criterion, and changes no status:
    other benchmarks accept it for every type.

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
    expected = as_tensors(leaves, session.conditions.device)
    excesses = [
        allclose_excess(session.with_room(read), tensor, tolerance)
        for read, tensor in zip(session.fetched_outputs(expected), expected)
    ]
    worst = max(excesses, default=0.0)
    return {
        "tolerance": tolerance,
        "passes": worst <= 1.0,
        "max_excess": worst if worst < float("inf") else None,
    }


def allclose_excess(actual: torch.Tensor, expected: torch.Tensor, tolerance: float) -> float:
    """Return the largest error over what ``torch.allclose`` allows at an absolute and relative ``tolerance``.

    Infinite where an element is not finite on one side only. NaN equals NaN.
    """
    if not expected.numel():
        return 0.0
    wide = torch.complex128 if expected.is_complex() else torch.float64
    actual, expected = actual.to(wide), expected.to(wide)
    same = (actual == expected) | (actual.isnan() & expected.isnan())
    excess = torch.where(same, 0.0, (actual - expected).abs() / (tolerance + tolerance * expected.abs()))
    return float(excess.nan_to_num_(nan=float("inf"), posinf=float("inf")).max())
