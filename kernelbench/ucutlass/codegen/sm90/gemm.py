"""GEMM on SM90: one matrix, or a batch. TMA or cp.async, wgmma, and a visitor tree.

With operand swap the kernel computes the transpose of D as the product of the transposes of B and A. Both
interpretations are of the same memory, so nothing is moved.
"""

from __future__ import annotations

from kernelbench.ucutlass import ir, resources
from kernelbench.ucutlass.codegen.call import KernelCode, call_struct, extents_of
from kernelbench.ucutlass.codegen.elements import cpp
from kernelbench.ucutlass.codegen.epilogue.chain import Chain, chain
from kernelbench.ucutlass.codegen.sm90 import epilogue
from kernelbench.ucutlass.codegen.unsupported import Unsupported
from kernelbench.ucutlass.ir import (
    EpilogueSchedule,
    Extent,
    GemmForm,
    KernelSchedule,
    Matrix,
    RasterOrder,
    TileScheduler,
)

INCLUDES = (
    "cutlass/cutlass.h",
    "cute/tensor.hpp",
    "cutlass/gemm/device/gemm_universal_adapter.h",
    "cutlass/gemm/kernel/gemm_universal.hpp",
    "cutlass/gemm/collective/collective_builder.hpp",
    "cutlass/epilogue/collective/collective_builder.hpp",
    "cutlass/epilogue/fusion/sm90_callbacks_tma_warpspecialized.hpp",
    "cutlass/util/packed_stride.hpp",
)
_GEMM, _EPILOGUE = "cutlass::gemm::", "cutlass::epilogue::"
SCHEDULES = {
    KernelSchedule.TMA: "KernelTmaWarpSpecialized",
    KernelSchedule.TMA_COOPERATIVE: "KernelTmaWarpSpecializedCooperative",
    KernelSchedule.TMA_PINGPONG: "KernelTmaWarpSpecializedPingpong",
    KernelSchedule.CP_ASYNC: "KernelCpAsyncWarpSpecialized",
    KernelSchedule.CP_ASYNC_COOPERATIVE: "KernelCpAsyncWarpSpecializedCooperative",
}
_BLOCK_BYTES = 227 << 10  # of shared memory, cutlass::gemm::collective::detail::sm90_smem_capacity_bytes
_BARRIER_BYTES = 128  # more than the barriers of one stage take
_RASTERS = {RasterOrder.HEURISTIC: "Heuristic", RasterOrder.ALONG_M: "AlongM", RasterOrder.ALONG_N: "AlongN"}
_OTHER = {Matrix.ROW_MAJOR: Matrix.COLUMN_MAJOR, Matrix.COLUMN_MAJOR: Matrix.ROW_MAJOR}


def generate(kernel: ir.Kernel, namespace: str) -> KernelCode:
    """Return the code of a GEMM inside ``namespace``."""
    epilogue_chain = chain(kernel)
    swapped = bool(kernel.operand_swap)
    layouts = _layouts(kernel, swapped)
    smem = schedule_of(kernel)[1] is not EpilogueSchedule.NO_SMEM
    if smem:
        tree = epilogue.tree(kernel, epilogue_chain, rows_last=swapped)
    else:
        _check_scalars(epilogue_chain)
        tree = epilogue.without_shared_memory(epilogue_chain)
    lines = [
        epilogue_chain.definitions(),
        _call(kernel, swapped),
        tile_types(kernel),
        element_types(kernel, layouts, tree.source),
        tree.definitions,
        "CLOSE_NAMESPACE",
        epilogue.traits(namespace, kernel, epilogue_chain) if smem else "",
        "OPEN_NAMESPACE",
        collective_epilogue("Tree") if smem else "",
        collective_main(kernel),
        _device(kernel),
        _arguments(kernel, tree, swapped),
        _functions(kernel, swapped),
    ]
    return KernelCode(INCLUDES, "\n".join(line for line in lines if line))


def schedule_of(kernel: ir.Kernel) -> tuple[KernelSchedule, EpilogueSchedule]:
    """Return the schedules of main loop and epilogue; ``auto`` is cooperative where the tile has 128 rows."""
    scheduler = kernel.scheduler or ir.Scheduler()
    main = scheduler.kernel
    if main in (None, KernelSchedule.AUTO):
        main = KernelSchedule.TMA_COOPERATIVE if kernel.cta_tile.m >= 128 else KernelSchedule.TMA
    after = scheduler.epilogue
    if after in (None, EpilogueSchedule.AUTO):
        after = EpilogueSchedule.TMA_COOPERATIVE if main.is_cooperative else EpilogueSchedule.TMA
    return main, after


def tile_types(kernel: ir.Kernel) -> str:
    """Return tile, cluster and schedules as C++ types."""
    tile, cluster = kernel.cta_tile, kernel.cluster or ir.Cluster(1, 1, 1)
    main, after = schedule_of(kernel)
    if kernel.operation.form is GemmForm.GROUPED:
        kind = "Cooperative" if main.is_cooperative else "Pingpong"
        main_type = f"KernelPtrArrayTmaWarpSpecialized{kind}"
        after_type = f"PtrArrayTmaWarpSpecialized{kind}"
    else:
        main_type = SCHEDULES[main]
        after_type = "TmaWarpSpecializedCooperative" if main.is_cooperative else "TmaWarpSpecialized"
        if after is EpilogueSchedule.NO_SMEM:
            after_type = "NoSmemWarpSpecialized"
    return "\n".join(
        [
            f"using CtaTile = cute::Shape<cute::_{tile.m}, cute::_{tile.n}, cute::_{tile.k}>;"
            if all(size & (size - 1) == 0 for size in (tile.m, tile.n, tile.k))
            else f"using CtaTile = cute::Shape<cute::Int<{tile.m}>, cute::Int<{tile.n}>, cute::Int<{tile.k}>>;",
            f"using Cluster = cute::Shape<cute::Int<{cluster.m}>, cute::Int<{cluster.n}>, cute::Int<{cluster.k}>>;",
            f"using MainSchedule = {_GEMM}{main_type};",
            f"using EpilogueSchedule = {_EPILOGUE}{after_type};",
        ]
    )


def _layouts(kernel: ir.Kernel, swapped: bool) -> tuple[Matrix, Matrix, Matrix]:
    layout = kernel.layout
    if swapped:
        return _OTHER[layout.b], _OTHER[layout.a], _OTHER[layout.c]
    return layout.a, layout.b, layout.c


def element_types(kernel: ir.Kernel, layouts: tuple[Matrix, Matrix, Matrix], source: str) -> str:
    """Return elements and layouts as C++ types; ``ElementC`` is void where the epilogue reads no source."""
    types, alignment = kernel.dtypes, kernel.alignment
    swapped = bool(kernel.operand_swap)
    align = (alignment.b, alignment.a) if swapped else (alignment.a, alignment.b)
    given, made = cpp(types.input), cpp(types.output)
    return "\n".join(
        [
            f"using ElementAB = {given};",
            f"using ElementAccumulator = {cpp(types.acc)};",
            f"using ElementC = {made if source else 'void'};",
            f"using ElementD = {made};",
            *(f"using Layout{name} = cutlass::layout::{layout};" for name, layout in zip("ABD", layouts)),
            f"constexpr int ALIGN_A = {align[0]}, ALIGN_B = {align[1]}, ALIGN_D = {alignment.c};",
        ]
    )


def _check_scalars(epilogue_chain: Chain) -> None:
    stores = any(part.store for part in epilogue_chain.parts)
    if stores or any(leaf.extent is not Extent.SCALAR for leaf in epilogue_chain.leaves):
        raise Unsupported("an epilogue without shared memory writes D alone and reads no tensor",
                          "write epilogue=auto")  # fmt: skip


def collective_epilogue(tree: str, layout_suffix: str = "") -> str:
    """Return the collective around a visitor tree; ``layout_suffix`` is ``*`` for pointer arrays."""
    return f"""\
using CollectiveEpilogue = typename {_EPILOGUE}collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, CtaTile, Cluster,
    {_EPILOGUE}collective::EpilogueTileAuto, ElementAccumulator, float,
    ElementC, LayoutD{layout_suffix}, ALIGN_D, ElementD, LayoutD{layout_suffix}, ALIGN_D, EpilogueSchedule,
    {tree}>::CollectiveOp;"""


def collective_main(kernel: ir.Kernel, layout_suffix: str = "") -> str:
    """Return the collective that multiplies; ``layout_suffix`` is ``*`` for pointer arrays."""
    return f"""\
using CollectiveMain = typename {_GEMM}collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, ElementAB, LayoutA{layout_suffix}, ALIGN_A,
    ElementAB, LayoutB{layout_suffix}, ALIGN_B, ElementAccumulator, CtaTile, Cluster,
    {_stages(kernel)}, MainSchedule>::CollectiveOp;"""


def _stages(kernel: ir.Kernel) -> str:
    """Return the number of stages as a type of CUTLASS.

    Where an operand of 32 bits does not lie along K, it goes through registers, and that builder takes only what shared
    memory it must leave: so much that the wanted number of stages remains.
    """
    if not kernel.stages:
        return f"{_GEMM}collective::StageCountAutoCarveout<int(sizeof(typename CollectiveEpilogue::SharedStorage))>"
    along_k = (kernel.layout.a, kernel.layout.b) == (Matrix.ROW_MAJOR, Matrix.COLUMN_MAJOR)
    if kernel.dtypes.input.bytes == 2 or along_k:
        return f"{_GEMM}collective::StageCount<{kernel.stages}>"
    stage = resources.stage_bytes(kernel) + _BARRIER_BYTES
    return f"{_GEMM}collective::StageCountAutoCarveout<{_BLOCK_BYTES - kernel.stages * stage}>"


def _device(kernel: ir.Kernel) -> str:
    scheduler = f"{_GEMM}StreamKScheduler" if uses_stream_k(kernel) else "void"
    return f"""\
// A name of its own: profilers then show whose kernel it is, and symbols stay short.
struct ucutlass_gemm : {_GEMM}kernel::GemmUniversal<
    cute::Shape<int, int, int, int>, CollectiveMain, CollectiveEpilogue, {scheduler}> {{}};
using Gemm = {_GEMM}device::GemmUniversalAdapter<ucutlass_gemm>;"""


def uses_stream_k(kernel: ir.Kernel) -> bool:
    """Return whether the stream-K scheduler runs, for its own sake or to split K."""
    scheduler = kernel.scheduler or ir.Scheduler()
    return scheduler.tile is TileScheduler.STREAM_K or splits_k(kernel)


def splits_k(kernel: ir.Kernel) -> bool:
    """Return whether several thread blocks share the K of one tile."""
    return bool(kernel.split_k and kernel.split_k.mode is not ir.SplitKMode.NONE and kernel.split_k.slices > 1)


def _call(kernel: ir.Kernel, swapped: bool) -> str:
    """Return ``Call`` with the extents of the product that the kernel computes: ``m()``, ``n()``, ``k()``, ``l()``."""
    rows, columns = ("N", "M") if swapped else ("M", "N")
    batch = "int(n_L)" if "L" in extents_of(kernel) else "1"
    methods = (
        f"  int m() const {{ return int(n_{rows}); }}\n  int n() const {{ return int(n_{columns}); }}\n"
        f"  int k() const {{ return int(n_K); }}\n  int l() const {{ return {batch}; }}\n}};"
    )
    return call_struct(kernel).removesuffix("};") + methods


def _arguments(kernel: ir.Kernel, tree: epilogue.Tree, swapped: bool) -> str:
    first, second = ("p_B", "p_A") if swapped else ("p_A", "p_B")
    source = f"c.p_{tree.source}" if tree.source else "nullptr"
    scheduler = kernel.scheduler or ir.Scheduler()
    lines = []
    if scheduler.raster and scheduler.raster is not RasterOrder.HEURISTIC:
        lines.append(f"  a.scheduler.raster_order = decltype(a.scheduler.raster_order)::{_RASTERS[scheduler.raster]};")
    if scheduler.max_swizzle:
        lines.append(f"  a.scheduler.max_swizzle_size = {scheduler.max_swizzle};")
    if uses_stream_k(kernel):
        lines += _stream_k(kernel)
    settings = "\n".join(lines)
    return f"""\
inline typename Gemm::Arguments arguments(Call const& c) {{
  using Kernel = typename Gemm::GemmKernel;
  auto const shape_a = cute::make_shape(c.m(), c.k(), c.l());
  auto const shape_b = cute::make_shape(c.n(), c.k(), c.l());
  auto const shape_d = cute::make_shape(c.m(), c.n(), c.l());
  typename Gemm::Arguments a{{
      cutlass::gemm::GemmUniversalMode::kGemm, {{c.m(), c.n(), c.k(), c.l()}},
      {{c.{first}, cutlass::make_cute_packed_stride(typename Kernel::StrideA{{}}, shape_a),
       c.{second}, cutlass::make_cute_packed_stride(typename Kernel::StrideB{{}}, shape_b)}},
      {{{{}}, {source}, cutlass::make_cute_packed_stride(typename Kernel::StrideC{{}}, shape_d),
       c.p_D, cutlass::make_cute_packed_stride(typename Kernel::StrideD{{}}, shape_d)}}}};
  a.epilogue.thread = {tree.arguments};
{settings}
  return a;
}}"""


def _stream_k(kernel: ir.Kernel) -> list[str]:
    mode = "cutlass::gemm::kernel::detail::PersistentTileSchedulerSm90StreamKParams::"
    if splits_k(kernel):
        slices = kernel.split_k.slices
        reduction = "Deterministic" if kernel.split_k.mode is ir.SplitKMode.SERIAL else "Nondeterministic"
        return [
            f"  a.scheduler.splits = {slices};",
            f"  a.scheduler.decomposition_mode = {mode}DecompositionMode::SplitK;",
            f"  a.scheduler.reduction_mode = {mode}ReductionMode::{reduction};",
        ]
    if kernel.scheduler.splits and kernel.scheduler.splits > 1:
        return [
            f"  a.scheduler.splits = {kernel.scheduler.splits};",
            f"  a.scheduler.decomposition_mode = {mode}DecompositionMode::SplitK;",
        ]
    return [f"  a.scheduler.decomposition_mode = {mode}DecompositionMode::StreamK;"]


def _functions(kernel: ir.Kernel, swapped: bool) -> str:
    square = (
        "  if (c.n_M != c.n_N) return int(cutlass::Status::kErrorInvalidProblem);  // operand swap needs M == N\n"
        if swapped
        else ""
    )
    return f"""\
inline size_t workspace_bytes(Call const& c) {{ return Gemm::get_workspace_size(arguments(c)); }}
inline int can_implement(Call const& c) {{
{square}  return int(Gemm::can_implement(arguments(c)));
}}
inline int launch(Call const& c, void* workspace, cudaStream_t stream) {{
{square}  auto const a = arguments(c);
  Gemm gemm;
  auto status = Gemm::can_implement(a);
  if (status == cutlass::Status::kSuccess) status = gemm.initialize(a, workspace, stream);
  if (status == cutlass::Status::kSuccess) status = gemm.run(stream);
  return int(status);
}}"""
