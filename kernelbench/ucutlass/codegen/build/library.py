"""Call a built program from Python: ``load(source)`` compiles it and returns a function of tensors."""

from __future__ import annotations

import ctypes
import math
import re
import tempfile
from pathlib import Path
from typing import Any

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.codegen.assembly import program as whole
from kernelbench.ucutlass.codegen.assembly.header import name_of
from kernelbench.ucutlass.codegen.build.compiler import build
from kernelbench.ucutlass.operands import Operand, Role, main_output, operands

DTYPES = {
    "fp64": "float64", "fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16",
    "fp8_e4m3": "float8_e4m3fn", "fp8_e5m2": "float8_e5m2", "int8": "int8", "int16": "int16", "int32": "int32",
    "uint8": "uint8", "uint16": "uint16", "uint32": "uint32",
}  # fmt: skip


class Library:
    """A shared library of a program.

    Called with the program's inputs in the order of ``kernel``, tensors and numbers, it returns the result; tensors
    that the epilogue stores to are allocated and kept in ``stored`` by name.
    """

    def __init__(self, program: ir.Program, library: Path):
        self.program, self.path = program, library
        self.operands = operands(program)
        self.tensors = whole.tensors(program)
        self.extent_names = whole.program_extents(program)
        self.result = main_output(program.kernels[-1])
        self.stored: dict[str, Any] = {}
        self._library = ctypes.CDLL(str(library))
        name = name_of(program)
        self._run = getattr(self._library, f"{name}_run")
        self._run.argtypes = [ctypes.c_void_p] * 5
        self._workspace_bytes = getattr(self._library, f"{name}_workspace_bytes")
        self._workspace_bytes.restype, self._workspace_bytes.argtypes = ctypes.c_size_t, [ctypes.c_void_p]
        self._message = getattr(self._library, f"{name}_message")
        self._message.restype, self._message.argtypes = ctypes.c_char_p, [ctypes.c_int]

    def __call__(self, *values: Any, alpha: float | None = None, beta: float | None = None, **steps: int) -> Any:
        """The result of one call; ``steps`` are stride, padding and dilation of a convolution, or one by axis.

        Raises RuntimeError with CUTLASS's message where the kernel cannot run.
        """
        return self.prepare(*values, alpha=alpha, beta=beta, **steps)()

    def prepare(self, *values: Any, alpha: float | None = None, beta: float | None = None, **steps: int) -> Any:
        """Return a function without arguments that runs the kernel on these tensors, and returns the result."""
        import torch

        given = [one for one in self.operands if one.role is not Role.OUTPUT]
        if len(values) != len(given):
            raise TypeError(f"takes {len(given)} values ({', '.join(one.name for one in given)}), got {len(values)}")
        named = dict(zip((one.name for one in given), values))
        extents = self.extents({k: tuple(v.shape) for k, v in named.items() if isinstance(v, torch.Tensor)}, **steps)
        device = next(value for value in values if isinstance(value, torch.Tensor)).device
        for tensor in self.tensors:
            one = tensor.operand
            dtype = getattr(torch, DTYPES[str(one.dtype)])
            shape = tuple(evaluate(value, extents, self.program) for value in tensor.extents)
            if one.role is Role.OUTPUT:
                named[one.name] = torch.empty(shape, dtype=dtype, device=device)
            elif tuple(named[one.name].shape) != shape or named[one.name].dtype != dtype:
                raise ValueError(f"{one.name} must have shape {shape} and type {dtype}, "
                                 f"got {tuple(named[one.name].shape)} and {named[one.name].dtype}")  # fmt: skip
            elif not named[one.name].is_contiguous():
                raise ValueError(f"{one.name} must be contiguous")
        self.stored = {one.name: named[one.name] for one in self.operands
                       if one.role is Role.OUTPUT and one.name != self.result}  # fmt: skip
        return self._call(named, extents, alpha, beta, device)

    def _call(self, named: dict[str, Any], extents: dict[str, int], alpha, beta, device) -> Any:
        import torch

        scaling = self.program.kernels[-1].scaling or ir.Scaling()
        pointers = [named[tensor.operand.name].data_ptr() for tensor in self.tensors]
        pointers = (ctypes.c_void_p * len(pointers))(*pointers)
        numbers = [scaling.alpha if alpha is None else alpha, scaling.beta if beta is None else beta]
        numbers += [named[one.name] for one in whole.scalars(self.program)]
        numbers = (ctypes.c_float * len(numbers))(*numbers)
        sizes = (ctypes.c_int64 * len(extents))(*(extents[name] for name in self.extent_names))
        workspace = torch.empty(max(1, self._workspace_bytes(sizes)), dtype=torch.uint8, device=device)
        result = named[self.result]

        def run() -> Any:
            stream = torch.cuda.current_stream(device).cuda_stream
            if status := self._run(pointers, sizes, numbers, workspace.data_ptr(), stream):
                raise RuntimeError(f"{name_of(self.program)}: {self._message(status).decode()}")
            return result

        run.keep = (named, workspace)  # what the pointers are of
        return run

    def extents(self, shapes: dict[str, tuple[int, ...]], **steps: int) -> dict[str, int]:
        """Return the extents that follow from the inputs' shapes and a convolution's ``steps``, by name."""
        found: dict[str, int] = {}
        for name in self.extent_names:
            what, _, axis = name.partition("_")
            if axis:
                found[name] = steps.get(name, steps.get(what, 0 if what == "padding" else 1))
        for tensor in self.tensors:
            for value, size in zip(tensor.extents, shapes.get(tensor.operand.name, ())):
                if match := re.fullmatch(r"a\.n_(\w+)", value):
                    found.setdefault(match[1], size)
        kernel = self.program.kernels[0]
        if not kernel.is_gemm:
            _infer(kernel.operation, found, shapes)
        return {name: found[name] for name in self.extent_names}


def _infer(conv: ir.Conv, found: dict[str, int], shapes: dict[str, tuple[int, ...]]) -> None:
    """Fill in what no input has: the channels of a depthwise or grouped input, the extents of a data gradient."""
    if "C" not in found:
        found["C"] = shapes["filter"][-1] * conv.groups
    for place, (axis, extent) in enumerate(zip("dhw"[3 - conv.rank :], "DHW"[3 - conv.rank :])):
        if extent not in found:
            made, step = shapes["output"][1 + place], found[f"stride_{axis}"]
            reach = found[f"dilation_{axis}"] * (conv.kernel[place] - 1)
            found[extent] = (made - 1) * step - 2 * found[f"padding_{axis}"] + reach + 1


def evaluate(value: str, extents: dict[str, int], program: ir.Program) -> int:
    """Return the number of a C++ extent such as ``a.n_M``, ``a.out_P()`` or ``a.n_C / 4``."""
    conv = program.kernels[0].operation

    def output(match: re.Match) -> str:
        place = "ZPQ"[3 - conv.rank :].index(match[1])
        axis, extent = "dhw"[3 - conv.rank :][place], "DHW"[3 - conv.rank :][place]
        reach = extents[f"dilation_{axis}"] * (conv.kernel[place] - 1)
        return str((extents[extent] + 2 * extents[f"padding_{axis}"] - reach - 1) // extents[f"stride_{axis}"] + 1)

    text = re.sub(r"a\.out_([ZPQ])\(\)", output, value)
    text = re.sub(r"a\.n_(\w+)", lambda match: str(extents[match[1]]), text)
    terms = [math.prod(int(factor) for factor in term.split("*")) for term in text.split("/")[0].split("+")]
    divisor = int(text.partition("/")[2] or 1)
    return sum(terms) // divisor


def load(source: str, folder: str | Path | None = None) -> Library:
    """Compile a program for this machine's GPU and return it as a function of tensors.

    Raises ProgramError, Unsupported, BuildError or ToolchainMissing. Without ``folder`` a temporary one is used.
    """
    import torch

    from kernelbench.ucutlass import check

    program = check(source)
    major, minor = torch.cuda.get_device_capability()
    built = build(program, Path(folder or tempfile.mkdtemp(prefix="ucutlass_")), f"{major}.{minor}")
    return Library(program, built.library)


def input_shapes(program: ir.Program, extents: dict[str, int]) -> dict[str, tuple[tuple[int, ...], Operand]]:
    """Return the shape of every input tensor of a program for given extents."""
    return {
        tensor.operand.name: (tuple(evaluate(value, extents, program) for value in tensor.extents), tensor.operand)
        for tensor in whole.tensors(program)
        if tensor.operand.role is Role.INPUT
    }
