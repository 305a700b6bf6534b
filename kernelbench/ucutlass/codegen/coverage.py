"""Coverage by architecture, for the guide: each row names the programs of the gallery that show it.

``runs`` was compiled by nvcc, holds the instructions of its schedule and was right on an H100, as
results/h100/ucutlass/ucutlass.json records. ``builds`` was compiled. ``refused`` ends with the reason before a compiler
starts.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Coverage:
    """One row. ``programs`` are of the gallery; none for what is refused."""

    what: str
    archs: str
    state: str  # runs, builds or refused
    note: str = ""
    programs: tuple[str, ...] = ()


SM80, SM90, BOTH = "SM80-89", "SM90a", "SM80-89, SM90a"

ROWS: tuple[Coverage, ...] = (
    Coverage("GEMM FP16, BF16", BOTH, "runs", "every layout",
             ("linear_gelu", "column_major_output", "sm80_linear_relu")),
    Coverage("GEMM FP32 as TF32", SM90, "runs", "A=RowMajor, B=ColumnMajor; others by transpose", ("tf32_linear",)),
    Coverage("ColumnMajor C", SM80, "builds", "the product of the transposes", ("sm80_column_major",)),
    Coverage("GEMM TF32", SM80, "runs", "every layout", ("sm80_visitor_tree",)),
    Coverage("GEMM FP32 on CUDA cores", SM80, "runs", "", ("sm80_fp32",)),
    Coverage("GEMM FP64", "SM80", "runs", "no wgmma for FP64", ("sm80_fp64",)),
    Coverage("GEMM INT8", BOTH, "runs", "A=RowMajor, B=ColumnMajor", ("int8_dequantised", "sm80_int8")),
    Coverage("GEMM FP8", SM90, "runs", "A=RowMajor, B=ColumnMajor", ("fp8_row_and_column_scales",)),
    Coverage("operand swap", SM90, "builds", "M == N, checked when called", ("tf32_operand_swap",)),
    Coverage("batched GEMM", BOTH, "runs", "", ("batched_scores", "sm80_fp32")),
    Coverage("grouped GEMM", SM90, "runs", "epilogue reads vectors of N elements", ("grouped_experts",)),
    Coverage("grouped GEMM", SM80, "refused", "not generated"),
    Coverage("schedules tma, tma_cooperative, tma_pingpong", SM90, "runs", "",
             ("figure1", "linear_gelu", "linear_silu_pingpong")),
    Coverage("schedules cp_async, cp_async_cooperative", SM90, "runs", "rows too narrow for TMA",
             ("unaligned_cp_async",)),
    Coverage("epilogue=no_smem", SM90, "builds", "epilogue reads no tensor; any N", ("odd_vocabulary",)),
    Coverage("stream-K", BOTH, "runs", "before SM90: at most one tensor read", ("stream_k", "sm80_stream_k")),
    Coverage("split-K", BOTH, "runs", "before SM90: no tensor read",
             ("split_k", "sm80_split_k", "sm80_split_k_parallel")),
    Coverage("activations, scale, clip", BOTH, "runs", "one functor for the whole chain",
             ("linear_gelu", "folded_layer_norm", "sm80_stream_k")),
    Coverage("custom", SM90, "runs", "", ("folded_layer_norm", "swiglu_gate")),
    Coverage("custom", SM80, "refused", "the published language has it on SM90a"),
    Coverage("bias and other vectors", BOTH, "runs", "", ("linear_gelu", "column_major_output", "sm80_visitor_tree")),
    Coverage("aux_load, C", BOTH, "runs", "", ("residual", "folded_layer_norm", "swiglu_gate")),
    Coverage("aux_store", BOTH, "runs", "GEMM and depthwise only", ("store_preactivation", "sm80_visitor_tree")),
    Coverage("conv1d, conv2d, conv3d fprop", BOTH, "runs", "SM90a: one schedule, channels in multiples of 8",
             ("conv1d_audio", "conv2d_bias_relu", "conv3d_video", "sm80_conv2d_few_channels")),
    Coverage("dgrad", BOTH, "runs", "SM90a: stride 1", ("conv2d_dgrad", "sm80_conv2d_dgrad")),
    Coverage("wgrad", BOTH, "runs", "SM90a: no epilogue", ("conv2d_wgrad", "sm80_conv3d_wgrad")),
    Coverage("depthwise convolution", BOTH, "runs", "a direct kernel, not one of CUTLASS",
             ("depthwise_conv1d", "depthwise_conv2d")),
    Coverage("grouped convolution 1d, 2d", SM80, "runs", "optimized: K / groups a multiple of tile n",
             ("sm80_group_conv2d",)),
    Coverage("grouped convolution", SM90, "refused", "CUTLASS has none"),
    Coverage("grouped convolution 3d", SM80, "refused", "CUTLASS has none"),
    Coverage("pipeline with transposes and casts", BOTH, "runs", "", ("conv2d_nchw", "fp32_through_bf16")),
    Coverage("pipeline of several kernels", BOTH, "runs", "gemm() only", ("two_layer_mlp",)),
    Coverage("everything", "SM70", "refused", "nvcc 13 builds for 7.5 and later"),
    Coverage("everything", "SM100", "refused", "another instruction, tcgen05"),
)  # fmt: skip
