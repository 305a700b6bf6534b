"""Grouped GEMM on SM90: one launch for a product of each expert, whose rows lie one after the other in A and D.

A small kernel turns the offsets of the experts into the arrays of extents, pointers and strides that CUTLASS reads
on the device, so that the host never waits for the offsets.
"""

from __future__ import annotations

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.codegen.call import KernelCode, call_struct
from kernelbench.ucutlass.codegen.epilogue.chain import chain
from kernelbench.ucutlass.codegen.sm90 import epilogue, gemm
from kernelbench.ucutlass.codegen.unsupported import Unsupported
from kernelbench.ucutlass.ir import Extent, Matrix


def generate(kernel: ir.Kernel, namespace: str) -> KernelCode:
    """Return the code of a grouped GEMM; raises Unsupported."""
    epilogue_chain = chain(kernel)
    for leaf in epilogue_chain.leaves:
        if leaf.extent in (Extent.MATRIX, Extent.COLUMN):
            raise Unsupported(f"{leaf.name} has rows of its own for every expert, which no node of the tree can find",
                              "read vectors of N elements or scalars only")  # fmt: skip
    if any(part.store for part in epilogue_chain.parts):
        raise Unsupported("aux_store in a grouped GEMM needs a pointer for every expert", "remove it")
    if kernel.layout.a is not Matrix.ROW_MAJOR or kernel.layout.c is not Matrix.ROW_MAJOR:
        raise Unsupported("rows of an expert lie one after the other", "use A=RowMajor and C=RowMajor")
    tree = epilogue.tree(kernel, epilogue_chain)
    lines = [
        epilogue_chain.definitions(),
        call_struct(kernel).removesuffix("};")
        + "  int m() const { return int(n_M); }\n  int n() const { return int(n_N); }\n"
        "  int l() const { return 1; }\n};",
        gemm.tile_types(kernel),
        gemm.element_types(kernel, (kernel.layout.a, kernel.layout.b, kernel.layout.c), tree.source),
        tree.definitions,
        "CLOSE_NAMESPACE",
        epilogue.traits(namespace, kernel, epilogue_chain),
        "OPEN_NAMESPACE",
        gemm.collective_epilogue("Tree", "*"),
        gemm.collective_main(kernel, "*"),
        _DEVICE.replace("THREAD", tree.arguments),
    ]
    return KernelCode((*gemm.INCLUDES, "cutlass/gemm/group_array_problem_shape.hpp"), "\n".join(filter(None, lines)))


_DEVICE = """\
using Shape = cute::Shape<int, int, int>;
struct ucutlass_grouped_gemm : cutlass::gemm::kernel::GemmUniversal<
    cutlass::gemm::GroupProblemShape<Shape>, CollectiveMain, CollectiveEpilogue, void> {};
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<ucutlass_grouped_gemm>;
using StrideA = typename Gemm::GemmKernel::InternalStrideA;
using StrideB = typename Gemm::GemmKernel::InternalStrideB;
using StrideD = typename Gemm::GemmKernel::InternalStrideD;

struct Arrays {
  Shape* shapes;
  ElementAB const** a;
  ElementAB const** b;
  ElementD** d;
  StrideA* stride_a;
  StrideB* stride_b;
  StrideD* stride_d;
};

template <class T> T* take(char*& free_, int64_t count) {
  T* const taken = reinterpret_cast<T*>(free_);
  free_ += (count * sizeof(T) + 255) / 256 * 256;
  return taken;
}

inline Arrays arrays_in(char*& free_, int64_t experts) {
  Arrays arrays;
  arrays.shapes = take<Shape>(free_, experts);
  arrays.a = take<ElementAB const*>(free_, experts);
  arrays.b = take<ElementAB const*>(free_, experts);
  arrays.d = take<ElementD*>(free_, experts);
  arrays.stride_a = take<StrideA>(free_, experts);
  arrays.stride_b = take<StrideB>(free_, experts);
  arrays.stride_d = take<StrideD>(free_, experts);
  return arrays;
}

inline __global__ void ucutlass_experts(Arrays arrays, int32_t const* offsets, ElementAB const* a, ElementAB const* b,
                                        ElementD* d, int n, int k, int experts) {
  int const expert = blockIdx.x * blockDim.x + threadIdx.x;
  if (expert >= experts) return;
  int const first = offsets[expert], rows = offsets[expert + 1] - first;
  arrays.shapes[expert] = cute::make_shape(rows, n, k);
  arrays.a[expert] = a + int64_t(first) * k;
  arrays.b[expert] = b + int64_t(expert) * n * k;
  arrays.d[expert] = d + int64_t(first) * n;
  arrays.stride_a[expert] = cutlass::make_cute_packed_stride(StrideA{}, cute::make_shape(rows, k, 1));
  arrays.stride_b[expert] = cutlass::make_cute_packed_stride(StrideB{}, cute::make_shape(n, k, 1));
  arrays.stride_d[expert] = cutlass::make_cute_packed_stride(StrideD{}, cute::make_shape(rows, n, 1));
}

inline typename Gemm::Arguments arguments(Call const& c, Arrays const& arrays) {
  cutlass::KernelHardwareInfo hardware;
  cudaGetDevice(&hardware.device_id);
  hardware.sm_count = cutlass::KernelHardwareInfo::query_device_multiprocessor_count(hardware.device_id);
  typename Gemm::Arguments a{
      cutlass::gemm::GemmUniversalMode::kGrouped, {int(c.n_E), arrays.shapes, nullptr},
      {arrays.a, arrays.stride_a, arrays.b, arrays.stride_b},
      {{}, nullptr, arrays.stride_d, arrays.d, arrays.stride_d}, hardware};
  a.epilogue.thread = THREAD;
  return a;
}

inline size_t workspace_bytes(Call const& c) {
  char* free_ = nullptr;
  Arrays const arrays = arrays_in(free_, c.n_E);
  return size_t(free_ - static_cast<char*>(nullptr)) + Gemm::get_workspace_size(arguments(c, arrays));
}
inline int can_implement(Call const& c) {
  char* free_ = nullptr;
  return int(Gemm::can_implement(arguments(c, arrays_in(free_, c.n_E))));
}
inline int launch(Call const& c, void* workspace, cudaStream_t stream) {
  auto* free_ = static_cast<char*>(workspace);
  Arrays const arrays = arrays_in(free_, c.n_E);
  int const threads = 128;
  ucutlass_experts<<<unsigned((c.n_E + threads - 1) / threads), threads, 0, stream>>>(
      arrays, c.p_offsets, c.p_A, c.p_B, c.p_D, int(c.n_N), int(c.n_K), int(c.n_E));
  auto const a = arguments(c, arrays);
  Gemm gemm;
  auto status = Gemm::can_implement(a);
  if (status == cutlass::Status::kSuccess) status = gemm.initialize(a, free_, stream);
  if (status == cutlass::Status::kSuccess) status = gemm.run(stream);
  return int(status);
}"""
