"""Size of a tensor, and its largest errors against another, in one pass each on a GPU, by kernels in Triton.

PyTorch's operators take 16 passes for the latter. Triton comes with PyTorch's builds for CUDA.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_BLOCK = 4096  # elements of a program: 16 of each thread


def root_mean_square(tensor: torch.Tensor) -> float:
    """Return it for a contiguous tensor of one of ``DTYPES``, of one element at least; summed in FP64.

    Not finite where an element is not.
    """
    programs = triton.cdiv(tensor.numel(), _BLOCK)
    sums = torch.empty(programs, dtype=torch.float64, device=tensor.device)
    with torch.cuda.device(tensor.device):
        _sums_of_squares[(programs,)](tensor, sums, tensor.numel(), BLOCK=_BLOCK, num_warps=8)
    return math.sqrt(float(sums.sum()) / tensor.numel())


def largest_errors(
    actual: torch.Tensor, expected: torch.Tensor, tolerance: float, slack: float
) -> tuple[float, float]:
    """Return the largest error of an element, and the largest error over what is allowed.

    Parameters
    ----------
    actual, expected
        Contiguous tensors on one GPU, of as many elements, at least one, of one of ``DTYPES``. ``actual`` may change
        meanwhile: each of its elements is read once.
    tolerance, slack
        Of an element ``e`` of ``expected``, ``tolerance * abs(e) + slack`` is allowed.

    Returns
    -------
    tuple of float
        Both infinite where an element of one of them is not finite.
    """
    count = expected.numel()
    programs = triton.cdiv(count, _BLOCK)
    found = torch.empty(2, programs, device=expected.device)
    with torch.cuda.device(expected.device):
        _largest_errors[(programs,)](actual, expected, found, count, tolerance, slack, BLOCK=_BLOCK, num_warps=8)
    error, ratio = found.amax(1).tolist()
    return error, ratio


@triton.jit
def _sums_of_squares(tensor, sums, count, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    places = program.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(tensor + places, mask=places < count, other=0.0).to(tl.float64)
    tl.store(sums + program, tl.sum(values * values, 0))


@triton.jit
def _largest_errors(actual, expected, found, count, tolerance, slack, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    places = program.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = places < count
    ours = tl.load(actual + places, mask=there, other=0.0).to(tl.float32)
    theirs = tl.load(expected + places, mask=there, other=0.0).to(tl.float32)
    error = tl.abs(ours - theirs)
    ratio = error / (tolerance * tl.abs(theirs) + slack)
    # a maximum leaves out what is no number, as the difference of two infinities
    finite = (error < float("inf")) & (ratio < float("inf"))
    tl.store(found + program, tl.max(tl.where(finite, error, float("inf")), 0))
    tl.store(found + tl.num_programs(0) + program, tl.max(tl.where(finite, ratio, float("inf")), 0))
