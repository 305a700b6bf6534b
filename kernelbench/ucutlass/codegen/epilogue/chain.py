"""The epilogue as straight-line code: a chain of operations becomes one functor for each part between two stores.

A functor takes the running value ``x`` and one value for every tensor or scalar that its part reads. Because it is
one expression for the compiler, constants are folded and no intermediate value leaves the registers. The visitor
trees of SM90 and SM80 and the thread epilogues of convolutions all call the same functors.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.codegen.elements import compute, literal
from kernelbench.ucutlass.codegen.epilogue import functions
from kernelbench.ucutlass.ir import Extent

_INFIX = {"add": "+", "sub": "-", "mul": "*", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_COMPARISONS = {"lt", "le", "gt", "ge", "eq", "ne"}


@dataclass(frozen=True)
class Leaf:
    """A value that a functor reads beside ``x``: ``name`` is an operand's, or alpha, beta, C."""

    name: str
    extent: Extent

    @property
    def variable(self) -> str:
        """Return the C++ parameter: the prefix keeps keywords of C++ usable as names."""
        return f"in_{self.name}"


@dataclass
class Part:
    """Statements up to a store, a sum over slices or the end; ``store`` names the tensor that ``x`` is written to."""

    leaves: list[Leaf] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    store: str = ""

    def read(self, name: str, extent: Extent) -> str:
        """Return the variable that holds a leaf, which is added where the part does not read it yet."""
        leaf = Leaf(name, extent)
        if leaf not in self.leaves:
            self.leaves.append(leaf)
        return leaf.variable


@dataclass(frozen=True)
class Chain:
    """All parts of an epilogue, and the functions that they call; ``type_name`` is float or double."""

    parts: tuple[Part, ...]
    used: frozenset[str]
    type_name: str

    @property
    def leaves(self) -> list[Leaf]:
        """Return every leaf once, in the order of use."""
        return list(dict.fromkeys(leaf for part in self.parts for leaf in part.leaves))

    def definitions(self) -> str:
        """Return the C++ functions and functors ``Part0``, ``Part1`` and so on."""
        functors = [_functor(f"Part{place}", part, self.type_name) for place, part in enumerate(self.parts)]
        return "\n".join([functions.definitions(set(self.used), self.type_name), *functors])


class _Builder:
    def __init__(self, kernel: ir.Kernel, scaled: bool):
        self.type_name = compute(kernel.dtypes.acc)
        self.used: set[str] = set()
        self.parts = [Part()]
        if scaled:
            self._assign(f"{self.part.read('alpha', Extent.SCALAR)} * x")
            if kernel.scaling and kernel.scaling.beta:
                beta, source = self.part.read("beta", Extent.SCALAR), self.part.read("C", Extent.MATRIX)
                self._assign(f"x + {beta} * {source}")

    @property
    def part(self) -> Part:
        return self.parts[-1]

    def add(self, op: ir.EpilogueOp) -> None:
        match op:
            case ir.Activation(kind):
                self._assign(self._call(kind.value, "x"))
            case ir.LeakyRelu(alpha) | ir.Elu(alpha):
                name = "elu" if isinstance(op, ir.Elu) else "leaky_relu"
                self._assign(self._call(name, "x", self._literal(alpha)))
            case ir.Clip(low, high):
                self._assign(self._call("min", self._call("max", "x", self._literal(low)), self._literal(high)))
            case ir.Scale(alpha):
                self._assign(f"x * {self._literal(alpha)}")
            case ir.AuxStore(name):
                self.part.store = name
                self.parts.append(Part())
            case ir.Custom(expression):
                extents = {one.name: one.extent for one in op.inputs}
                self._assign(self._expression(expression, extents))
            case _:
                sign, name, extent = _READS[type(op)]
                self._assign(f"x {sign} {self.part.read(name or op.name, extent)}")

    def _assign(self, value: str) -> None:
        self.part.statements.append(f"x = {value};")

    def _literal(self, value: float) -> str:
        return literal(value, self.type_name)

    def _call(self, name: str, *arguments: str) -> str:
        self.used.add(name)
        return f"u_{name}({', '.join(arguments)})"

    def _expression(self, expression: ir.Expression, extents: dict[str, Extent]) -> str:
        match expression:
            case ir.Number(value):
                return self._literal(value)
            case ir.Variable(name):
                return "x" if name == "x" else self.part.read(name, extents[name])
        parts = [self._expression(argument, extents) for argument in expression.arguments]
        name = expression.function
        if name == "neg":
            return f"(-{parts[0]})"
        if name == "where":
            return f"({parts[0]} != 0 ? {parts[1]} : {parts[2]})"
        if name in _INFIX:
            text = f"({parts[0]} {_INFIX[name]} {parts[1]})"
            return f"{self.type_name}{text}" if name in _COMPARISONS else text
        return self._call(name, *parts)


# what an operation reads -> how it enters, its fixed name ('' where the program names it), its extent
_READS = {
    ir.Bias: ("+", "bias", Extent.ROW),
    ir.PerChannelScale: ("*", "channel_scale", Extent.ROW),
    ir.PerColScale: ("*", "col_scale", Extent.ROW),
    ir.PerRowScale: ("*", "row_scale", Extent.COLUMN),
    ir.RowBroadcast: ("+", "", Extent.ROW),
    ir.ColumnBroadcast: ("+", "", Extent.COLUMN),
    ir.AuxLoad: ("+", "", Extent.MATRIX),
}


def chain(kernel: ir.Kernel, scaled: bool = True) -> Chain:
    """Return the epilogue of ``kernel``; without ``scaled`` the caller applies alpha, beta and C itself.

    Where slices of K are summed in D, the first part is what each slice multiplies its sum by: D may not hold the sum
    itself.
    """
    builder = _Builder(kernel, scaled)
    operations = list(kernel.epilogue)
    if kernel.split_k and kernel.split_k.mode is ir.SplitKMode.SERIAL:
        while operations and isinstance(operations[0], ir.Scale):
            builder.add(operations.pop(0))
        builder.parts.append(Part())
    for op in operations:
        builder.add(op)
    return Chain(tuple(builder.parts), frozenset(builder.used), builder.type_name)


def _functor(name: str, part: Part, type_name: str) -> str:
    variables = [leaf.variable for leaf in part.leaves]
    arrays = ", ".join(f"cutlass::Array<U, N> const& {variable}" for variable in ("x", *variables))
    scalars = ", ".join(f"{type_name} const {variable}" for variable in variables)
    values = ", ".join(["x[i]", *(f"{variable}[i]" for variable in variables)])
    body = "\n    ".join(part.statements)
    return f"""\
CUTLASS_DEVICE {type_name} {name.lower()}({type_name} x{", " if scalars else ""}{scalars}) {{
    {body}
    return x;
}}
template <class U> struct {name};
template <class U, int N> struct {name}<cutlass::Array<U, N>> {{
  CUTLASS_DEVICE cutlass::Array<U, N> operator()({arrays}) const {{
    cutlass::Array<U, N> result;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < N; ++i) result[i] = {name.lower()}({values});
    return result;
  }}
}};"""
