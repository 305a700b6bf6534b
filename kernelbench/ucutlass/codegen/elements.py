"""Types of the language in C++ and in PyTorch."""

from __future__ import annotations

from kernelbench.ucutlass.ir import DType

# (CUTLASS's type, at::ScalarType's name, numpy-like name for tools)
_TYPES = {
    DType.FP64: ("double", "at::kDouble"),
    DType.FP32: ("float", "at::kFloat"),
    DType.TF32: ("float", "at::kFloat"),  # in memory
    DType.FP16: ("cutlass::half_t", "at::kHalf"),
    DType.BF16: ("cutlass::bfloat16_t", "at::kBFloat16"),
    DType.FP8_E4M3: ("cutlass::float_e4m3_t", "at::kFloat8_e4m3fn"),
    DType.FP8_E5M2: ("cutlass::float_e5m2_t", "at::kFloat8_e5m2"),
    DType.INT8: ("int8_t", "at::kChar"),
    DType.INT16: ("int16_t", "at::kShort"),
    DType.INT32: ("int32_t", "at::kInt"),
    DType.UINT8: ("uint8_t", "at::kByte"),
    DType.UINT16: ("uint16_t", "at::kUInt16"),
    DType.UINT32: ("uint32_t", "at::kUInt32"),
}


def cpp(dtype: DType) -> str:
    """Return the C++ type of an element in memory."""
    return _TYPES[dtype][0]


def torch_scalar(dtype: DType) -> str:
    """Return the ``at::ScalarType`` of an element in memory."""
    return _TYPES[dtype][1]


def compute(acc: DType) -> str:
    """Return the C++ type in which an epilogue computes: double for FP64, else float."""
    return "double" if acc is DType.FP64 else "float"


def literal(value: float, type_name: str = "float") -> str:
    """Return a C++ literal that reads back as ``value``."""
    text = repr(float(value))
    if "e" not in text and "." not in text:
        text += ".0"
    return f"{text}f" if type_name == "float" else text
