"""The comparison sees every element, and says what is wrong where."""

import contextlib
import math
import sys
from dataclasses import replace

import pytest
import torch

from harness.judge import compare as compare_module
from harness.judge.compare import Errors, check_kind, check_values, is_right_at_once, largest_value, root_mean_square
from harness.judge.criterion import Criterion
from harness.result import CandidateFailure, Status

CPU = torch.device("cpu")


def compare(actual, expected, tolerance=1e-4):
    worst = Errors()
    check_values(actual, expected, Criterion(tolerance), "the output", worst)
    return worst


def failure(*arguments, **keywords):
    with pytest.raises(CandidateFailure) as caught:
        compare(*arguments, **keywords)
    return caught.value


def test_equal_and_nearly_equal_pass_and_the_worst_error_is_kept():
    expected = torch.randn(1000)
    worst = compare(expected + 5e-5, expected)
    assert worst.max_abs_error == pytest.approx(5e-5, rel=0.01)
    assert 0 < worst.max_error_ratio <= 1


def test_one_wrong_element_among_many_is_found_at_its_index():
    expected = torch.rand(70, 80, 90)
    actual = expected.clone()
    actual[12, 34, 56] += 0.5
    error = failure(actual, expected)
    assert error.status is Status.WRONG_VALUE
    assert "1 of 504000 elements" in error.message
    assert "first at [12, 34, 56]" in error.message and "worst error 0.5" in error.message


def test_what_pytorch_loses_is_allowed_of_each_element_alike_where_one_factor_is_off():
    expected = torch.tensor([1.0, 1e-3, -1e-3])
    off_by_a_hundredth = Criterion(1e-4, proportional=True).allowing(0.01, lambda: largest_value(expected))
    for criterion, zeros_are_right in ((replace(off_by_a_hundredth, share=1e-6), False), (Criterion(1e-4, 0.01), True)):
        check_values(1.03 * expected, expected, criterion, "the output", Errors())
        zeros = expected * torch.tensor([1.0, 0.0, 0.0])
        with contextlib.nullcontext() if zeros_are_right else pytest.raises(CandidateFailure):
            check_values(zeros, expected, criterion, "the output", Errors())


@pytest.mark.parametrize("values, largest", [([3.0, -4.0], 4.0), ([1.0, math.inf, math.nan], 1.0), ([3 + 4j], 5.0)])
def test_the_largest_value_is_that_of_finite_elements(values, largest):
    assert largest_value(torch.tensor(values)) == largest
    assert largest_value(torch.zeros(2)) > 0 and largest_value(torch.zeros(0)) > 0


def test_zeros_do_not_pass_for_small_outputs():
    softmax = torch.softmax(torch.rand(4, 100_000), dim=1)  # all about 1e-5
    assert torch.allclose(torch.zeros_like(softmax), softmax, atol=1e-4)
    assert failure(torch.zeros_like(softmax), softmax).status is Status.WRONG_VALUE


def test_the_criterion_does_not_depend_on_the_unit():
    expected = torch.randn(1000)
    for unit in (1e-12, 1.0, 1e12):
        compare(expected * unit * (1 + 5e-5), expected * unit)
        assert failure(expected * unit * (1 + 5e-3), expected * unit)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_nonfinite_where_the_reference_is_finite(bad):
    expected = torch.rand(100)
    actual = expected.clone()
    actual[7] = bad
    error = failure(actual, expected)
    assert error.status is Status.NONFINITE and "[7]" in error.message


def test_the_references_own_infinities_and_nans_must_be_matched():
    expected = torch.tensor([1.0, float("inf"), -float("inf"), float("nan")])
    compare(expected.clone(), expected)
    assert failure(torch.tensor([1.0, 2.0, -float("inf"), float("nan")]), expected).status is Status.WRONG_VALUE
    assert failure(torch.tensor([1.0, -float("inf"), -float("inf"), float("nan")]), expected)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool])
def test_integers_and_booleans_must_be_equal(dtype):
    expected = torch.tensor([0, 1, 1, 0]).to(dtype)
    compare(expected.clone(), expected)
    error = failure(torch.tensor([0, 1, 0, 0]).to(dtype), expected)
    assert "first at [2]" in error.message


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_compared_in_single(dtype):
    expected = torch.randn(1000).to(dtype)
    compare(expected * 1.004, expected, tolerance=1e-2)
    assert failure(expected * 1.1, expected, tolerance=1e-2)


def test_all_zero_expected_wants_zeros():
    compare(torch.zeros(10), torch.zeros(10))
    assert failure(torch.full((10,), 1e-6), torch.zeros(10))


def test_empty_and_scalar_outputs():
    compare(torch.empty(0, 3), torch.empty(0, 3))
    compare(torch.tensor(2.0), torch.tensor(2.0))
    assert "at []" in failure(torch.tensor(3.0), torch.tensor(2.0)).message


def described(**changes):
    return [{"type": "Tensor", "shape": [2, 3], "dtype": "float32", "device": "cpu", **changes}]


@pytest.mark.parametrize(
    "outputs, status, message",
    [
        (described(shape=[6]), Status.WRONG_SHAPE, r"shape \[6\], expected \[2, 3\]"),
        (described(shape=[1, 3]), Status.WRONG_SHAPE, "shape"),  # would broadcast
        (described(dtype="float16"), Status.WRONG_DTYPE, "float16, expected float32"),
        (described(device="cuda:0"), Status.WRONG_DTYPE, "on cuda:0, expected cpu"),
        (described(type="LazyTensor"), Status.WRONG_DTYPE, "a LazyTensor, expected a plain"),
        ([], Status.WRONG_SHAPE, "returned 0 output"),
        (described() * 2, Status.WRONG_SHAPE, "returned 2 output"),
        (None, Status.WRONG_SHAPE, "no output"),
        ([None], Status.WRONG_DTYPE, "a None"),
    ],
)
def test_kind_of_the_output_comes_first(outputs, status, message):
    with pytest.raises(CandidateFailure, match=message) as caught:
        check_kind(outputs, [torch.zeros(2, 3)], CPU)
    assert caught.value.status is status
    check_kind(described(), [torch.zeros(2, 3)], CPU)


def test_comparing_leaves_the_tensors_as_they_were():
    actual, expected = torch.full((10,), 2.0, dtype=torch.float64), torch.full((10,), 2.0, dtype=torch.float64)
    compare(actual, expected)
    assert actual.unique().tolist() == expected.unique().tolist() == [2.0]


def test_what_pytorch_loses_widens_the_criterion_and_nothing_narrows_it():
    assert Criterion(1e-4).slack(10.0) == Criterion(1e-4, loss=1e-6).slack(10.0) == 1e-3
    assert Criterion(1e-4, loss=1e-2).slack(10.0) == 4e-2


def test_independent_parts_are_compared_by_their_own_size():
    expected = torch.randn(4, 50, 3, 8) * torch.tensor([1e-6, 1.0, 1e6]).view(3, 1)
    left_out = expected.clone()
    left_out[:, :, 0] = 0  # beside the root mean square of all it is nothing
    compare(left_out, expected)
    with pytest.raises(CandidateFailure) as caught:
        check_values(left_out, expected, Criterion(1e-4, independent=(0, 2)), "the output", Errors())
    assert "1600 of 4800 elements of the output, in units of its parts of dimensions 0, 2, are off" in str(caught.value)
    check_values(expected * (1 + 5e-5), expected, Criterion(1e-4, independent=(0, 2)), "the output", Errors())


def test_a_part_without_a_size_is_compared_as_it_is():
    expected = torch.randn(4, 100)
    expected[1], expected[2] = 0, float("inf")
    check_values(expected.clone(), expected, Criterion(1e-4, independent=(0,)), "the output", Errors())
    wrong = expected.clone()
    wrong[1, 7] = 1e-3
    with pytest.raises(CandidateFailure, match=r"\[1, 7\]"):
        check_values(wrong, expected, Criterion(1e-4, independent=(0,)), "the output", Errors())


class OnePass:
    """Stands in for the kernels of a GPU, which count how often they look; elements are FP32."""

    DTYPES = (torch.float32,)

    def __init__(self):
        self.looks = 0

    def root_mean_square(self, tensor):
        return float(tensor.double().square().mean().sqrt())

    def largest_errors(self, actual, expected, tolerance, slack):
        self.looks += 1
        error = (actual - expected).abs()
        return float(error.max()), float((error / (tolerance * expected.abs() + slack)).max())


@pytest.fixture
def one_pass(monkeypatch):
    kernels = OnePass()
    monkeypatch.setattr(compare_module, "_one_pass", lambda device_type: kernels)
    return kernels


STRICT = Criterion(1e-4)


def at_once(actual, expected, criterion=STRICT):
    worst = Errors()
    return is_right_at_once(lambda: actual, expected, criterion, worst), worst


def test_at_once_the_same_errors_are_found(one_pass):
    expected = torch.randn(1000)
    right, worst = at_once(expected + 5e-5, expected)
    assert right and one_pass.looks == 1
    both = compare(expected + 5e-5, expected)
    assert worst.max_error_ratio == pytest.approx(both.max_error_ratio, rel=1e-5)
    assert worst.max_abs_error == both.max_abs_error


def test_at_once_what_is_off_is_not_right_and_nothing_is_noted(one_pass):
    expected = torch.randn(1000)
    for wrong in (1.0, float("nan"), float("inf")):
        right, worst = at_once(expected.clone().index_fill_(0, torch.tensor([7]), wrong), expected)
        assert not right and worst == Errors()


@pytest.mark.parametrize("expected", [
    torch.tensor([1.0, float("inf")]), torch.tensor([1.0, float("nan")]), torch.zeros(0), torch.arange(3),
    torch.zeros(3, dtype=torch.float64),
])  # fmt: skip
def test_at_once_nothing_is_said_of_what_takes_another_look(one_pass, expected):
    assert not at_once(expected.clone(), expected)[0] and not one_pass.looks


def test_at_once_nothing_is_said_of_parts_with_units_of_their_own(one_pass):
    expected = torch.ones(2, 2)
    assert not at_once(expected, expected, Criterion(1e-4, independent=(0,)))[0]


def test_on_a_cpu_nothing_is_compared_at_once():
    assert not at_once(torch.ones(3), torch.ones(3))[0]


def test_the_size_of_an_output_is_known_where_its_squares_are_beyond_a_double():
    """It was infinite, so that -1e200 passed for 1e200."""
    expected = torch.tensor([1e200, -3e200, float("inf")], dtype=torch.float64)
    assert root_mean_square(expected) == pytest.approx(5**0.5 * 1e200)
    with pytest.raises(CandidateFailure):
        check_values(-expected[:2], expected[:2], STRICT, "the output", Errors())


@pytest.mark.parametrize("lack", [None, RuntimeError("Failed to find C compiler"), OSError("Read-only file system")])
def test_nothing_is_compared_at_once_where_triton_fails_at_its_first_launch(monkeypatch, lack):
    """Only a missing Triton was looked for: without a C compiler every evaluation ended as a failure of the judge."""

    class Kernels(OnePass):
        def largest_errors(self, *arguments):
            if lack:
                raise lack
            return super().largest_errors(*arguments)

    kernels, ones = Kernels(), torch.ones
    monkeypatch.setitem(sys.modules, "harness.tensors.one_pass", kernels)
    monkeypatch.setattr(torch, "ones", lambda *shape, device: ones(*shape))  # there may be no GPU
    found = compare_module._one_pass.__wrapped__(torch.device("cuda", 0))
    assert found is (None if lack else kernels)
