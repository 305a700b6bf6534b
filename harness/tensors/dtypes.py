"""Element types of tensors: how each is compared, and the bytes that mark an element nobody has written.

Integers and booleans are compared exactly, and so is float8_e8m0fnu: it holds exponents, whose
next value is twice as large. All other types have a tolerance. Types that are not listed (quantised,
sub-byte and packed ones) have no arithmetic in PyTorch and are refused.
"""

from __future__ import annotations

import torch

EXACT = frozenset({
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.uint16, torch.uint32, torch.uint64, torch.float8_e8m0fnu,
})  # fmt: skip
TOLERANCES = {
    torch.float64: 1e-6, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2,
    torch.complex128: 1e-6, torch.complex64: 1e-4, torch.complex32: 1e-2,
    # neighbours are up to 1/8 and 1/4 apart
    torch.float8_e4m3fn: 0.13, torch.float8_e4m3fnuz: 0.13, torch.float8_e5m2: 0.26, torch.float8_e5m2fnuz: 0.26,
}  # fmt: skip
# The distance of neighbours around 0, where types are so coarse that it matters.
STEPS = {
    torch.float8_e4m3fn: 2.0**-9, torch.float8_e4m3fnuz: 2.0**-10,
    torch.float8_e5m2: 2.0**-16, torch.float8_e5m2fnuz: 2.0**-17,
}  # fmt: skip
COMPARED = EXACT | TOLERANCES.keys()

_SIGNED = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_ONLY_NAN = {torch.float8_e4m3fnuz: 0x80, torch.float8_e5m2fnuz: 0x80}  # 0xFF is a number there
_NAN, _INTEGER, _OTHER = 0xFF, 0x55, 0xC5


def is_scaled(tensor: torch.Tensor) -> bool:
    """Return whether a run's precision applies: real floating point, but not 8 bits, which a problem chose itself."""
    return tensor.is_floating_point() and tensor.dtype.itemsize > 1


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of an exact type as integers that every operator knows; a boolean as its byte."""
    return tensor if tensor.dtype in _SIGNED.values() else tensor.view(_SIGNED[tensor.dtype.itemsize])


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor that can be subtracted and measured: types below 32 bits a part as those of 32."""
    if tensor.is_complex():
        return tensor.to(torch.complex64) if tensor.dtype is torch.complex32 else tensor
    return tensor.float() if tensor.dtype.itemsize < 4 else tensor


def parts(tensor: torch.Tensor) -> torch.Tensor:
    """Return a flat tensor as FP64 of shape (elements, 1), or (elements, 2) where it is complex."""
    return torch.view_as_real(tensor).double() if tensor.is_complex() else tensor.double()[:, None]


def finite_elements(tensor: torch.Tensor) -> torch.Tensor:
    """Return which elements are neither NaN nor infinite."""
    return torch.ones_like(tensor, dtype=torch.bool) if tensor.dtype in EXACT else widened(tensor).isfinite()


def is_finite(tensor: torch.Tensor) -> bool:
    """Return whether no element is NaN or infinite; in one pass."""
    if tensor.dtype in EXACT or not tensor.numel():
        return True
    tensor = widened(tensor)
    ends = torch.aminmax(torch.view_as_real(tensor) if tensor.is_complex() else tensor)
    return bool(torch.stack([*ends]).isfinite().all())


def count_nan(tensor: torch.Tensor) -> int:
    """Return how many elements are NaN, in either part."""
    return 0 if tensor.dtype in EXACT else int(widened(tensor).isnan().sum())


def same_values(ours: torch.Tensor, theirs: torch.Tensor) -> torch.Tensor:
    """Return which elements of two tensors of one type are equal, or both NaN."""
    ours, theirs = (bits(t) if t.dtype in EXACT else widened(t) for t in (ours, theirs))
    return (ours == theirs) | ((ours != ours) & (theirs != theirs))


def are_same(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Return whether all elements are; quick where not even a bit differs."""
    as_bits = ours.dtype in EXACT or ours.dtype in STEPS
    return torch.equal(*((bits(ours), bits(theirs)) if as_bits else (ours, theirs))) or bool(
        same_values(ours, theirs).all()
    )


def _marks(dtype: torch.dtype) -> tuple[int, int]:
    """Return the two bytes that outputs are filled with in turn; the first makes NaN where the type has one.

    Two, so that an element that is never written differs between two calls. A boolean is neither 0 nor 1.
    """
    plain = dtype.is_floating_point or dtype.is_complex
    return (_ONLY_NAN.get(dtype, _NAN) if plain else _INTEGER), _OTHER


def marked(shape: list[int], dtype: torch.dtype, device: torch.device, call: int) -> torch.Tensor:
    """Return a new tensor for the output of a call, filled with the mark of that call."""
    tensor = torch.empty(shape, dtype=dtype, device=device)
    tensor.view(-1).view(torch.uint8).fill_(_marks(dtype)[call % 2])
    return tensor


def count_marked(tensor: torch.Tensor) -> int:
    """Return how many elements of an output still hold a mark."""
    data = tensor.reshape(-1).view(torch.uint8).view(tensor.numel(), tensor.dtype.itemsize)
    return max(int((data == mark).all(1).sum()) for mark in _marks(tensor.dtype))
