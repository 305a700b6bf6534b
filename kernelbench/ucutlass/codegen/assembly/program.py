"""A whole program in C++: the arguments, the stages one after the other, and the memory between them.

Between stages, tensors lie in the workspace that the caller provides: results of transposes, what one kernel hands
to the next, and the workspace of each kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.codegen.assembly.transposes import Move
from kernelbench.ucutlass.codegen.call import KernelCode, extent_value, extents_of, output_extents
from kernelbench.ucutlass.codegen.elements import cpp
from kernelbench.ucutlass.codegen.unsupported import Unsupported
from kernelbench.ucutlass.ir import TensorRef
from kernelbench.ucutlass.operands import Operand, Role, main_output, of_kernel, operands

_MAIN = {TensorRef.INPUT: ("A", "input"), TensorRef.WEIGHT: ("B", "filter"), TensorRef.OUTPUT: ("D", "output")}


@dataclass(frozen=True)
class Tensor:
    """A tensor of the C interface: its operand, and its extents as C++ values of the arguments ``a``."""

    operand: Operand
    extents: tuple[str, ...]


def namespace_of(place: int) -> str:
    """Return the namespace of a kernel inside the program's."""
    return f"kernel{place}"


def program_extents(program: ir.Program) -> tuple[str, ...]:
    """Return the extents that a caller gives: those of the first kernel, and the columns of each that follows."""
    kernels = program.kernels
    return (*extents_of(kernels[0]), *(f"N{place + 1}" for place in range(1, len(kernels))))


def tensors(program: ir.Program) -> tuple[Tensor, ...]:
    """Return the tensors of the C interface in order: inputs, then outputs."""
    found = []
    for one in operands(program):
        if one.role is not Role.SCALAR:
            values = tuple(_value(program, one, symbol) for symbol in one.extents)
            found.append(Tensor(one, values))
    return tuple(found)


def scalars(program: ir.Program) -> tuple[Operand, ...]:
    """Return the scalar operands in order; in the C interface alpha and beta come before them."""
    return tuple(one for one in operands(program) if one.role is Role.SCALAR)


def _value(program: ir.Program, operand: Operand, symbol: str) -> str:
    return renamed(extent_value(program.kernels[operand.kernel], symbol, "a"), operand.kernel)


def renamed(value: str, place: int) -> str:
    """Return a value of a later kernel's extents in terms of the program's: its K is the columns before it."""
    if not place:
        return value
    before = "a.n_N" if place == 1 else f"a.n_N{place}"
    return value.replace("a.n_K", "@").replace("a.n_N", f"a.n_N{place + 1}").replace("@", before)


def arguments_struct(program: ir.Program) -> str:
    """Return ``Arguments``: what the whole program is called with."""
    kernel = program.kernels[-1]
    scaling = kernel.scaling or ir.Scaling()
    lines = ["struct Arguments {"]
    for one in operands(program):
        if one.role is Role.SCALAR:
            lines.append(f"  float s_{one.name} = 0;")
        else:
            constant = " const" if one.role is Role.INPUT else ""
            lines.append(f"  {cpp(one.dtype)}{constant}* p_{one.name} = nullptr;")
    lines += [f"  int64_t n_{name} = 1;" for name in program_extents(program)]
    lines += [f"  double alpha = {float(scaling.alpha)!r};", f"  double beta = {float(scaling.beta)!r};"]
    if not program.kernels[0].is_gemm:
        lines.append(output_extents(program.kernels[0]))
    return "\n".join([*lines, "};"])


class Stages:
    """The statements that run a program, and the buffers between them."""

    def __init__(self, program: ir.Program, codes: list[KernelCode]):
        self.program = program
        self.codes = codes
        self.buffers: list[tuple[str, str, str]] = []  # (type, name, bytes)
        self.steps: list[str] = []
        self.calls: list[str] = []
        self._outer = {one.name: one for one in operands(program)}
        self._sources: dict[tuple[int, str], str] = {}  # (kernel, operand) -> C++ pointer instead of the caller's
        self._build()

    def _build(self) -> None:
        stages = self.program.stages
        first = self.program.kernels[0]
        moves = any(isinstance(stage, ir.Transpose) for stage in stages)
        if moves and not first.is_gemm and first.operation.direction is not ir.Direction.FPROP:
            raise Unsupported("transpose(input | weight | output) names the tensors of a forward convolution",
                              "hand the gradient over with channels last")  # fmt: skip
        if len(self.program.kernels) > 1 and not all(
            kernel.is_gemm and kernel.operation.form is ir.GemmForm.STANDARD for kernel in self.program.kernels
        ):
            raise Unsupported("a kernel that follows another one takes its output as A", "use gemm() for both")
        before = [stage for stage in stages if isinstance(stage, ir.Transpose) and stage.tensor is not TensorRef.OUTPUT]
        after = [stage for stage in stages if isinstance(stage, ir.Transpose) and stage.tensor is TensorRef.OUTPUT]
        for stage in before:
            self._move(stage, 0)
        last = len(self.program.kernels) - 1
        if after:
            self._result(after, last)
        for place in range(len(self.program.kernels)):
            self._kernel(place, last)
        for stage in after:
            self._move_result(stage, last)

    def _move(self, stage: ir.Transpose, place: int) -> None:
        kernel = self.program.kernels[place]
        inner = next(one for one in of_kernel(kernel) if one.name in _MAIN[stage.tensor])
        outer = self._outer[inner.name]
        move = self._as_move(stage, outer, inner.dtype)
        name = f"moved_{inner.name}"
        self._buffer(cpp(move.to_dtype), name, move.bytes)
        self._step(move.call(name, f"a.p_{outer.name}"))
        self._sources[place, inner.name] = name

    def _as_move(self, stage: ir.Transpose, read: Operand, to: ir.DType) -> Move:
        extents = tuple(_value(self.program, read, symbol) for symbol in read.extents)
        return Move(stage.source, stage.target, stage.source_dtype or read.dtype, stage.target_dtype or to, extents)

    def _result(self, after: list[ir.Transpose], last: int) -> None:
        kernel = self.program.kernels[last]
        output = next(one for one in of_kernel(kernel) if one.name == main_output(kernel))
        name = f"moved_{output.name}"
        output = replace(output, kernel=last)
        count = " * ".join(f"({_value(self.program, output, symbol)})" for symbol in output.extents)
        self._buffer(cpp(output.dtype), name, f"{count} * sizeof({cpp(output.dtype)})")
        self._sources[last, output.name] = name

    def _move_result(self, stage: ir.Transpose, last: int) -> None:
        kernel = self.program.kernels[last]
        output = replace(next(one for one in of_kernel(kernel) if one.name == main_output(kernel)), kernel=last)
        move = self._as_move(stage, output, self._outer[output.name].dtype)
        self._step(move.call(f"a.p_{output.name}", f"moved_{output.name}"))

    def _kernel(self, place: int, last: int) -> None:
        kernel = self.program.kernels[place]
        main = main_output(kernel)
        if place < last:
            output = replace(next(one for one in of_kernel(kernel) if one.name == main), kernel=place)
            count = " * ".join(f"({_value(self.program, output, symbol)})" for symbol in output.extents)
            name = f"between_{place}"
            self._buffer(cpp(output.dtype), name, f"{count} * sizeof({cpp(output.dtype)})")
            self._sources[place, main] = name
            self._sources[place + 1, of_kernel(self.program.kernels[place + 1])[0].name] = name
        self._cast_vectors(place)
        self.calls.append(self._call(place))
        space = f"space_{place}"
        self._buffer("char", space, f"{namespace_of(place)}::workspace_bytes(call{place}(a))")
        fields = [
            f"call{place}_.p_{name} = {pointer};"
            for (kernel_place, name), pointer in self._sources.items()
            if kernel_place == place
        ]
        self.steps.append(f"auto call{place}_ = call{place}(a);")
        self.steps += fields
        self._step(f"{namespace_of(place)}::launch(call{place}_, {space}, stream)")

    def _cast_vectors(self, place: int) -> None:
        """Convert vectors that the caller has in the type of the pipeline's output, not of the kernel's."""
        suffix = str(place + 1) if place else ""
        for one in of_kernel(self.program.kernels[place]):
            outer = self._outer.get(one.name + suffix)
            if outer is None or one.role is not Role.INPUT or (place, one.name) in self._sources:
                continue
            if cpp(outer.dtype) == cpp(one.dtype):
                continue
            name = f"cast_{place}_{one.name}"
            extents = tuple(_value(self.program, outer, symbol) for symbol in outer.extents)
            move = Move(ir.Axes.NCL, ir.Axes.NCL, outer.dtype, one.dtype, extents)
            self._buffer(cpp(one.dtype), name, move.bytes)
            self._step(move.call(name, f"a.p_{outer.name}"))
            self._sources[place, one.name] = name

    def _call(self, place: int) -> str:
        """Return the function that makes a kernel's call from the program's arguments."""
        kernel = self.program.kernels[place]
        suffix = str(place + 1) if place else ""
        lines = []
        for one in of_kernel(kernel):
            outer = one.name if one.name == main_output(kernel) else one.name + suffix
            field = "s" if one.role is Role.SCALAR else "p"
            if (place, one.name) not in self._sources and outer in self._outer:
                lines.append(f"c.{field}_{one.name} = a.{field}_{outer};")
        lines += [f"c.n_{name} = {renamed(f'a.n_{name}', place)};" for name in extents_of(kernel)]
        if place == len(self.program.kernels) - 1:
            lines += ["c.alpha = a.alpha;", "c.beta = a.beta;"]
        body = "\n  ".join(lines)
        name = f"{namespace_of(place)}::Call"
        return f"inline {name} call{place}(Arguments const& a) {{\n  {name} c;\n  {body}\n  return c;\n}}"

    def _buffer(self, type_name: str, name: str, size: str) -> None:
        self.buffers.append((type_name, name, size))

    def _step(self, call: str) -> None:
        self.steps.append(f"if (int const status = {call}) return status;")

    def functions(self) -> str:
        """Return ``workspace_bytes``, ``can_implement`` and ``run`` of the program."""
        sizes = "\n".join(f"  bytes += aligned({size});" for _, _, size in self.buffers)
        pointers = "\n".join(
            f"  auto* {name} = reinterpret_cast<{type_name}*>(free_);\n  free_ += aligned({size});"
            for type_name, name, size in self.buffers
        )
        steps = "\n  ".join(self.steps)
        checks = "\n".join(
            f"  if (int const status = {namespace_of(place)}::can_implement(call{place}(a))) return status;"
            for place in range(len(self.program.kernels))
        )
        calls = "\n".join(self.calls)
        return f"""\
{calls}
inline size_t aligned(size_t bytes) {{ return (bytes + 255) / 256 * 256; }}
inline size_t workspace_bytes(Arguments const& a) {{
  size_t bytes = 0;
{sizes}
  return bytes;
}}
inline int can_implement(Arguments const& a) {{
{checks}
  return 0;
}}
inline int run(Arguments const& a, void* workspace, cudaStream_t stream) {{
  auto* free_ = static_cast<char*>(workspace);
{pointers}
  {steps}
  return 0;
}}"""
