"""Epilogues of CUTLASS 2.x: an output operator where one tensor at most is read, else a visitor tree.

The output operator gets that tensor as its source. A row vector is a source whose rows have stride 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.codegen.call import operand, scalar
from kernelbench.ucutlass.codegen.elements import cpp
from kernelbench.ucutlass.codegen.epilogue.chain import Chain, Leaf, Part
from kernelbench.ucutlass.ir import Extent

_FUSION = "cutlass::epilogue::threadblock::"


def tensor_leaves(chain: Chain) -> list[Leaf]:
    """Return the tensors that an epilogue reads."""
    return [leaf for leaf in chain.leaves if leaf.extent is not Extent.SCALAR]


def fits_output_operator(kernel: ir.Kernel, chain: Chain, row: Extent = Extent.ROW) -> bool:
    """Return whether an output operator does: no store in between, at most one matrix or ``row`` vector read."""
    leaves = tensor_leaves(chain)
    stores = any(part.store for part in chain.parts)
    if stores or len(leaves) > 1:
        return False
    if not leaves:
        return True
    same = operand(kernel, leaves[0].name).dtype is kernel.dtypes.output
    return same and leaves[0].extent in (row, Extent.MATRIX)


def output_operator(kernel: ir.Kernel, chain: Chain, count: str = "ALIGN_D") -> str:
    """Return the operator ``Output``; needs ``ElementD`` and ``ElementAccumulator`` to be defined before it.

    Where slices of K are summed in D, each is scaled by the chain's first part, and the last one applies the rest.
    """
    (*summed, part), leaves = chain.parts, tensor_leaves(chain)
    scalars = [leaf for leaf in chain.leaves if leaf.extent is Extent.SCALAR]
    product = _product(summed)
    fields = "".join(f" {chain.type_name} {leaf.variable} = {1 if leaf.name == 'alpha' else 0};" for leaf in scalars)
    values = ", ".join(
        f"params.{leaf.variable}" if leaf in scalars else f"{chain.type_name}(source[i])" for leaf in part.leaves
    )
    plain = ", ".join(f"params.{leaf.variable}" if leaf in scalars else "0" for leaf in part.leaves)
    whole = "CUTLASS_PRAGMA_UNROLL\n    for (int i = 0; i < kCount; ++i)"
    return f"""\
struct Output {{
  using ElementOutput = ElementD;
  using ElementSource = ElementD;
  using ElementC = ElementD;
  using ElementAccumulator = kernel_types::Accumulator;
  using ElementCompute = {chain.type_name};
  using ElementScalar = {chain.type_name};
  static int const kCount = {count};
  static bool const kIsHeavy = false;
  static cutlass::FloatRoundStyle const kRound = cutlass::FloatRoundStyle::round_to_nearest;
  static cutlass::epilogue::thread::ScaleType::Kind const kScale = cutlass::epilogue::thread::ScaleType::Default;
  using FragmentOutput = cutlass::Array<ElementOutput, kCount>;
  using FragmentSource = FragmentOutput;
  using FragmentAccumulator = cutlass::Array<ElementAccumulator, kCount>;
  using ComputeFragment = cutlass::Array<ElementCompute, kCount>;
  using FragmentCompute = ComputeFragment;
  struct Params {{{fields} }};
  Params params;
  bool adds = false, last = true;  // to what earlier slices of K left in D; and whether the chain is applied

  CUTLASS_HOST_DEVICE Output(Params const& given) : params(given) {{}}
  CUTLASS_HOST_DEVICE bool is_source_needed() const {{ return {"true" if leaves else "adds"}; }}
  CUTLASS_HOST_DEVICE void set_k_partition(int slice, int slices) {{
    adds = slice > 0;
    last = slice == slices - 1;
  }}
  CUTLASS_DEVICE FragmentOutput operator()(
      FragmentAccumulator const& accumulator, FragmentSource const& source) const {{
    ComputeFragment values;
    {whole} {{
      ElementCompute x = {product} + (adds ? ElementCompute(source[i]) : ElementCompute(0));
      values[i] = last ? part{len(summed)}(x{", " if values else ""}{values}) : x;
    }}
    return cutlass::NumericArrayConverter<ElementOutput, ElementCompute, kCount>{{}}(values);
  }}
  CUTLASS_DEVICE FragmentOutput operator()(FragmentAccumulator const& accumulator) const {{
    ComputeFragment values;
    {whole} {{
      ElementCompute x = {product};
      values[i] = last ? part{len(summed)}(x{", " if plain else ""}{plain}) : x;
    }}
    return cutlass::NumericArrayConverter<ElementOutput, ElementCompute, kCount>{{}}(values);
  }}
}};"""


def _product(summed: list[Part]) -> str:
    """Return what one slice of K, or the only one, adds up."""
    product = "ElementCompute(accumulator[i])"
    for place, part in enumerate(summed):
        product = f"part{place}({', '.join([product, *(f'params.{leaf.variable}' for leaf in part.leaves)])})"
    return product


def output_arguments(chain: Chain) -> str:
    """Return the initialiser of ``Output::Params`` from the call ``c``."""
    scalars = [leaf for leaf in chain.leaves if leaf.extent is Extent.SCALAR]
    return "{" + ", ".join(_scalar(leaf, chain) for leaf in scalars) + "}"


def _scalar(leaf: Leaf, chain: Chain) -> str:
    if chain.type_name == "double" and leaf.name in ("alpha", "beta"):
        return f"c.{leaf.name}"
    return scalar(leaf.name)


@dataclass(frozen=True)
class Tree:
    """``definitions`` define ``Tree``; ``arguments`` initialise its arguments from the call ``c``."""

    definitions: str
    arguments: str


def tree(kernel: ir.Kernel, chain: Chain, rows_last: bool) -> Tree:
    """Return the visitor tree of a GEMM, the store of D included; needs ``ThreadMap`` to be defined before it."""
    lines = ["constexpr auto ROUND = cutlass::FloatRoundStyle::round_to_nearest;"]
    value, arguments = f"{_FUSION}VisitorAccFetch", "{}"
    for place, part in enumerate(chain.parts):
        if part.statements:
            children, given = [value], [arguments]
            for number, leaf in enumerate(part.leaves):
                name = f"Leaf{place}_{number}"
                definition, argument = _leaf(kernel, leaf, chain, rows_last)
                lines.append(f"using {name} = {definition};")
                children.append(name)
                given.append(argument)
            lines.append(
                f"using Value{place} = {_FUSION}Sm80EVT<{_FUSION}VisitorCompute<Part{place}, {chain.type_name}, "
                f"{chain.type_name}, ROUND>,\n    {', '.join(children)}>;"
            )
            value, arguments = f"Value{place}", "{" + ", ".join([*given, "{}"]) + "}"
        store = part.store or ("D" if place == len(chain.parts) - 1 else "")
        if store:
            element = cpp(operand(kernel, store).dtype)
            lines.append(
                f"using Store{place} = {_FUSION}Sm80EVT<{_FUSION}VisitorAuxStore<ThreadMap, {element}, ROUND,\n"
                f"    cute::Stride<int64_t, cute::_1, int64_t>>, {value}>;"
            )
            value, arguments = f"Store{place}", f"{{{arguments}, {{c.p_{store}, {_MATRIX_STRIDE}}}}}"
    lines.append(f"using Tree = {value};")
    return Tree("\n".join(lines), arguments)


_MATRIX_STRIDE = "{int64_t(c.n()), cute::_1{}, int64_t(c.m()) * c.n()}"


def _leaf(kernel: ir.Kernel, leaf: Leaf, chain: Chain, rows_last: bool) -> tuple[str, str]:
    if leaf.extent is Extent.SCALAR:
        return f"{_FUSION}VisitorScalarBroadcast<{chain.type_name}>", f"{{{{{_scalar(leaf, chain)}}}}}"
    element = cpp(operand(kernel, leaf.name).dtype)
    if leaf.extent is Extent.MATRIX:
        pointer = f"const_cast<{element}*>(c.p_{leaf.name})"
        return (
            f"{_FUSION}VisitorAuxLoad<ThreadMap, {element}, cute::Stride<int64_t, cute::_1, int64_t>>",
            f"{{{pointer}, {element}(0), {_MATRIX_STRIDE}}}",
        )
    is_row = (leaf.extent is Extent.ROW) != rows_last
    node, stride = ("VisitorRowBroadcast", "_0, cute::_1") if is_row else ("VisitorColBroadcast", "_1, cute::_0")
    return (
        f"{_FUSION}{node}<ThreadMap, {element}, cute::Stride<cute::{stride}, cute::_0>>",
        f"{{c.p_{leaf.name}, {element}(0), {{}}}}",
    )
