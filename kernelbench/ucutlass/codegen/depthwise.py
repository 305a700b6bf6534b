"""Depthwise convolutions of one or two dimensions, for every architecture: a direct kernel, no implicit GEMM.

With one input channel for each output channel there is nothing for a tensor core to do, and memory decides. A thread
computes neighbouring channels of one pixel, so that reads and writes are vectors; taps come from the L1 cache.
"""

from __future__ import annotations

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.codegen.call import KernelCode, call_struct, operand, scalar
from kernelbench.ucutlass.codegen.elements import cpp
from kernelbench.ucutlass.codegen.epilogue.chain import Chain, Leaf, chain
from kernelbench.ucutlass.codegen.unsupported import Unsupported
from kernelbench.ucutlass.ir import Extent

_INCLUDES = ("cutlass/cutlass.h", "cutlass/array.h", "cutlass/numeric_types.h", "cutlass/numeric_conversion.h")
THREADS = 128  # of a block: four warps, so that small images fill the GPU too


def generate(kernel: ir.Kernel) -> KernelCode:
    """Return the code of a depthwise convolution; raises Unsupported."""
    epilogue_chain = chain(kernel)
    if any(leaf.extent is Extent.COLUMN for leaf in epilogue_chain.leaves):
        raise Unsupported("rows of a convolution's output are pixels, which have no vector of their own",
                          "use per_channel_scale() or row_broadcast(...)")  # fmt: skip
    lines = [
        epilogue_chain.definitions(),
        call_struct(kernel),
        f"using ElementIn = {cpp(kernel.dtypes.input)};",
        f"using ElementD = {cpp(kernel.dtypes.output)};",
        f"constexpr int EACH = {kernel.alignment.a}, THREADS = {THREADS};  // channels of a thread; threads of a block",
        _kernel(kernel, epilogue_chain),
        _FUNCTIONS.replace("OUTPUTS", "c.n_N * c.out_Q()" + ("" if kernel.operation.rank == 1 else " * c.out_P()")),
    ]
    return KernelCode(_INCLUDES, "\n".join(lines))


def _kernel(kernel: ir.Kernel, epilogue_chain: Chain) -> str:
    conv, compute = kernel.operation, epilogue_chain.type_name
    height, width = (1, conv.kernel[0]) if conv.rank == 1 else conv.kernel
    rows = {name: "1" if conv.rank == 1 else value for name, value in _ROWS.items()}
    if conv.rank == 1:
        rows["padding"] = "0"
    return f"""\
__global__ void __launch_bounds__(THREADS) ucutlass_depthwise(Call const c) {{
  int const height = int({rows["in"]}), width = int(c.n_W), out_height = int({rows["out"]}), out_width = int(c.out_Q());
  int const channels = int(c.n_C), groups = channels / EACH;
  int64_t const place = int64_t(blockIdx.x) * THREADS + threadIdx.x;
  if (place >= c.n_N * out_height * out_width * groups) return;
  int const channel = int(place % groups) * EACH;
  int64_t const pixel = place / groups;
  int const q = int(pixel % out_width), p = int(pixel / out_width % out_height);
  int const n = int(pixel / out_width / out_height);
  {compute} sums[EACH] = {{}};
  for (int r = 0; r < {height}; ++r) {{
    int const h = p * int({rows["stride"]}) - int({rows["padding"]}) + r * int({rows["dilation"]});
    if (h < 0 || h >= height) continue;
    CUTLASS_PRAGMA_UNROLL
    for (int s = 0; s < {width}; ++s) {{
      int const w = q * int(c.n_stride_w) - int(c.n_padding_w) + s * int(c.n_dilation_w);
      if (w < 0 || w >= width) continue;
      int64_t const at = ((int64_t(n) * height + h) * width + w) * channels + channel;
      auto const values = *reinterpret_cast<cutlass::AlignedArray<ElementIn, EACH> const*>(c.p_input + at);
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < EACH; ++i) {{
        sums[i] += {compute}(values[i]) * {compute}(c.p_filter[(channel + i) * {height * width} + r * {width} + s]);
      }}
    }}
  }}
  CUTLASS_PRAGMA_UNROLL
  for (int i = 0; i < EACH; ++i) {{
    int64_t const at = pixel * channels + channel + i;
    {compute} x = sums[i];
{_epilogue(kernel, epilogue_chain)}
    c.p_output[at] = cutlass::NumericConverter<ElementD, {compute}>{{}}(x);
  }}
}}"""


_ROWS = {
    "in": "c.n_H",
    "out": "c.out_P()",
    "stride": "c.n_stride_h",
    "padding": "c.n_padding_h",
    "dilation": "c.n_dilation_h",
}


def _epilogue(kernel: ir.Kernel, epilogue_chain: Chain) -> str:
    lines = []
    for place, part in enumerate(epilogue_chain.parts):
        if part.statements:
            values = "".join(f", {_value(leaf, epilogue_chain.type_name)}" for leaf in part.leaves)
            lines.append(f"    x = part{place}(x{values});")
        if part.store:
            stored = cpp(operand(kernel, part.store).dtype)
            lines.append(f"    c.p_{part.store}[at] = "
                         f"cutlass::NumericConverter<{stored}, {epilogue_chain.type_name}>{{}}(x);")  # fmt: skip
    return "\n".join(lines)


def _value(leaf: Leaf, compute: str) -> str:
    if leaf.extent is Extent.SCALAR:
        return scalar(leaf.name)
    return f"{compute}(c.p_{leaf.name}[{'at' if leaf.extent is Extent.MATRIX else 'channel + i'}])"


_FUNCTIONS = """\
inline size_t workspace_bytes(Call const&) { return 0; }
inline int can_implement(Call const& c) {
  return int(c.n_C == c.n_K && c.n_C % EACH == 0 ? cutlass::Status::kSuccess : cutlass::Status::kErrorInvalidProblem);
}
inline int launch(Call const& c, void*, cudaStream_t stream) {
  if (int const status = can_implement(c)) return status;
  int64_t const work = OUTPUTS * c.n_C / EACH;
  ucutlass_depthwise<<<unsigned((work + THREADS - 1) / THREADS), THREADS, 0, stream>>>(c);
  auto const error = cudaGetLastError();
  return error ? CUDA_ERROR + int(error) : 0;
}"""
