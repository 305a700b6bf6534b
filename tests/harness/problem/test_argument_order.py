"""A library that mixes up its arguments is told which it took for which."""

import pytest
import torch

from harness.problem import argument_order
from harness.problem.signature import Signature, TensorSpec
from harness.result import CandidateFailure, Status

X, OUT = TensorSpec("x", (4,), torch.float32), TensorSpec("output", (4,), torch.float32)
BYTES = TensorSpec("output", (4,), torch.uint8)


def message(unwritten, written, output=OUT):
    failure = CandidateFailure(Status.NONFINITE, "NaN in 4 elements")
    argument_order.explain(failure, Signature((X,), (), (output,), ()), [unwritten], [written])
    return failure.message


def test_an_output_that_was_not_written_at_all_and_an_input_that_was_are_named_with_the_signature():
    assert message(4, True) == (
        "`output` was never written: all 4 elements hold what they held before the call; "
        "the call wrote into input `x`; NaN in 4 elements\n"
        "The judge calls solution with these arguments, in this order:\n"
        'extern "C" void solution(\n    const float* x,\n    float* output)'
    )


def test_a_part_that_was_not_written_is_counted_and_is_no_mixing_up():
    assert message(1, False) == "1 of 4 elements of `output` were never written; NaN in 4 elements"
    assert message(1, False, BYTES) == message(0, False) == "NaN in 4 elements"


@pytest.mark.parametrize("status", Status)
def test_only_wrong_values_are_explained(status):
    by_value = (Status.WRONG_VALUE, Status.NONFINITE, Status.REJECTED)
    assert argument_order.may_explain(CandidateFailure(status, "")) == (status in by_value)
