"""Every element type of PyTorch is compared exactly, or with a tolerance of its own, or refused with the reason."""

import os

import pytest
import torch

from harness.judge.compare import Errors, check_values
from harness.judge.criterion import strict_criterion
from harness.memory.shared_tensors import OpenedSharedTensors, SharedTensors, lay_out
from harness.problem.module import ProblemError
from harness.result import CandidateFailure, Status
from harness.tensors.dtypes import COMPARED, EXACT, STEPS, TOLERANCES, count_marked, marked
from harness.tensors.outputs import why_not_compared

CPU = torch.device("cpu")
ALL = sorted({value for value in vars(torch).values() if isinstance(value, torch.dtype)}, key=str)
KNOWN = sorted(COMPARED, key=str)
INEXACT = sorted(TOLERANCES, key=str)
COMPLEX = [dtype for dtype in KNOWN if dtype.is_complex]


def values(dtype, count=64):
    x = torch.linspace(0.25, 1.0, count)
    if dtype.is_complex:
        return torch.complex(x, 1.5 - x).to(dtype)
    return x.to(dtype) if dtype.is_floating_point else (x * 100).to(torch.int32).to(dtype)


def compare(actual, expected, problem, precision=torch.float32):
    check_values(actual, expected, strict_criterion(problem("1/19"), precision, expected.dtype), "the output", Errors())


def failure(*arguments):
    with pytest.raises(CandidateFailure) as caught:
        compare(*arguments)
    return caught.value


def with_bytes(tensor, index, data):
    """A copy in which the bytes of one element are others."""
    changed = tensor.clone()
    changed.view(torch.uint8).view(tensor.numel(), -1)[index] = torch.tensor(list(data), dtype=torch.uint8)
    return changed


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_a_type_is_compared_or_refused_with_a_reason(dtype):
    if dtype in COMPARED:
        assert not why_not_compared([torch.empty(2, dtype=dtype)])
        return
    try:
        tensor = torch.empty(2, dtype=dtype)
    except (NotImplementedError, RuntimeError):
        return  # nobody can make one
    assert "quantized" in (reason := why_not_compared([tensor])) or str(dtype).removeprefix("torch.") in reason


@pytest.mark.parametrize("dtype", KNOWN, ids=str)
def test_equal_outputs_pass_and_one_wrong_element_does_not(dtype, problem):
    expected = values(dtype)
    compare(expected.clone(), expected, problem)
    wrong = expected.clone()
    wrong[7] = values(dtype)[-1] if dtype is not torch.bool else False
    error = failure(wrong, expected, problem)
    assert error.status is Status.WRONG_VALUE
    assert "1 of 64 elements" in error.message and "first at [7] got" in error.message


@pytest.mark.parametrize("dtype", INEXACT, ids=str)
def test_a_result_may_be_off_by_as_much_as_its_type_rounds(dtype, problem):
    expected = values(dtype)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    step = TOLERANCES[dtype] / 4 if dtype in STEPS else TOLERANCES[dtype] / 2
    compare((expected.to(wide) * (1 + step)).to(dtype), expected, problem)
    assert failure((expected.to(wide) * (1 + 8 * step)).to(dtype), expected, problem)


@pytest.mark.parametrize("dtype", INEXACT, ids=str)
def test_nan_is_found_in_either_part(dtype, problem):
    expected = values(dtype)
    size = expected.element_size() // (2 if dtype.is_complex else 1)
    nan = values(torch.float64)[:1].mul(float("nan")).to(torch.float32 if size < 4 else torch.float64)
    part = nan.to(dtype.to_real())
    data = part.view(torch.uint8).tolist()
    for position in range(2 if dtype.is_complex else 1):
        element = expected[3:4].view(torch.uint8).tolist()
        element[position * size : (position + 1) * size] = data
        error = failure(with_bytes(expected, 3, element), expected, problem)
        assert error.status is Status.NONFINITE and "[3]" in error.message


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_the_real_part_alone_is_not_the_result(dtype, problem):
    expected = values(dtype)
    real = torch.complex(torch.view_as_real(expected)[..., 0].float(), torch.zeros(64)).to(dtype)
    assert failure(real, expected, problem).status is Status.WRONG_VALUE


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint64], ids=str)
def test_integers_beyond_what_fp64_holds_are_told_apart(dtype, problem):
    expected = torch.tensor([1, 1 << 60], dtype=dtype)
    error = failure(torch.tensor([1, (1 << 60) + 1], dtype=dtype), expected, problem)
    assert "got 1152921504606846977, expected 1152921504606846976" in error.message


def test_fp64_is_held_to_fp64_unless_pytorch_itself_computes_in_less(problem):
    expected = values(torch.float64)
    criterion = strict_criterion(problem("1/19"), torch.float32, torch.float64)
    assert failure(expected * (1 + 1e-5), expected, problem)
    check_values(expected * (1 + 1e-5), expected, type(criterion)(1e-6, loss=1e-8, below_fp64=1e-4), "", Errors())


@pytest.mark.parametrize("dtype", KNOWN, ids=str)
def test_every_type_goes_through_the_judges_memory_unchanged(dtype):
    tensors = [values(dtype), values(dtype)[3], values(dtype).view(8, 8).T, values(dtype)[:0]]
    outbox = SharedTensors(CPU, tensors)
    opened = OpenedSharedTensors(outbox.handle, [os.dup(fd) for fd in outbox.fds])
    for slot, tensor in zip(lay_out(tensors), tensors):
        opened.write(slot, tensor)
    for slot, tensor in zip(lay_out(tensors), tensors):
        assert torch.equal(outbox.read(slot).reshape(-1).view(torch.uint8), tensor.reshape(-1).view(torch.uint8))
    outbox.close()


def test_a_conjugate_that_is_only_noted_is_written_as_what_it_is():
    noted = [values(torch.complex64).conj(), values(torch.complex64).conj().imag]
    outbox = SharedTensors(CPU, noted)
    opened = OpenedSharedTensors(outbox.handle, [os.dup(fd) for fd in outbox.fds])
    for slot, tensor in zip(lay_out(noted), noted):
        opened.write(slot, tensor)
        assert torch.equal(outbox.read(slot), tensor.resolve_conj().resolve_neg())
    outbox.close()


@pytest.mark.parametrize("dtype", KNOWN, ids=str)
def test_an_element_that_is_never_written_is_known_and_wrong_whatever_the_type(dtype, problem):
    for call in range(2):
        untouched = marked([4, 16], dtype, CPU, call)
        assert count_marked(untouched) == 64
        assert failure(untouched, values(dtype).view(4, 16), problem)
        if dtype.itemsize > 1:
            assert count_marked(values(dtype)) == 0


SOURCE = """
import torch
NAMES = {names!r}
def convert(x, name):
    dtype = getattr(torch, name)
    if dtype.is_complex:
        return torch.complex(x, 1.5 - x).to(dtype)
    return x.to(dtype) if dtype.is_floating_point else (x * 100).to(torch.int32).to(dtype)
class Model(torch.nn.Module):
    def forward(self, x):
        x = x.abs().clamp(0.01, 1)
        return {{name: convert(x, name) for name in NAMES}}
def get_inputs(): return [torch.rand(64)]
def get_init_inputs(): return []
"""
WRONG = """
class ModelNew(Model):
    def forward(self, x):
        outputs = super().forward(x)
        data = outputs[{name!r}].view(torch.uint8).view(64, -1)
        data[5] = data[5] + 64 if {name!r} != "bool" else 1 - data[5]
        return outputs
"""


def names(dtypes):
    return [str(dtype).removeprefix("torch.") for dtype in dtypes]


def test_an_honest_candidate_passes_in_every_type_at_once(judged, write_problem):
    source = SOURCE.format(names=names(KNOWN))
    result = judged(write_problem(source), source.replace("class Model", "class ModelNew"))
    assert result.status is Status.OK, result.message


@pytest.mark.parametrize("dtype", KNOWN, ids=str)
def test_a_wrong_element_of_any_type_is_found_by_the_judge(dtype, judged, write_problem):
    (name,) = names([dtype])
    source = SOURCE.format(names=[name])
    result = judged(write_problem(source), source + WRONG.format(name=name))
    assert result.status in (Status.WRONG_VALUE, Status.NONFINITE) and "at [5]" in result.message, result.message


UNFIT = {
    "quint8": "torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)",
    "sparse_coo Tensor": "x.to_sparse()",
    "sparse_csr Tensor": "x.view(8, 8).to_sparse_csr()",
    "nested Tensor": "torch.nested.nested_tensor([x, x[:3]])",
    "str": "'text'",
}


@pytest.mark.parametrize("kind", UNFIT)
def test_a_reference_with_outputs_that_are_not_compared_is_refused(kind, judged, write_problem):
    returned = "{name: convert(x, name) for name in NAMES}"
    source = SOURCE.format(names=[]).replace(returned, UNFIT[kind])
    with pytest.raises(ProblemError, match="cannot be judged against: its output is"):
        judged(write_problem(source), source.replace("class Model", "class ModelNew"))


def test_the_element_types_that_are_exact_have_no_tolerance():
    assert not EXACT & TOLERANCES.keys()
