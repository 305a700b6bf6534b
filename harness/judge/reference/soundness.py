"""Checks that a reference can be judged against. Where it cannot, the problem is at fault, not the candidate."""

from __future__ import annotations

import torch

from harness.judge.compare import Errors, check_values
from harness.judge.criterion import Criterion, strict_criterion
from harness.judge.reference.model import PUBLISHED, Reference
from harness.judge.reference.overflow import overflown
from harness.judge.reference.timed_inputs import TELLING
from harness.problem.inputs import fresh_seeds
from harness.problem.module import ProblemError
from harness.problem.signature import input_name
from harness.result import CandidateFailure
from harness.tensors.dtypes import are_same, count_nan, is_finite
from harness.tensors.outputs import as_tensors, why_not_compared, why_not_passed
from harness.timing import Round
from harness.timing.rounds import outputs_of


def check(reference: Reference, seed: int, example: Round) -> None:
    """Look at ``example``, the reference's call with ``seed`` on published inputs, and call it once more.

    Raises ProblemError with what is wrong and what to change: inputs or outputs that cannot be
    compared or passed on, NaN, inputs that the call overwrites or that a seed does not
    determine, and outputs that another random stream or another call changes.
    """
    inputs, leaves = example.inputs[0], example.outputs[0]
    if reason := why_not_passed(inputs) or why_not_compared(leaves):
        raise _unfit(reference, reason)
    outputs = as_tensors(leaves, reference.setting.device)
    must_have_values(reference, seed, outputs)
    drawn = reference.setting.draw_one(seed, PUBLISHED.draw)
    if not reference.setting.workload.problem.overwrites_inputs:
        _must_leave_inputs(reference, seed, inputs, drawn)
    _must_fix_numbers(reference, drawn)
    _must_be_repeatable(reference, seed, drawn, outputs)


def must_have_values(reference: Reference, seed: int, outputs: list[torch.Tensor]) -> None:
    """Raise ProblemError for NaN, and where the run's precision cannot hold what FP64 can.

    An infinity that FP64 finds as well belongs to the function.
    """
    if all(map(is_finite, outputs)):
        return
    if lost := overflown(reference, seed):
        raise ProblemError(
            f"the reference of {_name(reference)} is not finite in {lost} elements with {reference.precision}, "
            "but is with FP64: there is nothing to compare with; choose another --precision"
        )
    for index, output in enumerate(outputs):
        if count := count_nan(output):
            raise _unfit(
                reference,
                f"it returns NaN in {count} of {output.numel()} elements of output {index}; "
                "draw inputs for which the function has a value",
            )


def _must_leave_inputs(reference: Reference, seed: int, left: list, drawn: list) -> None:
    for index, (after, before) in enumerate(zip(left, drawn)):
        if _same(after, before):
            continue
        name = input_name(reference.setting.workload, index)
        if not _same(reference.setting.draw_one(seed, PUBLISHED.draw)[index], before):
            raise _unfit(
                reference,
                f"get_inputs draws another '{name}' from the same seed; draw with torch's default generator only",
            )
        raise _unfit(reference, f"it overwrites its input '{name}'; work on a copy, as in {name} = {name}.clone()")


def _must_fix_numbers(reference: Reference, drawn: list) -> None:
    """Raise ProblemError for numbers that change between draws: the worker is told of tensors only."""
    numbers = [index for index, value in enumerate(drawn) if isinstance(value, (int, float))]
    if not numbers:
        return
    other = reference.setting.draw_one(*fresh_seeds(1), PUBLISHED.draw)
    for index in numbers:
        if not _same(other[index], drawn[index]):
            name = input_name(reference.setting.workload, index)
            raise _unfit(reference, f"its input '{name}' is another number in each draw; make it a tensor")


def _must_be_repeatable(reference: Reference, seed: int, inputs: list, outputs: list[torch.Tensor]) -> None:
    declared = getattr(reference.setting.workload.problem.module, "RANDOM", "")
    (other_seed,) = fresh_seeds(1)
    other = [] if declared else _call(reference, inputs, other_seed)
    if not declared and _agree(reference, other, outputs):
        return
    again = _call(reference, inputs, seed)
    repeats = _agree(reference, again, outputs)
    if not repeats and not _agree(reference, again, outputs, TELLING):
        raise _unfit(
            reference,
            "it is not deterministic: the same inputs and the same seed give another output at the next call; it keeps "
            "a state between calls, or draws from another generator than torch's",
        )
    if declared or not repeats and _agree(reference, other, outputs, TELLING):
        return  # what differs is the order of sums, for which PyTorch's own loss is allowed
    raise _unfit(
        reference,
        "its output is random: the same inputs give another one with another random stream, so only a "
        "candidate that draws the same numbers in the same order could match it; call eval() on dropout, make "
        "the random numbers an input, or tell candidates in RANDOM what to draw",
    )


def _call(reference: Reference, inputs: list, seed: int) -> list[torch.Tensor]:
    if reference.setting.workload.problem.overwrites_inputs:
        inputs = [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]
    return outputs_of(reference.model(), reference.setting, inputs, seed)


def _agree(
    reference: Reference, ours: list[torch.Tensor], theirs: list[torch.Tensor], criterion: Criterion | None = None
) -> bool:
    """Return whether the judge would take one output for the other, by its own criterion or by this one."""
    setting = reference.setting
    try:
        for mine, expected in zip(ours, theirs, strict=True):
            strict = strict_criterion(setting.workload.problem, setting.dtype, expected.dtype)
            check_values(mine, expected, criterion or strict, "", Errors())
    except (CandidateFailure, ValueError, RuntimeError):  # another number of outputs, or other shapes
        return False
    return True


def _same(ours, theirs) -> bool:
    if not isinstance(theirs, torch.Tensor):
        return not isinstance(theirs, (int, float)) or ours == theirs or theirs != theirs
    return ours.shape == theirs.shape and are_same(ours, theirs)


def _unfit(reference: Reference, reason: str) -> ProblemError:
    return ProblemError(f"the reference of {_name(reference)} cannot be judged against: {reason}")


def _name(reference: Reference) -> str:
    workload = reference.setting.workload
    return f"{workload.problem.id} ({workload.name})"
