"""The C signature of a problem: what ``extern "C" void solution(...)`` is called with.

Derived from the problem on the meta device, so it costs no memory at any size:
one ``const T*`` for each tensor input in forward order, one ``const T*`` for
each parameter and buffer in state-dict order, one ``T*`` for each output, then
the sizes of the workload and the values of the scalar inputs.
"""

from __future__ import annotations

import inspect
import math
import re
from dataclasses import dataclass
from typing import Any

import torch

from harness.problem.inputs import build_model, call, draw_inputs
from harness.problem.meta_recurrent import RecurrentShapes
from harness.problem.module import ProblemError, Workload
from harness.tensors.outputs import as_tensor, flatten, why_not_compared

# C element type of each tensor dtype, for host code and for CUDA.
C_TYPES = {
    torch.float32: "float",
    torch.float64: "double",
    torch.float16: "__half",
    torch.bfloat16: "__nv_bfloat16",
    torch.int64: "int64_t",
    torch.int32: "int32_t",
    torch.int16: "int16_t",
    torch.int8: "int8_t",
    torch.uint8: "uint8_t",
    torch.uint16: "uint16_t",
    torch.uint32: "uint32_t",
    torch.uint64: "uint64_t",
    torch.bool: "bool",
    torch.complex64: "std::complex<float>",
    torch.complex128: "std::complex<double>",
    torch.complex32: "__half2",
    torch.float8_e4m3fn: "__nv_fp8_e4m3",
    torch.float8_e5m2: "__nv_fp8_e5m2",
    # no name in every CUDA toolkit: their bytes
    torch.float8_e4m3fnuz: "uint8_t",
    torch.float8_e5m2fnuz: "uint8_t",
    torch.float8_e8m0fnu: "uint8_t",
}


@dataclass(frozen=True)
class TensorSpec:
    """Name, shape and element type of one tensor that crosses the call."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.elements * self.dtype.itemsize


@dataclass(frozen=True)
class Scalar:
    """A size of the workload or a scalar input, passed by value."""

    name: str
    value: int | float | bool
    c_type: str


@dataclass(frozen=True)
class Signature:
    inputs: tuple[TensorSpec, ...]
    parameters: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    scalars: tuple[Scalar, ...]

    @property
    def bytes(self) -> int:
        """Least traffic of one call: every input, parameter and output element once."""
        return sum(spec.bytes for spec in (*self.inputs, *self.parameters, *self.outputs))

    def for_library(self) -> dict[str, list[dict[str, Any]]]:
        """Outputs and scalars as ``LibraryModel`` takes them, in JSON."""
        return {
            "outputs": [{"shape": t.shape, "dtype": str(t.dtype).removeprefix("torch.")} for t in self.outputs],
            "scalars": [{"value": s.value, "c_type": s.c_type} for s in self.scalars],
        }

    def declaration(self) -> str:
        """The C declaration, one argument a line."""
        arguments = [f"const {C_TYPES[t.dtype]}* {t.name}" for t in (*self.inputs, *self.parameters)]
        arguments += [f"{C_TYPES[t.dtype]}* {t.name}" for t in self.outputs]
        arguments += [f"{s.c_type} {s.name}" for s in self.scalars]
        return 'extern "C" void solution(\n    ' + ",\n    ".join(arguments) + ")"


def derive_signature(workload: Workload, dtype: torch.dtype = torch.float32) -> Signature:
    """Signature of ``workload`` with floating-point tensors of ``dtype``.

    Raises ProblemError where the reference cannot be traced without data.
    """
    meta = torch.device("meta")
    try:
        inputs = draw_inputs(workload, 0, meta, dtype)
        model = build_model(workload.problem.module.Model, workload, 0, meta, dtype)
        with meta, RecurrentShapes():  # meta: for tensors that forward itself creates
            leaves = flatten(call(model, inputs))
    except Exception as error:
        raise _failing(workload, f"{type(error).__name__}: {error}") from error
    if reason := why_not_compared(leaves):
        raise _failing(workload, reason)
    outputs = [as_tensor(leaf) for leaf in leaves]
    return signature_of(workload, inputs, model.state_dict(), outputs)


def _failing(workload: Workload, reason: str) -> ProblemError:
    problem = workload.problem
    return ProblemError(
        f"problem {problem.id} ({problem.path}), workload {workload.name}: the reference fails: {reason}"
    )


def signature_of(
    workload: Workload, inputs: list[Any], state: dict[str, torch.Tensor], outputs: list[torch.Tensor]
) -> Signature:
    """Return the signature of a call: its arguments, the model's state, and its outputs in order."""
    taken: set[str] = set()

    def spec(name: str, tensor: torch.Tensor) -> TensorSpec:
        return TensorSpec(_unique(name, taken), tuple(tensor.shape), tensor.dtype)

    named = list(zip(_input_names(workload), inputs))
    tensors = tuple(spec(name, value) for name, value in named if isinstance(value, torch.Tensor))
    parameters = tuple(spec(name, value) for name, value in state.items())
    output_names = ["output"] if len(outputs) == 1 else [f"output{i}" for i in range(len(outputs))]
    results = tuple(spec(name, value) for name, value in zip(output_names, outputs))
    sizes = [pair for name, value in workload.sizes.items() for pair in _spread(name, value)]
    scalars = [Scalar(_unique(name, taken), value, _c_type(value, "size_t")) for name, value in sizes]
    scalars += [
        Scalar(_unique(name, taken), value, _c_type(value, "int64_t"))
        for name, value in named
        if isinstance(value, (bool, int, float))
    ]
    return Signature(tensors, parameters, results, tuple(scalars))


def input_name(workload: Workload, index: int) -> str:
    """Return what the reference's forward calls an input."""
    names = _input_names(workload)
    return names[index] if index < len(names) else f"input {index}"


def _input_names(workload: Workload) -> list[str]:
    return list(inspect.signature(workload.problem.module.Model.forward).parameters)[1:]


def _spread(name: str, value: Any) -> list[tuple[str, Any]]:
    """A size that is a tuple or list becomes one argument an element: ``kernel_0, kernel_1``."""
    if isinstance(value, (tuple, list)):
        return [(f"{name}_{i}", element) for i, element in enumerate(value)]
    return [(name, value)] if isinstance(value, (bool, int, float)) else []


def _c_type(value: int | float | bool, integer: str) -> str:
    if isinstance(value, bool):
        return "bool"
    return "double" if isinstance(value, float) else integer


def _unique(name: str, taken: set[str]) -> str:
    """A C identifier not used yet; state-dict dots become underscores."""
    base = candidate = re.sub(r"\W", "_", name)
    count = 2
    while candidate in taken:
        candidate = f"{base}_{count}"
        count += 1
    taken.add(candidate)
    return candidate
