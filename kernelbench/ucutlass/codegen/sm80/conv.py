"""Convolutions on SM80 to SM89: implicit GEMM of CUTLASS 2.x, standard and grouped.

A convolution of one dimension is one of two with a height of 1. There is no visitor tree: the epilogue is an output
operator, which reads one tensor at most. A vector of the output's channels is a source whose pixels have stride 0.
"""

from __future__ import annotations

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.codegen.call import KernelCode, call_struct
from kernelbench.ucutlass.codegen.epilogue.chain import Chain, chain
from kernelbench.ucutlass.codegen.sm80 import epilogue, shapes
from kernelbench.ucutlass.codegen.unsupported import Unsupported
from kernelbench.ucutlass.ir import ConvForm, Direction, Extent, Iterator, SplitKMode

_ITERATORS = {
    Iterator.ANALYTIC: "kAnalytic",
    Iterator.OPTIMIZED: "kOptimized",
    Iterator.FIXED_CHANNELS: "kFixedChannels",
    Iterator.FEW_CHANNELS: "kFewChannels",
}
_ROLES = {
    Direction.FPROP: ("input", "filter", "output"),
    Direction.DGRAD: ("output", "filter", "input"),
    Direction.WGRAD: ("output", "input", "filter"),
}


def generate(kernel: ir.Kernel) -> KernelCode:
    """Return the code of a convolution; raises Unsupported."""
    epilogue_chain = chain(kernel)
    _check(kernel, epilogue_chain)
    conv = kernel.operation
    name = f"conv{_rank(conv)}d_{'group_' if conv.form is ConvForm.GROUPED else ''}{conv.direction.value}"
    lines = [
        epilogue_chain.definitions(),
        call_struct(kernel),
        shapes.types(kernel),
        _layout_types(kernel),
        epilogue.output_operator(kernel, epilogue_chain),
        _device(kernel),
        _arguments(kernel, epilogue_chain),
        _FUNCTIONS,
    ]
    includes = (
        "cutlass/cutlass.h",
        f"cutlass/conv/kernel/default_{name}.h",
        "cutlass/conv/device/implicit_gemm_convolution.h",
        "cutlass/epilogue/thread/scale_type.h",
    )
    return KernelCode(includes, "\n".join(lines))


def _rank(conv: ir.Conv) -> int:
    return max(2, conv.rank)


def _check(kernel: ir.Kernel, epilogue_chain: Chain) -> None:
    conv, leaves = kernel.operation, epilogue.tensor_leaves(epilogue_chain)
    if not epilogue.fits_output_operator(kernel, epilogue_chain):
        raise Unsupported("an epilogue of a convolution before SM90 reads one vector of channels or one tensor, of the "
                          "output's type, and stores nothing beside the output",
                          "fuse one of them, or write .with_arch(sm_90a)")  # fmt: skip
    if conv.direction is Direction.WGRAD and leaves and leaves[0].extent is not Extent.MATRIX:
        raise Unsupported("columns of the weight gradient are taps and channels, which no vector covers",
                          "remove the vector from the epilogue")  # fmt: skip
    if conv.form is ConvForm.GROUPED and conv.rank == 3:
        raise Unsupported("CUTLASS has no grouped convolution of three dimensions", "use one conv3d_fprop a group")
    split = kernel.split_k
    if split and split.slices > 1:
        if split.mode is SplitKMode.PARALLEL:
            raise Unsupported("parallel split-K of a convolution needs a reduction that CUTLASS leaves to the caller",
                              "write mode=serial")  # fmt: skip
        if leaves:
            raise Unsupported("where K is split, partial sums take the source's place",
                              "read no tensor, or do not split K")  # fmt: skip
    if conv.form is ConvForm.STANDARD and conv.rank == 3 and kernel.iterator not in (
        Iterator.ANALYTIC, Iterator.OPTIMIZED
    ):  # fmt: skip
        raise Unsupported(f"there is no iterator {kernel.iterator} for three dimensions", "use analytic or optimized")
    few = kernel.iterator in (Iterator.FIXED_CHANNELS, Iterator.FEW_CHANNELS)
    if few and (conv.direction is not Direction.FPROP or conv.form is not ConvForm.STANDARD):
        raise Unsupported(f"iterator {kernel.iterator} is of conv1d_fprop and conv2d_fprop",
                          "use analytic or optimized")  # fmt: skip


def _layout_types(kernel: ir.Kernel) -> str:
    layout = "TensorNDHWC" if kernel.operation.rank == 3 else "TensorNHWC"
    simt = shapes.uses_simt(kernel)
    align = (1, 1, 1) if simt else (kernel.alignment.a, kernel.alignment.b, kernel.alignment.c)
    return (
        f"using Layout = cutlass::layout::{layout};\n"
        f"constexpr int ALIGN_A = {align[0]}, ALIGN_B = {align[1]}, ALIGN_D = {align[2]};"
    )


def _device(kernel: ir.Kernel) -> str:
    conv = kernel.operation
    iterator = _ITERATORS.get(kernel.iterator, "kOptimized")
    group, stride = "", "kStrided"
    if conv.form is ConvForm.GROUPED:
        # one group a thread block, or several
        mode = "kSingleGroup" if iterator == "kOptimized" else "kMultipleGroup"
        group = f"cutlass::conv::GroupMode::{mode}, "
    if conv.direction is Direction.DGRAD and conv.rank == 3 and iterator == "kOptimized":
        stride = "kUnity"
    swizzle = "cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle"
    if conv.direction is Direction.DGRAD and conv.rank != 3:
        swizzle = "cutlass::conv::threadblock::StridedDgradIdentityThreadblockSwizzle"
    align = "" if conv.rank == 3 else ", ALIGN_A, ALIGN_B"
    template = f"DefaultConv{_rank(conv)}d{'Group' if group else ''}{conv.direction.value.capitalize()}"
    return f"""\
// A name of its own: profilers then show whose kernel it is, and symbols stay short.
struct ucutlass_conv : cutlass::conv::kernel::{template}<
    ElementAB, Layout, ElementAB, Layout, ElementD, Layout, ElementAccumulator, OperatorClass, ArchTag,
    CtaTile, WarpTile, Instruction, Output, {swizzle}<{shapes.identity_swizzle(kernel)}>, {kernel.stages},
    MathOperator, {group}cutlass::conv::IteratorAlgorithm::{iterator}, cutlass::conv::StrideSupport::{stride}{align}
    >::Kernel {{}};
using Conv = cutlass::conv::device::ImplicitGemmConvolution<ucutlass_conv>;"""


def _arguments(kernel: ir.Kernel, epilogue_chain: Chain) -> str:
    conv = kernel.operation
    rank = _rank(conv)
    flat = ["1"] * (rank - conv.rank)
    axes, extents, outputs = ("dhw"[3 - conv.rank :], "DHW"[3 - conv.rank :], "ZPQ"[3 - conv.rank :])
    steps = {
        what: ["0" if what == "padding" else "1"] * len(flat) + [f"int(c.n_{what}_{axis})" for axis in axes]
        for what in ("padding", "stride", "dilation")
    }
    spatial = [*flat, *(f"int(c.n_{name})" for name in extents)]
    made = [*flat, *(f"int(c.out_{name}())" for name in outputs)]
    taps = [*flat, *map(str, conv.kernel)]
    slices = kernel.split_k.slices if kernel.split_k else 1
    channels = f"int(c.n_C / {conv.groups})" if conv.form is ConvForm.GROUPED else "int(c.n_C)"
    problem = ", ".join(
        ["int(c.n_N)", *spatial, "int(c.n_C)", "int(c.n_K)", *taps, *made, *steps["padding"], *steps["stride"],
         *steps["dilation"], "cutlass::conv::Mode::kCrossCorrelation", str(slices),
         str(conv.groups if conv.form is ConvForm.GROUPED else 1)]
    )  # fmt: skip
    packed = {
        "input": ", ".join(["int(c.n_N)", *spatial, "int(c.n_C)"]),
        "filter": ", ".join(["int(c.n_K)", *taps, channels]),
        "output": ", ".join(["int(c.n_N)", *made, "int(c.n_K)"]),
    }
    first, second, result = _ROLES[conv.direction]
    leaves = epilogue.tensor_leaves(epilogue_chain)
    source, layout = f"c.p_{result}", f"Layout::packed({{{packed[result]}}})"
    if leaves:
        source = f"const_cast<ElementD*>(c.p_{leaves[0].name})"
        if leaves[0].extent is not Extent.MATRIX:
            layout = f"Layout(cutlass::make_Coord({', '.join(['0'] * (rank + 1))}))"
    read = "reinterpret_cast<ElementAB*>(const_cast<void*>(static_cast<void const*>(c.p_{})))"
    return f"""\
inline typename Conv::Arguments arguments(Call const& c) {{
  cutlass::conv::Conv{rank}dProblemSize const problem({problem});
  return typename Conv::Arguments(
      problem, {{{read.format(first)}, Layout::packed({{{packed[first]}}})}},
      {{{read.format(second)}, Layout::packed({{{packed[second]}}})}},
      {{{source}, {layout}}}, {{c.p_{result}, Layout::packed({{{packed[result]}}})}},
      typename Output::Params{epilogue.output_arguments(epilogue_chain)});
}}"""


_FUNCTIONS = """\
inline size_t workspace_bytes(Call const& c) { return Conv().get_workspace_size(arguments(c)); }
inline int can_implement(Call const& c) { return int(Conv::can_implement(arguments(c))); }
inline int launch(Call const& c, void* workspace, cudaStream_t stream) {
  auto const a = arguments(c);
  Conv conv;
  auto status = Conv::can_implement(a);
  if (status == cutlass::Status::kSuccess) status = conv.initialize(a, workspace, stream);
  if (status == cutlass::Status::kSuccess) status = conv.run(stream);
  return int(status);
}"""
