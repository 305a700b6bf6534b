"""GEMM on SM80 to SM89: one matrix or a batch, split-K, stream-K, with an output operator or a visitor tree.

CUTLASS 2.x writes D by rows only, so a ColumnMajor D is the transpose of the product of the transposes.
"""

from __future__ import annotations

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.codegen.call import KernelCode, call_struct, extents_of
from kernelbench.ucutlass.codegen.epilogue.chain import Chain, chain
from kernelbench.ucutlass.codegen.sm80 import epilogue, shapes
from kernelbench.ucutlass.codegen.unsupported import Unsupported
from kernelbench.ucutlass.ir import DType, Extent, GemmForm, Matrix, SplitKMode, Swizzle

_INCLUDES = (
    "cutlass/cutlass.h",
    "cutlass/gemm/device/gemm_universal_base.h",
    "cutlass/gemm/device/gemm_universal_adapter.h",
    "cutlass/gemm/kernel/default_gemm_universal.h",
    "cutlass/gemm/threadblock/threadblock_swizzle_streamk.h",
    "cutlass/epilogue/thread/scale_type.h",
)
_VISITOR_INCLUDES = (
    "cutlass/gemm/kernel/default_gemm_universal_with_visitor.h",
    "cutlass/epilogue/threadblock/fusion/visitors.hpp",
)
_OTHER = {Matrix.ROW_MAJOR: Matrix.COLUMN_MAJOR, Matrix.COLUMN_MAJOR: Matrix.ROW_MAJOR}


def generate(kernel: ir.Kernel) -> KernelCode:
    """Return the code of a GEMM; raises Unsupported."""
    if kernel.operation.form is GemmForm.GROUPED:
        raise Unsupported("grouped GEMM is generated for SM90 only", "write .with_arch(sm_90a)")
    transposed = kernel.layout.c is Matrix.COLUMN_MAJOR
    epilogue_chain = chain(kernel)
    plain = epilogue.fits_output_operator(kernel, epilogue_chain, Extent.COLUMN if transposed else Extent.ROW)
    _check(kernel, epilogue_chain, plain)
    build = _with_operator if plain else _with_tree
    definitions, arguments = build(kernel, epilogue_chain, transposed)
    parallel = _mode(kernel) is SplitKMode.PARALLEL
    if parallel:
        definitions, arguments = _split_parallel(kernel, epilogue_chain, transposed)
    lines = [
        epilogue_chain.definitions(),
        _call(kernel, transposed),
        shapes.types(kernel),
        _layout_types(kernel, transposed),
        definitions,
        arguments,
        _FUNCTIONS.replace("INITIALIZE", "a, workspace" if parallel else "a, workspace, stream"),
    ]
    includes = _INCLUDES if plain else (*_INCLUDES, *_VISITOR_INCLUDES)
    if parallel:
        includes = (*includes, "cutlass/gemm/device/gemm_splitk_parallel.h")
    return KernelCode(includes, "\n".join(lines))


def _check(kernel: ir.Kernel, epilogue_chain: Chain, plain: bool) -> None:
    splits = _mode(kernel) is not SplitKMode.NONE
    if splits and (not plain or epilogue.tensor_leaves(epilogue_chain)):
        raise Unsupported("where K is split, the epilogue runs on partial sums that have taken the source's place",
                          "read no tensor in the epilogue, or write .with_split_k(mode=none, slices=1)")  # fmt: skip
    if splits and kernel.operation.form is GemmForm.BATCHED:
        raise Unsupported("CUTLASS splits K of one matrix, not of a batch", "use gemm(), or do not split K")
    if kernel.swizzle is Swizzle.STREAM_K and not plain:
        raise Unsupported("stream-K before SM90 takes an epilogue that reads one vector or matrix at most",
                          "use .with_swizzle(pattern=Identity1), or .with_arch(sm_90a)")  # fmt: skip
    if kernel.dtypes.input.is_integer and (kernel.layout.a, kernel.layout.b) != (Matrix.ROW_MAJOR, Matrix.COLUMN_MAJOR):
        raise Unsupported("8-bit tensor cores read both operands along K", "use A=RowMajor, B=ColumnMajor")


def _mode(kernel: ir.Kernel) -> SplitKMode:
    split = kernel.split_k
    return split.mode if split and split.slices > 1 else SplitKMode.NONE


def _call(kernel: ir.Kernel, transposed: bool) -> str:
    rows, columns = ("N", "M") if transposed else ("M", "N")
    batch = "int(n_L)" if "L" in extents_of(kernel) else "1"
    return call_struct(kernel).removesuffix("};") + (
        f"  int m() const {{ return int(n_{rows}); }}\n  int n() const {{ return int(n_{columns}); }}\n"
        f"  int k() const {{ return int(n_K); }}\n  int l() const {{ return {batch}; }}\n}};"
    )


def _layout_types(kernel: ir.Kernel, transposed: bool) -> str:
    layout, alignment = kernel.layout, kernel.alignment
    pair = (_OTHER[layout.b], _OTHER[layout.a]) if transposed else (layout.a, layout.b)
    align = (alignment.b, alignment.a) if transposed else (alignment.a, alignment.b)
    if shapes.uses_simt(kernel) or kernel.dtypes.input is DType.FP64:
        align, count = (1, 1), 1  # CUDA cores and FP64 tensor cores load single elements
    else:
        count = alignment.c
    return "\n".join(
        [
            *(f"using Layout{name} = cutlass::layout::{one};" for name, one in zip("AB", pair)),
            f"constexpr int ALIGN_A = {align[0]}, ALIGN_B = {align[1]}, ALIGN_D = {count};",
        ]
    )


def _swizzle(kernel: ir.Kernel) -> str:
    if kernel.swizzle is Swizzle.STREAM_K:
        return "cutlass::gemm::threadblock::ThreadblockSwizzleStreamK"
    return f"cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<{shapes.identity_swizzle(kernel)}>"


def _with_operator(kernel: ir.Kernel, epilogue_chain: Chain, transposed: bool) -> tuple[str, str]:
    definitions = f"""\
{epilogue.output_operator(kernel, epilogue_chain)}
// A name of its own: profilers then show whose kernel it is, and symbols stay short.
struct ucutlass_gemm : cutlass::gemm::kernel::DefaultGemmUniversal<
    ElementAB, LayoutA, cutlass::ComplexTransform::kNone, ALIGN_A,
    ElementAB, LayoutB, cutlass::ComplexTransform::kNone, ALIGN_B,
    ElementD, cutlass::layout::RowMajor, ElementAccumulator, OperatorClass, ArchTag, CtaTile, WarpTile, Instruction,
    Output, {_swizzle(kernel)}, {kernel.stages}, MathOperator>::GemmKernel {{}};
using Gemm = cutlass::gemm::device::GemmUniversalBase<ucutlass_gemm>;"""
    leaves = epilogue.tensor_leaves(epilogue_chain)
    source, stride, batch = "nullptr", "int64_t(c.n())", "int64_t(c.m()) * c.n()"
    if leaves:
        source = f"c.p_{leaves[0].name}"
        if leaves[0].extent is not Extent.MATRIX:
            stride, batch = "int64_t(0)", "int64_t(0)"
    thread = epilogue.output_arguments(epilogue_chain)
    return definitions, _arguments(kernel, transposed, thread, source, batch, stride)


def _arguments(kernel: ir.Kernel, transposed: bool, thread: str, source: str, batch_c: str, stride_c: str) -> str:
    first, second = ("p_B", "p_A") if transposed else ("p_A", "p_B")
    batched = kernel.operation.form is GemmForm.BATCHED
    mode = "kBatched" if batched else "kGemm"
    count = "c.l()" if batched else str(kernel.split_k.slices if _mode(kernel) is SplitKMode.SERIAL else 1)
    return f"""\
inline typename Gemm::Arguments arguments(Call const& c) {{
  constexpr bool a_by_rows = std::is_same<LayoutA, cutlass::layout::RowMajor>::value;
  constexpr bool b_by_rows = std::is_same<LayoutB, cutlass::layout::RowMajor>::value;
  return typename Gemm::Arguments(
      cutlass::gemm::GemmUniversalMode::{mode}, {{c.m(), c.n(), c.k()}}, {count}, {thread},
      c.{first}, c.{second}, {source}, c.p_D,
      int64_t(c.m()) * c.k(), int64_t(c.n()) * c.k(), {batch_c}, int64_t(c.m()) * c.n(),
      int64_t(a_by_rows ? c.k() : c.m()), int64_t(b_by_rows ? c.n() : c.k()), {stride_c}, int64_t(c.n()));
}}"""


def _with_tree(kernel: ir.Kernel, epilogue_chain: Chain, transposed: bool) -> tuple[str, str]:
    tree = epilogue.tree(kernel, epilogue_chain, rows_last=transposed)
    definitions = f"""\
using ThreadMap = cutlass::epilogue::threadblock::OutputTileThreadLayout<CtaTile, WarpTile, ElementD, ALIGN_D, 1>;
{tree.definitions}
struct ucutlass_gemm : cutlass::gemm::kernel::DefaultGemmWithVisitor<
    ElementAB, LayoutA, cutlass::ComplexTransform::kNone, ALIGN_A,
    ElementAB, LayoutB, cutlass::ComplexTransform::kNone, ALIGN_B,
    ElementD, cutlass::layout::RowMajor, ALIGN_D, ElementAccumulator, {epilogue_chain.type_name},
    OperatorClass, ArchTag, CtaTile, WarpTile, Instruction,
    Tree, {_swizzle(kernel)}, {kernel.stages}, MathOperator, 1>::GemmKernel {{}};
using Gemm = cutlass::gemm::device::GemmUniversalBase<ucutlass_gemm>;"""
    thread = f"typename Tree::Arguments{tree.arguments}"
    return definitions, _arguments(kernel, transposed, thread, "nullptr", "int64_t(0)", "int64_t(0)")


def _split_parallel(kernel: ir.Kernel, epilogue_chain: Chain, transposed: bool) -> tuple[str, str]:
    """Return a GEMM whose slices of K are written apart, in the accumulator's type, and then reduced."""
    first, second = ("p_B", "p_A") if transposed else ("p_A", "p_B")
    definitions = f"""\
{epilogue.output_operator(kernel, epilogue_chain)}
using Gemm = cutlass::gemm::device::GemmSplitKParallel<
    ElementAB, LayoutA, ElementAB, LayoutB, ElementD, cutlass::layout::RowMajor, ElementAccumulator,
    OperatorClass, ArchTag, CtaTile, WarpTile, Instruction, Output,
    cutlass::epilogue::thread::Convert<ElementAccumulator, ALIGN_D, ElementAccumulator>,
    cutlass::reduction::thread::ReduceAdd<ElementAccumulator, ElementAccumulator, ALIGN_D>,
    cutlass::gemm::threadblock::GemmSplitKHorizontalThreadblockSwizzle, {kernel.stages}, ALIGN_A, ALIGN_B,
    MathOperator>;"""
    pointer = "reinterpret_cast<ElementAB const*>"
    arguments = f"""\
inline typename Gemm::Arguments arguments(Call const& c) {{
  constexpr bool a_by_rows = std::is_same<LayoutA, cutlass::layout::RowMajor>::value;
  constexpr bool b_by_rows = std::is_same<LayoutB, cutlass::layout::RowMajor>::value;
  return typename Gemm::Arguments(
      {{c.m(), c.n(), c.k()}}, {{{pointer}(c.{first}), a_by_rows ? c.k() : c.m()}},
      {{{pointer}(c.{second}), b_by_rows ? c.n() : c.k()}}, {{c.p_D, c.n()}}, {{c.p_D, c.n()}},
      {epilogue.output_arguments(epilogue_chain)}, {kernel.split_k.slices});
}}"""
    return definitions, arguments


_FUNCTIONS = """\
inline size_t workspace_bytes(Call const& c) { return Gemm::get_workspace_size(arguments(c)); }
inline int can_implement(Call const& c) { return int(Gemm::can_implement(arguments(c))); }
inline int launch(Call const& c, void* workspace, cudaStream_t stream) {
  auto const a = arguments(c);
  Gemm gemm;
  auto status = gemm.initialize(INITIALIZE);
  if (status == cutlass::Status::kSuccess) status = gemm.run(stream);
  return int(status);
}"""
