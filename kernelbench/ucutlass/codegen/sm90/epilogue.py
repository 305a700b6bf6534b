"""One visitor tree for the whole epilogue of an SM90 kernel.

The first matrix that the epilogue reads takes the collective's source (C), which has a pipeline of its own; further
ones are auxiliary loads. A store in the middle of the chain is a node around what was computed so far.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.codegen.call import operand, scalar
from kernelbench.ucutlass.codegen.elements import cpp
from kernelbench.ucutlass.codegen.epilogue.chain import Chain, Leaf
from kernelbench.ucutlass.ir import DType, Extent

_FUSION = "cutlass::epilogue::fusion::"


@dataclass(frozen=True)
class Tree:
    """``definitions`` define ``Tree``; ``arguments`` initialise its arguments from the call ``c``.

    ``source`` is the operand that is the collective's C, or '' where it has none.
    """

    definitions: str
    arguments: str
    source: str


def tree(kernel: ir.Kernel, chain: Chain, rows_last: bool = False) -> Tree:
    """Return the visitor tree of a chain; with ``rows_last`` the kernel computes the transposed output.

    Needs ``CtaTile``, ``EpilogueSchedule``, ``ElementC``, ``ElementD`` and ``LayoutD`` to be defined before it.
    """
    source = next((leaf.name for leaf in chain.leaves if leaf.extent is Extent.MATRIX), "")
    lines = [
        "using Descriptor = cutlass::epilogue::collective::detail::EpilogueDescriptor<CtaTile,",
        "    cutlass::epilogue::collective::EpilogueTileAuto, ElementC, ElementD, EpilogueSchedule>;",
        "constexpr auto ROUND = cutlass::FloatRoundStyle::round_to_nearest;",
    ]
    value, arguments = f"{_FUSION}Sm90AccFetch", "{}"
    for place, part in enumerate(chain.parts):
        if part.statements:
            children = [value]
            given = [arguments]
            for number, leaf in enumerate(part.leaves):
                name = f"Leaf{place}_{number}"
                before, argument = _leaf(kernel, leaf, name, leaf.name == source, rows_last)
                lines += before
                children.append(name)
                given.append(argument)
            lines.append(
                f"using Value{place} = {_FUSION}Sm90EVT<{_FUSION}Sm90Compute<Part{place}, {chain.type_name}, "
                f"{chain.type_name}, ROUND>,\n    {', '.join(children)}>;"
            )
            value, arguments = f"Value{place}", "{" + ", ".join([*given, "{}"]) + "}"
        if part.store:
            lines += _store(kernel, part.store, f"Store{place}", value)
            shape = "cute::make_shape(c.m(), c.n(), c.l())"
            stride = f"cutlass::make_cute_packed_stride(Store{place}Descriptor::Stride{{}}, {shape})"
            value, arguments = f"Store{place}", f"{{{arguments}, {{c.p_{part.store}, {stride}}}}}"
    lines.append(f"using Tree = {value};")
    return Tree("\n".join(lines), arguments, source)


def traits(namespace: str, kernel: ir.Kernel, chain: Chain) -> str:
    """Return the statement, outside of all namespaces, that a tree computes in FP32 whatever it accumulates in."""
    if kernel.dtypes.acc is DType.FP32:
        return ""
    return f"""\
template <> struct cutlass::epilogue::fusion::FusionCallbacksTraits<{namespace}::Tree> {{
  using DispatchPolicy = void;
  using Callbacks = {namespace}::Tree;
  using Operation = {namespace}::Tree;
  using CtaTile_MNK = void;
  using EpilogueTile_MN = void;
  using ElementCompute = {chain.type_name};
}};"""


def without_shared_memory(chain: Chain) -> Tree:
    """Return the collective of an epilogue that writes D from registers: ``definitions`` define ``CollectiveEpilogue``.

    The chain reads scalars only. Every thread stores single elements, so D needs no alignment.
    """
    names = [leaf.variable for leaf in chain.parts[0].leaves]
    fields = " ".join(f"float {name} = 0;" for name in names)
    values = "".join(f", params.{name}" for name in names)
    definitions = f"""\
namespace kernel_types {{ using Output = ElementD; using Accumulator = ElementAccumulator; }}
struct Output {{
  using ElementOutput = kernel_types::Output;
  using ElementD = kernel_types::Output;
  using ElementAccumulator = kernel_types::Accumulator;
  using ElementCompute = float;
  static int const kCount = 1;
  struct Params {{ {fields} }};
  Params params;

  CUTLASS_HOST_DEVICE Output(Params const& given) : params(given) {{}}
  CUTLASS_HOST_DEVICE constexpr bool is_source_needed() const {{ return false; }}
  CUTLASS_DEVICE ElementD operator()(ElementAccumulator accumulator) const {{
    return cutlass::NumericConverter<ElementD, float>{{}}(part0(float(accumulator){values}));
  }}
  CUTLASS_DEVICE ElementD operator()(ElementAccumulator accumulator, ElementD) const {{ return (*this)(accumulator); }}
}};
using CollectiveEpilogue = cutlass::epilogue::collective::detail::Sm90TmaWarpSpecializedAdapter<
    cutlass::epilogue::collective::DefaultEpilogue<
        ElementC, cutlass::detail::TagToStrideC_t<LayoutD>, cutlass::detail::TagToStrideC_t<LayoutD>, Output,
        cutlass::gemm::EpilogueDefault>>;"""
    return Tree(definitions, "{" + ", ".join(scalar(leaf.name) for leaf in chain.parts[0].leaves) + "}", "")


def _leaf(kernel: ir.Kernel, leaf: Leaf, name: str, is_source: bool, rows_last: bool) -> tuple[list[str], str]:
    """Return the definition of a leaf's node, and its argument."""
    if leaf.extent is Extent.SCALAR:
        return [f"using {name} = {_FUSION}Sm90ScalarBroadcast<float>;"], f"{{{{{scalar(leaf.name)}}}}}"
    element = cpp(operand(kernel, leaf.name).dtype)
    if leaf.extent is Extent.MATRIX:
        if is_source:
            return [f"using {name} = {_FUSION}Sm90SrcFetch<{element}>;"], "{}"
        lines = [
            f"using {name}Descriptor =",
            f"    cutlass::epilogue::collective::detail::AuxLoadDescriptor<Descriptor, LayoutD, {element}>;",
            f"using {name} = {_FUSION}Sm90AuxLoad<{name}Descriptor::Stages, {name}Descriptor::EpilogueTile, {element},",
            f"    {name}Descriptor::Stride, {name}Descriptor::SmemLayoutAtom, {name}Descriptor::CopyOpS2R>;",
        ]
        shape = "cute::make_shape(c.m(), c.n(), c.l())"
        stride = f"cutlass::make_cute_packed_stride({name}Descriptor::Stride{{}}, {shape})"
        return lines, f"{{c.p_{leaf.name}, {element}(0), {stride}}}"
    is_row = (leaf.extent is Extent.ROW) != rows_last
    node = "Sm90RowBroadcast" if is_row else "Sm90ColBroadcast"
    definition = f"using {name} = {_FUSION}{node}<0, CtaTile, {element}, float>;"
    return [definition], f"{{c.p_{leaf.name}, {element}(0), {{}}}}"


def _store(kernel: ir.Kernel, tensor: str, name: str, value: str) -> list[str]:
    element = cpp(operand(kernel, tensor).dtype)
    return [
        f"using {name}Descriptor =",
        f"    cutlass::epilogue::collective::detail::AuxStoreDescriptor<Descriptor, LayoutD, {element}>;",
        f"using {name} = {_FUSION}Sm90EVT<{_FUSION}Sm90AuxStore<{name}Descriptor::Stages, "
        f"{name}Descriptor::EpilogueTile, {element},",
        f"    ROUND, {name}Descriptor::Stride, {name}Descriptor::SmemLayoutAtom, {name}Descriptor::CopyOpR2S>,",
        f"    {value}>;",
    ]
