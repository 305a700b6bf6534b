"""Convolutions of one to three dimensions on SM90, as implicit GEMM with im2col loads of TMA.

The weight gradient's output tile has a nested mode that the nodes of a visitor tree do not take, so it is scaled by
alpha and beta only.
"""

from __future__ import annotations

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.codegen.call import KernelCode, call_struct
from kernelbench.ucutlass.codegen.elements import cpp
from kernelbench.ucutlass.codegen.epilogue.chain import chain
from kernelbench.ucutlass.codegen.sm90 import epilogue
from kernelbench.ucutlass.codegen.unsupported import Unsupported
from kernelbench.ucutlass.ir import ConvForm, Direction, Extent

_INCLUDES = (
    "cutlass/cutlass.h",
    "cute/tensor.hpp",
    "cutlass/kernel_hardware_info.hpp",
    "cutlass/conv/convolution.h",
    "cutlass/conv/convnd_problem_shape.hpp",
    "cutlass/conv/dispatch_policy.hpp",
    "cutlass/conv/collective/collective_builder.hpp",
    "cutlass/conv/kernel/conv_universal.hpp",
    "cutlass/conv/device/conv_universal_adapter.hpp",
    "cutlass/epilogue/collective/collective_builder.hpp",
    "cutlass/epilogue/fusion/sm90_callbacks_tma_warpspecialized.hpp",
    "cutlass/util/packed_stride.hpp",
)
_ACTIVATIONS = {1: "TensorNWC", 2: "TensorNHWC", 3: "TensorNDHWC"}
_FILTERS = {1: "TensorKCS", 2: "TensorKCSR", 3: "TensorKCSRT"}
# operand -> (A, B, D) of the implicit GEMM
_ROLES = {
    Direction.FPROP: ("input", "filter", "output"),
    Direction.DGRAD: ("output", "filter", "input"),
    Direction.WGRAD: ("output", "input", "filter"),
}


def generate(kernel: ir.Kernel, namespace: str) -> KernelCode:
    """Return the code of a convolution; raises Unsupported."""
    conv = kernel.operation
    if conv.form is not ConvForm.STANDARD:
        raise Unsupported("grouped convolutions have no SM90 kernel in CUTLASS", "write .with_arch(sm_80)")
    epilogue_chain = chain(kernel)
    weights = conv.direction is Direction.WGRAD
    _check(kernel, epilogue_chain, weights)
    tree = epilogue.tree(kernel, epilogue_chain)
    lines = [
        epilogue_chain.definitions(),
        call_struct(kernel),
        _types(kernel, tree.source),
        "" if weights else tree.definitions,
        "CLOSE_NAMESPACE",
        "" if weights else epilogue.traits(namespace, kernel, epilogue_chain),
        "OPEN_NAMESPACE",
        _device(kernel, weights),
        _arguments(kernel, tree, weights),
        _FUNCTIONS.replace(
            "CHECK", _UNIT_STRIDE.format(_strides(conv)) if conv.direction is Direction.DGRAD else ""
        ),
    ]
    return KernelCode(_INCLUDES, "\n".join(line for line in lines if line))


def _check(kernel: ir.Kernel, epilogue_chain, weights: bool) -> None:
    if weights and (kernel.epilogue or (kernel.scaling and kernel.scaling.beta)):
        raise Unsupported("the weight gradient on SM90 has no fused epilogue", "remove the epilogue and beta")
    matrices = [leaf for leaf in epilogue_chain.leaves if leaf.extent is Extent.MATRIX]
    if any(part.store for part in epilogue_chain.parts) or len(matrices) > 1:
        raise Unsupported("a convolution's epilogue reads one tensor of the output's shape and stores none beside it",
                          "remove aux_store, and further aux_load")  # fmt: skip
    if any(leaf.extent is Extent.COLUMN for leaf in epilogue_chain.leaves):
        raise Unsupported("rows of a convolution's output are pixels, which have no vector of their own",
                          "use per_channel_scale() or row_broadcast(...)")  # fmt: skip


def _types(kernel: ir.Kernel, source: str) -> str:
    conv, tile, types = kernel.operation, kernel.cta_tile, kernel.dtypes
    cluster = kernel.cluster or ir.Cluster(1, 1, 1)
    nested = ("", "cute::Shape<cute::Int<{}>>")
    n = nested[1].format(tile.n) if conv.direction is Direction.WGRAD else f"cute::Int<{tile.n}>"
    k = f"cute::Int<{tile.k}>" if conv.direction is Direction.WGRAD else nested[1].format(tile.k)
    layout = _FILTERS if conv.direction is Direction.WGRAD else _ACTIVATIONS
    roles = _ROLES[conv.direction]
    return "\n".join(
        [
            f"using CtaTile = cute::Shape<cute::Int<{tile.m}>, {n}, {k}>;",
            f"using Cluster = cute::Shape<cute::Int<{cluster.m}>, cute::Int<{cluster.n}>, cute::Int<{cluster.k}>>;",
            f"constexpr auto DIRECTION = cutlass::conv::Operator::k{conv.direction.value.capitalize()};",
            f"using Problem = cutlass::conv::ConvProblemShape<DIRECTION, {conv.rank}>;",
            "using EpilogueSchedule = cutlass::epilogue::TmaWarpSpecialized;",
            f"using ElementAB = {cpp(types.input)};",
            f"using ElementAccumulator = {cpp(types.acc)};",
            f"using ElementC = {cpp(types.output) if source else 'void'};",
            f"using ElementD = {cpp(types.output)};",
            f"using LayoutA = cutlass::layout::{_ACTIVATIONS[conv.rank]};  // of {roles[0]}",
            f"using LayoutB = cutlass::layout::{_ACTIVATIONS[conv.rank]};  // of {roles[1]}",
            f"using LayoutD = cutlass::layout::{layout[conv.rank]};  // of {roles[2]}",
            f"constexpr int ALIGN_A = {kernel.alignment.a}, ALIGN_B = {kernel.alignment.b}, "
            f"ALIGN_D = {kernel.alignment.c};",
        ]
    )


def _device(kernel: ir.Kernel, weights: bool) -> str:
    tree = "" if weights else ",\n    Tree"
    stages = (
        f"StageCount<{kernel.stages}>"
        if kernel.stages
        else "StageCountAutoCarveout<int(sizeof(typename CollectiveEpilogue::SharedStorage))>"
    )
    return f"""\
using CollectiveEpilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, CtaTile, Cluster,
    cutlass::epilogue::collective::EpilogueTileAuto, ElementAccumulator, float,
    ElementC, LayoutD, ALIGN_D, ElementD, LayoutD, ALIGN_D, EpilogueSchedule{tree}>::CollectiveOp;
using CollectiveMain = typename cutlass::conv::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, DIRECTION, ElementAB, LayoutA, ALIGN_A,
    ElementAB, LayoutB, ALIGN_B, ElementAccumulator, CtaTile, Cluster,
    cutlass::conv::collective::{stages},
    cutlass::conv::KernelImplicitTmaWarpSpecializedSm90>::CollectiveOp;
struct ucutlass_conv : cutlass::conv::kernel::ConvUniversal<Problem, CollectiveMain, CollectiveEpilogue> {{}};
using Conv = cutlass::conv::device::ConvUniversalAdapter<ucutlass_conv>;"""


def _arguments(kernel: ir.Kernel, tree: epilogue.Tree, weights: bool) -> str:
    conv = kernel.operation
    axes, extents = "dhw"[3 - conv.rank :], ("D", "H", "W")[3 - conv.rank :]
    activation = ", ".join(f"int(c.n_{name})" for name in ("N", *extents, "C"))
    weight = ", ".join(["int(c.n_K)", *map(str, conv.kernel), "int(c.n_C)"])
    padding, stride, dilation = (
        ", ".join(f"int(c.n_{what}_{axis})" for axis in axes) for what in ("padding", "stride", "dilation")
    )
    first, second, result = _ROLES[conv.direction]
    if weights:
        strides = ["cute::get<0>(stride) = problem.stride_C[0];"]
        strides += [
            f"cute::get<1, {i}>(stride) = problem.stride_C[{conv.rank + 1 - i}];" for i in range(1, conv.rank + 1)
        ]
    else:
        strides = [f"cute::get<0, {i}>(stride) = problem.stride_C[{conv.rank - i}];" for i in range(conv.rank + 1)]
    source = f"c.p_{tree.source}" if tree.source else "nullptr"
    thread = (
        "a.epilogue.thread.alpha = float(c.alpha);\n  a.epilogue.thread.beta = 0.0f;"
        if weights
        else f"a.epilogue.thread = {tree.arguments};"
    )
    body = "\n  ".join(strides)
    return f"""\
inline typename Conv::Arguments arguments(Call const& c) {{
  Problem const problem(cutlass::conv::Mode::kCrossCorrelation, {{{activation}}}, {{{weight}}},
                        {{{padding}}}, {{{padding}}}, {{{stride}}}, {{{dilation}}}, 1);
  typename Conv::ConvKernel::StrideD stride{{}};
  {body}
  typename Conv::Arguments a{{
      problem, {{c.p_{first}, c.p_{second}}}, {{{{}}, {source}, stride, c.p_{result}, stride}}}};
  {thread}
  return a;
}}"""


def _strides(conv: ir.Conv) -> str:
    return " || ".join(f"c.n_stride_{axis} != 1" for axis in "dhw"[3 - conv.rank :])


_UNIT_STRIDE = "  if ({}) return int(cutlass::Status::kErrorInvalidProblem);  // SM90: stride 1 only\n"

_FUNCTIONS = """\
inline size_t workspace_bytes(Call const& c) { return Conv::get_workspace_size(arguments(c)); }
inline int can_implement(Call const& c) {
CHECK  return int(Conv::can_implement(arguments(c)));
}
inline int launch(Call const& c, void* workspace, cudaStream_t stream) {
CHECK  auto const a = arguments(c);
  Conv conv;
  auto status = Conv::can_implement(a);
  if (status == cutlass::Status::kSuccess) status = conv.initialize(a, workspace, stream);
  if (status == cutlass::Status::kSuccess) status = conv.run(stream);
  return int(status);
}"""
