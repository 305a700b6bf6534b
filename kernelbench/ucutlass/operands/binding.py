"""Binding of a program's operands to a problem's tensors: by `bind(...)`, by name, or as the operation demands.

What is bound is checked against the tensors' shapes and types, before anything is compiled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.ir import DType
from kernelbench.ucutlass.language.findings import Finding, ProgramError
from kernelbench.ucutlass.operands import WINDOW, Operand, Role, main_output, operands

_TORCH = {
    "float64": DType.FP64, "float32": DType.FP32, "float16": DType.FP16, "bfloat16": DType.BF16, "int8": DType.INT8,
    "uint8": DType.UINT8, "int16": DType.INT16, "int32": DType.INT32, "uint16": DType.UINT16, "uint32": DType.UINT32,
    "float8_e4m3fn": DType.FP8_E4M3, "float8_e5m2": DType.FP8_E5M2,
}  # fmt: skip
_FIRST = {"A", "input"}
_SECOND = {"B", "filter"}


@dataclass(frozen=True)
class Argument:
    """One operand with what it is bound to: the name of a tensor or scalar of the problem, or a number."""

    operand: Operand
    value: str | int | float


@dataclass(frozen=True)
class Bound:
    """A program whose operands are bound, in the order of `kernel_ex`.

    ``extents`` has the value of every symbol, and ``windows`` stride, padding and dilation for each axis, one
    dictionary for each kernel.
    """

    arguments: tuple[Argument, ...]
    extents: tuple[dict[str, int], ...]
    windows: tuple[dict[str, tuple[int, ...]], ...]


def resolve(program: ir.Program, signature: Any) -> Bound:
    """Bind a complete program to a problem.

    Parameters
    ----------
    signature : an object like `harness.problem.signature.Signature`: ``inputs``, ``parameters`` and ``outputs`` have
        a name, a shape and a dtype, ``scalars`` a name and a value

    Raises
    ------
    ProgramError : an operand is bound to nothing, or to a tensor of another shape or type
    """
    return _Binding(program, signature).resolve()


def c_name(name: str) -> str:
    """The name of a parameter in the C signature, as in ``linear_weight`` for ``linear.weight``."""
    return re.sub(r"\W", "_", name)


@dataclass
class _Binding:
    program: ir.Program
    signature: Any
    findings: list[Finding] = field(default_factory=list)
    extents: list[dict[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.written = {bound.name: bound for bound in self.program.bindings}
        self.tensors = {one.name: one for group in (self.signature.inputs, self.signature.parameters)
                        for one in group}  # fmt: skip
        self.outputs = {one.name: one for one in self.signature.outputs}
        self.scalars = {one.name: one.value for one in self.signature.scalars}
        self.extents = [{} for _ in self.program.kernels]

    def resolve(self) -> Bound:
        wanted = operands(self.program)
        values = self._values(wanted)
        windows = tuple(self._window(place, kernel) for place, kernel in enumerate(self.program.kernels))
        for operand in wanted:
            if operand.role is not Role.SCALAR and operand.name in values:
                self._match(operand, self._tensor(operand, values[operand.name]))
        for place, kernel in enumerate(self.program.kernels):
            self._chain(place, kernel, windows[place])
            self._run_time_rules(place, kernel, windows[place])
        if self.findings:
            raise ProgramError(self.findings)
        arguments = tuple(Argument(operand, values[operand.name]) for operand in wanted)
        return Bound(arguments, tuple(self.extents), windows)

    def _find(self, rule: str, what: str, why: str, fix: str, name: str = "") -> None:
        at = self.written[name].at if name in self.written else self.program.kernels[0].at
        self.findings.append(Finding(rule, what, why, fix, at))

    # --- which tensor -------------------------------------------------------------------------------------------

    def _values(self, wanted: tuple[Operand, ...]) -> dict[str, str | int | float]:
        values: dict[str, str | int | float] = {}
        for operand in wanted:
            if operand.name in self.written:
                value = self.written[operand.name].value
                values[operand.name] = c_name(value) if isinstance(value, str) else value
        for operand in wanted:
            if operand.name not in values:
                found = self._by_default(operand, set(values.values()))
                if found is None:
                    self._find("bind-missing", f"{operand.name} is bound to nothing", _known(self),
                               f"write bind({operand.name}=NAME) after the program")  # fmt: skip
                else:
                    values[operand.name] = found
        for name, value in list(values.items()):
            operand = next(one for one in wanted if one.name == name)
            if isinstance(value, str) and value not in self._candidates(operand):
                self._find("bind-tensor", f"{name}={value}: the problem has no such "
                           f"{'scalar' if operand.role is Role.SCALAR else operand.role.value}", _known(self),
                           f"write one of {', '.join(self._candidates(operand)) or 'none'}", name)  # fmt: skip
                del values[name]
        return values

    def _candidates(self, operand: Operand) -> dict[str, Any]:
        return {Role.INPUT: self.tensors, Role.OUTPUT: self.outputs, Role.SCALAR: self.scalars}[operand.role]

    def _by_default(self, operand: Operand, taken: set) -> str | None:
        """The tensor of an operand that `bind` leaves out; None where none or several would do."""
        candidates = self._candidates(operand)
        name = operand.name
        main = main_output(self.program.kernels[-1])
        if operand.role is Role.OUTPUT and name == main and len(candidates) == 1:
            return next(iter(candidates))
        if name in candidates and name not in taken:
            return name
        if name in _FIRST:
            return next((one.name for one in self.signature.inputs if one.name not in taken), None)
        if name in _SECOND:
            free = [one.name for one in self.signature.inputs[1:] if one.name not in taken]
            weights = [one.name for one in self.signature.parameters
                       if one.name not in taken and one.name.endswith("weight")]  # fmt: skip
            return free[0] if len(free) == 1 else weights[0] if len(weights) == 1 and not free else None
        if name == "bias":
            alike = [one.name for one in self.signature.parameters if one.name.endswith("bias")]
            return alike[0] if len(alike) == 1 else None
        return None

    def _tensor(self, operand: Operand, name: Any) -> Any:
        return self._candidates(operand)[name]

    # --- shapes and types ---------------------------------------------------------------------------------------

    def _match(self, operand: Operand, tensor: Any) -> None:
        dtype = _TORCH.get(str(tensor.dtype).removeprefix("torch."))
        if dtype is not operand.dtype:
            self._find("bind-dtype", f"{operand.name} is {operand.dtype}, {tensor.name} is {tensor.dtype}",
                       "a kernel reads the bits that are there",
                       _conversion(self.program, operand, dtype), operand.name)  # fmt: skip
        shape = _folded(tuple(tensor.shape), len(operand.extents))
        if shape is None:
            self._find("bind-rank", f"{operand.name} has the axes {_axes(operand)}, {tensor.name} {list(tensor.shape)}",
                       "leading axes of a tensor can be taken together, others cannot", _LAYOUT_FIX,
                       operand.name)  # fmt: skip
            return
        for symbol, size in zip(operand.extents, shape):
            self._unify(operand, symbol, size)

    def _unify(self, operand: Operand, symbol: str, size: int) -> None:
        known = self.extents[operand.kernel]
        kernel = self.program.kernels[operand.kernel]
        if symbol == "C / groups":
            symbol, size = "C", size * kernel.operation.groups
        if symbol == "E + 1":
            symbol, size = "E", size - 1
        expected = known.setdefault(symbol, _given(kernel, symbol) or size) if symbol != "1" else 1
        if expected != size:
            self._find("bind-extent", f"{symbol} is {expected}, but {size} by {operand.name} {_axes(operand)}",
                       "each symbol is one number in the whole kernel", _LAYOUT_FIX, operand.name)  # fmt: skip

    def _window(self, place: int, kernel: ir.Kernel) -> dict[str, tuple[int, ...]]:
        if kernel.is_gemm:
            return {}
        suffix = str(place + 1) if place else ""
        axes = "dhw"[3 - kernel.operation.rank :]
        return {word: tuple(self._number([f"{word}_{axis}{suffix}", word + suffix], default) for axis in axes)
                for word, default in WINDOW.items()}  # fmt: skip

    def _number(self, names: list[str], default: int) -> int:
        name = next((name for name in names if name in self.written), None)
        value = self.written[name].value if name else default
        if isinstance(value, str):
            if value not in self.scalars:
                self._find("bind-tensor", f"{name}={value}: the problem has no such scalar", _known(self),
                           f"write a number, or one of {', '.join(self.scalars)}", name)  # fmt: skip
                return default
            value = int(self.scalars[value])
        return int(value)

    def _chain(self, place: int, kernel: ir.Kernel, window: dict[str, tuple[int, ...]]) -> None:
        """Extents that follow: a convolution's output from its input, the next kernel's from this one's."""
        known = self.extents[place]
        if not kernel.is_gemm:
            inner, outer = "DHW"[3 - kernel.operation.rank :], "ZPQ"[3 - kernel.operation.rank :]
            for axis, (source, target) in enumerate(zip(inner, outer)):
                if source not in known:
                    continue
                reach = window["dilation"][axis] * (kernel.operation.kernel[axis] - 1) + 1
                size = (known[source] + 2 * window["padding"][axis] - reach) // window["stride"][axis] + 1
                if known.setdefault(target, size) != size and not self.findings:  # else the layout is to blame
                    self._find("bind-extent", f"{target} is {known[target]}, but {size} by {source}={known[source]}, "
                               f"stride {window['stride'][axis]}, padding {window['padding'][axis]} and dilation "
                               f"{window['dilation'][axis]}", "the window decides the size of the output",
                               "write bind(stride=..., padding=..., dilation=...) as the problem has them")  # fmt: skip
        if place + 1 < len(self.extents):
            follows = {"M": "M", "N": "K", "L": "L"} if kernel.is_gemm else {
                "N": "N", "Z": "D", "P": "H", "Q": "W", "K": "C"}  # fmt: skip
            for source, target in follows.items():
                if source in known:
                    after = self.extents[place + 1]
                    if after.setdefault(target, known[source]) != known[source]:
                        self._find("bind-extent", f"{target} of the next kernel is {after[target]}, this one makes "
                                   f"{known[source]}", "the output is the next kernel's input",
                                   "bind other weights")  # fmt: skip

    # --- rules that need sizes ----------------------------------------------------------------------------------

    def _conv_rules(self, kernel: ir.Kernel, known: dict[str, int], window: dict[str, tuple[int, ...]]) -> None:
        operation = kernel.operation
        if operation.direction is ir.Direction.DGRAD and kernel.arch.is_sm90_or_later and max(window["stride"]) > 1:
            self._find("bind-stride", f"stride {window['stride']} of {operation.word}(...) on {kernel.arch}",
                       "SM90's gradient of an input has stride 1 only", "use .with_arch(sm_80)")  # fmt: skip
        if operation.form is not ir.ConvForm.GROUPED or "K" not in known:
            return
        each = known["K"] // operation.groups
        if kernel.iterator is ir.Iterator.OPTIMIZED and each % kernel.tile.n:
            self._find("bind-groups", f"{each} output channels a group with tile n={kernel.tile.n}",
                       "iterator optimized computes one group a thread block", "write .with_iterator(analytic), or a "
                       f"tile n that divides {each}")  # fmt: skip
        if kernel.iterator is ir.Iterator.ANALYTIC and each >= kernel.tile.n:
            self._find("bind-groups", f"{each} output channels a group with tile n={kernel.tile.n}",
                       "iterator analytic computes several groups a thread block",
                       "write .with_iterator(optimized), or a larger tile n")  # fmt: skip

    def _run_time_rules(self, place: int, kernel: ir.Kernel, window: dict[str, tuple[int, ...]]) -> None:
        known = self.extents[place]
        if isinstance(kernel.operation, ir.Conv):
            self._conv_rules(kernel, known, window)
        if kernel.operand_swap and known.get("M") != known.get("N"):
            self._find("operand-swap", f"M={known.get('M')} and N={known.get('N')} with an operand swap",
                       "the swapped result lies in place only if M == N",
                       "remove .with_operand_swap(true)")  # fmt: skip
        for name, symbol, elements in contiguous(kernel):
            if symbol in known and known[symbol] % elements:
                self._find("bind-alignment", f"{symbol}={known[symbol]} is no multiple of {name}={elements}",
                           "rows of a tensor start where its alignment says",
                           _alignment_fix(kernel, name, math.gcd(known[symbol], elements)))  # fmt: skip


_LAYOUT_FIX = ("check .with_layout(...); PyTorch keeps channels first: "
               "pipeline(transpose(input, NCHW, NHWC), ..., transpose(output, NHWC, NCHW))")  # fmt: skip


def _known(binding: _Binding) -> str:
    tensors = ", ".join(f"{name} {list(one.shape)}" for name, one in {**binding.tensors, **binding.outputs}.items())
    return f"the problem has {tensors}"


def _axes(operand: Operand) -> str:
    return f"[{', '.join(operand.extents)}]"


def _conversion(program: ir.Program, operand: Operand, dtype: DType | None) -> str:
    """Advice for a tensor of another type than its operand's."""
    fix = "change .with_dtype(...)"
    axes = "NHWC" if len(operand.extents) == 4 else "NLC"
    have = dtype or DType.FP32
    if operand.role is Role.OUTPUT:
        return f"{fix}, or end the pipeline with transpose(output, {axes}, {axes}, {operand.dtype}, {have})"
    if operand.name in _FIRST | _SECOND:
        word = "weight" if operand.name in _SECOND else "input"
        return f"{fix}, or begin a pipeline with transpose({word}, {axes}, {axes}, {have}, {operand.dtype})"
    return f"{fix}; a vector has the type of the pipeline's output"


def _given(kernel: ir.Kernel, symbol: str) -> int | None:
    """An extent that the program states."""
    if isinstance(kernel.operation, ir.Conv):
        return dict(zip("TRS"[3 - kernel.operation.rank :], kernel.operation.kernel)).get(symbol)
    return kernel.operation.expert_count if symbol == "E" else None


def _folded(shape: tuple[int, ...], rank: int) -> tuple[int, ...] | None:
    """The shape with as many axes as wanted: leading ones multiplied, of a vector all that are 1 left out."""
    if rank == 1:
        return (math.prod(shape),) if sum(size != 1 for size in shape) <= 1 else None
    if len(shape) < rank:
        return None
    if len(shape) > rank > 3:
        return None
    lead = len(shape) - rank + 1
    return (math.prod(shape[:lead]), *shape[lead:])


def _alignment_fix(kernel: ir.Kernel, name: str, elements: int) -> str:
    """Advice for an operand whose rows start at multiples of few elements only."""
    dtype = kernel.dtypes.output if name == "C" else kernel.dtypes.input
    fix = f"write {name}={elements} in .with_alignment(...)"
    if not kernel.arch.is_sm90_or_later:
        return f"{fix}{' and .with_stages(2)' if elements * dtype.bytes < 4 else ''}, or pad the tensor"
    if kernel.operation.form is ir.GemmForm.GROUPED:
        return "pad the tensor"
    if not kernel.is_gemm or (elements * dtype.bytes < 4 and name != "C"):
        return f"use .with_arch(sm_80) and {fix[6:]}, or pad the tensor"
    return f"{fix} with {'epilogue=no_smem' if name == 'C' else 'kernel=cp_async'}, or pad the tensor"


def contiguous(kernel: ir.Kernel) -> Iterator[tuple[str, str, int]]:
    """Operand, symbol of its contiguous axis, and alignment in elements."""
    alignment = kernel.alignment
    single = (DType.FP32, DType.FP64) if kernel.is_gemm else (DType.FP32,)
    if not kernel.arch.is_sm90_or_later and kernel.dtypes.input in single:
        return  # CUDA cores and FP64 tensor cores load single elements
    if isinstance(kernel.layout, ir.GemmLayout):
        row = ir.Matrix.ROW_MAJOR
        yield "A", "K" if kernel.layout.a is row else "M", alignment.a
        yield "B", "N" if kernel.layout.b is row else "K", alignment.b
        yield "C", "N" if kernel.layout.c is row else "M", alignment.c
    elif kernel.operation.form is ir.ConvForm.DEPTHWISE:
        yield "A", "C", alignment.a
    elif kernel.operation.form is ir.ConvForm.STANDARD:
        axes = {ir.Direction.FPROP: "CCK", ir.Direction.DGRAD: "KCC", ir.Direction.WGRAD: "KCC"}
        yield from zip("ABC", axes[kernel.operation.direction], (alignment.a, alignment.b, alignment.c))
