"""Both ways to find the largest errors agree: PyTorch's operators, and one pass of a kernel on a GPU."""

import math

import pytest
import torch

from harness.judge.compare import Errors, check_values, is_right_at_once, root_mean_square
from harness.judge.criterion import Criterion

pytestmark = pytest.mark.gpu


def one_pass():
    return pytest.importorskip("harness.tensors.one_pass")


def errors_of(actual, expected, criterion, at_once):
    worst = Errors()
    if at_once:
        assert is_right_at_once(lambda: actual, expected, criterion, worst)
    else:
        check_values(actual, expected, criterion, "the output", worst)
    return worst


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1,), (4095,), (4097,), (3, 5, 7), (1 << 25, 1), ((1 << 25) + 3,)])
def test_both_find_the_same_errors(dtype, shape):
    expected = torch.randn(shape, device="cuda").to(dtype)
    actual = (expected.float() * (1 + 1e-5 * torch.rand(shape, device="cuda"))).to(dtype)
    criterion = Criterion(1e-2)
    ours, theirs = (errors_of(actual, expected, criterion, at_once) for at_once in (True, False))
    assert ours.max_abs_error == pytest.approx(theirs.max_abs_error, rel=1e-6)
    assert ours.max_error_ratio == pytest.approx(theirs.max_error_ratio, rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("count", [1, 4097, 1 << 25])
def test_both_find_the_same_size(dtype, count):
    values = (torch.randn(count, device="cuda") * 1e4).to(dtype)
    assert one_pass().root_mean_square(values) == pytest.approx(root_mean_square(values), rel=1e-12)


@pytest.mark.parametrize("place", [0, 4095, 4096, 9_999])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 3.0])
def test_one_wrong_element_is_seen_wherever_it_lies(place, value):
    expected = torch.zeros(10_000, device="cuda")
    actual = expected.clone()
    actual[place] = value
    assert not is_right_at_once(lambda: actual, expected, Criterion(1e-4), Errors())


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_finite_on_neither_side_is_left_to_the_other(value):
    expected = torch.zeros(10_000, device="cuda")
    expected[5] = value
    assert not is_right_at_once(expected.clone, expected, Criterion(1e-4), Errors())
    check_values(expected.clone(), expected, Criterion(1e-4), "the output", Errors())


def test_where_the_reference_lies_otherwise_elements_are_compared_by_their_indices():
    expected = torch.randn(300, 200, device="cuda").t()
    worst = errors_of(expected.contiguous(), expected, Criterion(1e-4), at_once=True)
    assert worst.max_abs_error == 0


def test_types_that_are_compared_otherwise_are_left_to_the_other():
    for dtype in (torch.int32, torch.float64, torch.complex64, torch.float8_e4m3fn):
        zeros = torch.zeros(16, device="cuda").to(dtype)
        assert not is_right_at_once(lambda zeros=zeros: zeros, zeros, Criterion(0.0), Errors())
