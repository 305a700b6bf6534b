"""Every rule: a program that breaks it and no other, a message with its name and a fix, and the program repaired."""

import ast
import re
from pathlib import Path

import pytest
from ucutlass_programs import CONV, CONV1D, CONV80, CONV90, COOPERATIVE, GEMM80, GEMM90, LAYOUT, SM80, SM90, TYPES

import kernelbench.ucutlass
from kernelbench.ucutlass import ProgramError, check
from kernelbench.ucutlass import findings as all_findings
from kernelbench.ucutlass.operands import Reads
from kernelbench.ucutlass.rules import RULES

FP32 = ".with_dtype(input=fp32, acc=fp32, output=fp32)"
FP8 = ".with_dtype(input=e4m3, acc=fp32, output=fp16)"
INT8 = ".with_dtype(input=s8, acc=s32, output=s8)"
ROW = ".with_layout(A=RowMajor, B=RowMajor, C=RowMajor)"
TO_NLC, TO_NCL = "transpose(input, NCL, NLC)", "transpose(output, NLC, NCL)"


def tile(m, n=128, k=64):
    return f".with_threadblockshape(m={m}, n={n}, k={k})"


def schedule(**words):
    return f".with_scheduler({', '.join(f'{name}={word}' for name, word in words.items())})"


# rule, program that breaks it, part of the fix, repaired program
CASES = [
    ("required-dtype", f"gemm(){LAYOUT}.with_arch(sm_90a)", "add .with_dtype(", GEMM90),
    ("required-arch", f"gemm(){TYPES}{LAYOUT}", "add .with_arch(sm_90a)", GEMM90),
    ("required-layout", f"gemm(){TYPES}.with_arch(sm_90a)", "add .with_layout(A=", GEMM90),
    ("arch-sm90a", GEMM90.replace("90a", "90"), "write .with_arch(sm_90a)", GEMM90),
    ("arch-generated", GEMM90.replace("90a", "100"), "write .with_arch(sm_90a)", GEMM90),
    ("arch-clause", f"{GEMM90}.with_swizzle(pattern=Identity1)", "use .with_scheduler(", GEMM90),
    ("arch-clause", f"{CONV90}.with_iterator(optimized)", "remove it", CONV90),
    ("arch-clause", f"{GEMM90}.with_split_k(mode=serial, slices=2)", "tile=stream_k",
     COOPERATIVE.replace("kernel=", "tile=stream_k, splits=2, kernel=")),
    ("arch-clause", f"{GEMM80}.with_cluster(m=2, n=1, k=1)", "or use .with_arch(sm_90a)",
     f"{GEMM90}.with_cluster(m=2, n=1, k=1)"),
    ("arch-clause", f"{GEMM80}{schedule(kernel='tma')}", "use .with_swizzle(", GEMM80),
    ("arch-clause", f"{GEMM80}.with_operand_swap(false)", "remove it", GEMM80),
    ("tile-clause", f"{GEMM90}.with_tile(m=128, n=128, k=64)", "write .with_threadblockshape(m=128, n=128, k=64)",
     GEMM90 + tile(128)),
    ("tile-clause", f"{GEMM80}{tile(128, k=32)}", "write .with_tile(m=128, n=128, k=32)",
     f"{GEMM80}.with_tile(m=128, n=128, k=32)"),
    ("dtype-arch", GEMM80.replace("fp16", "bf16").replace("80", "70"), "or .with_arch(sm_80)",
     GEMM80.replace("fp16", "bf16")),
    ("dtype-arch", f"gemm(){FP8}{LAYOUT}.with_arch(sm_80)", "or .with_arch(sm_90a)",
     f"gemm(){FP8}{LAYOUT}.with_arch(sm_90a)"),
    ("dtype-arch", f"gemm(){FP32.replace('fp32', 'fp64')}{LAYOUT}.with_arch(sm_90a)", "use .with_arch(sm_80)",
     f"gemm(){FP32.replace('fp32', 'fp64')}{LAYOUT}.with_arch(sm_80)"),
    ("arch-generated", GEMM80.replace("80", "70"), "or sm_80, sm_86 or sm_89", GEMM80),
    ("operation-arch", f"grouped_gemm(expert_count=4){SM80}", "batched_gemm()",
     f"grouped_gemm(expert_count=4){SM90}"),
    ("operation-arch", f"group_conv3d(kernel_d=1, kernel_h=3, kernel_w=3, groups=2){TYPES}.with_arch(sm_80)",
     "use one conv3d_fprop(...) a group",
     f"conv3d_fprop(kernel_d=1, kernel_h=3, kernel_w=3){TYPES}.with_arch(sm_80)"),
    ("operation-arch", f"group_conv1d(kernel_w=3, groups=2){TYPES}.with_arch(sm_90a)", "use .with_arch(sm_80)",
     f"group_conv1d(kernel_w=3, groups=2){TYPES}.with_arch(sm_80)"),
    ("depthwise-plain", f"depthwise_conv1d(kernel_w=3){TYPES}.with_arch(sm_90a){tile(128)}", "remove this clause",
     f"depthwise_conv1d(kernel_w=3){TYPES}.with_arch(sm_90a) >> bias() >> gelu() >> aux_store(t)"),
    ("depthwise-plain", f"depthwise_conv2d(kernel_h=3, kernel_w=3){TYPES}.with_arch(sm_80).with_stages(2)",
     "remove this clause",
     f"depthwise_conv2d(kernel_h=3, kernel_w=3){TYPES}.with_arch(sm_80).with_iterator(fixed_stride_dilation)"),
    ("operation-arch", f"conv3d_wgrad(kernel_d=3, kernel_h=3, kernel_w=3){TYPES}.with_arch(sm_90a)",
     "use .with_arch(sm_80)", f"conv3d_wgrad(kernel_d=3, kernel_h=3, kernel_w=3){TYPES}.with_arch(sm_80)"),
    ("dtype-triple", GEMM90.replace("acc=fp32", "acc=bf16"), "use acc=fp32 or fp16", GEMM90),
    ("dtype-triple", GEMM90.replace("output=fp16", "output=int8"), "use output=fp16 or fp32", GEMM90),
    ("dtype-triple", GEMM80.replace("input=fp16", "input=int16"), "use input=", GEMM80),
    ("tma-alignment", f"{GEMM90}.with_alignment(A=4, B=8, C=8){schedule(kernel='tma')}", "write A=8",
     f"{GEMM90}.with_alignment(A=8, B=8, C=8){schedule(kernel='tma')}"),
    ("tma-alignment", f"{GEMM90}.with_alignment(A=8, B=8, C=4)", "write C=8",
     f"{GEMM90}.with_alignment(A=8, B=8, C=16)"),
    ("tma-alignment", f"gemm(){FP32}{LAYOUT}.with_arch(sm_90a).with_alignment(A=2, B=4, C=4){schedule(kernel='tma')}",
     "write A=4", f"gemm(){FP32}{LAYOUT}.with_arch(sm_90a).with_alignment(A=4, B=4, C=4)"),
    ("alignment-bytes", f"{GEMM80}.with_alignment(A=3, B=8, C=8)", "write A=1, 2, 4 or 8",
     f"{GEMM80}.with_alignment(A=2, B=8, C=8)"),
    ("alignment-bytes", f"{GEMM80}.with_alignment(A=1, B=8, C=8)", "or .with_stages(2)",
     f"{GEMM80}.with_alignment(A=1, B=8, C=8).with_stages(2)"),
    ("alignment-bytes", f"{GEMM90}.with_alignment(A=1, B=8, C=8){schedule(kernel='cp_async')}", "write A=2 or more",
     f"{GEMM90}.with_alignment(A=2, B=8, C=8){schedule(kernel='cp_async')}"),
    ("k-major", f"gemm(){FP32}{ROW}.with_arch(sm_90a)", "write B=ColumnMajor",
     f"gemm(){FP32}{LAYOUT}.with_arch(sm_90a)"),
    ("k-major", f"gemm(){FP32}{ROW}.with_arch(sm_90a)", ".with_operand_swap(true)",
     f"gemm(){FP32}{ROW}.with_arch(sm_90a).with_operand_swap(true)"),
    ("k-major", f"gemm(){FP32}{ROW}.with_arch(sm_90a)", "transpose(weight, NCL, NLC)",
     f"pipeline(transpose(weight, NCL, NLC), gemm(){FP32}{LAYOUT}.with_arch(sm_90a))"),
    ("k-major", f"gemm().with_dtype(input=s8, acc=s32, output=s32){ROW}.with_arch(sm_80)", "write B=ColumnMajor",
     f"gemm().with_dtype(input=s8, acc=s32, output=s32){LAYOUT}.with_arch(sm_80)"),
    ("k-major", f"gemm(){FP8}{LAYOUT.replace('A=RowMajor', 'A=ColumnMajor')}.with_arch(sm_90a)", "write A=RowMajor",
     f"gemm(){FP8}{LAYOUT}.with_arch(sm_90a)"),
    ("cluster-divides-m", f"{GEMM90}{tile(129)}.with_cluster(m=2, n=1, k=1)", "write m=256",
     f"{GEMM90}{tile(256)}.with_cluster(m=2, n=1, k=1)"),
    ("cluster-size", f"{GEMM90}.with_cluster(m=1, n=3, k=1)", "write n=1, 2, 4 or 8",
     f"{GEMM90}.with_cluster(m=1, n=4, k=1)"),
    ("cluster-size", f"{GEMM90}.with_cluster(m=1, n=1, k=2)", "write k=1", f"{GEMM90}.with_cluster(m=1, n=1, k=1)"),
    ("cluster-size", f"{GEMM90}.with_cluster(m=4, n=4, k=1)", "write .with_cluster(m=2, n=1, k=1)",
     f"{GEMM90}.with_cluster(m=2, n=1, k=1)"),
    ("cooperative-m", f"{COOPERATIVE}{tile(128)}.with_cluster(m=2, n=1, k=1)", "write m=256",
     f"{COOPERATIVE}{tile(256)}.with_cluster(m=2, n=1, k=1)"),
    ("cooperative-m", f"{COOPERATIVE}{tile(192)}", "kernel=tma_pingpong",
     f"{GEMM90}{schedule(kernel='tma_pingpong')}{tile(192)}.with_stages(2)"),
    ("wgmma-tile", f"{GEMM90}{tile(96)}", "write m=128", f"{GEMM90}{tile(128)}"),
    ("wgmma-tile", f"{GEMM90}{tile(128, n=24)}", "write n=32", f"{GEMM90}{tile(128, n=32)}"),
    ("wgmma-tile", f"{GEMM90}{tile(64, n=288)}", "write n=256", f"{GEMM90}{tile(64, n=256)}"),
    ("wgmma-tile", f"{GEMM90}{tile(128, k=8)}", "write k=64", f"{GEMM90}{tile(128, k=16)}"),
    ("registers", f"{COOPERATIVE}{tile(256, n=256)}", "smaller tile", f"{COOPERATIVE}{tile(128, n=256)}"),
    ("registers", f"{GEMM90}{schedule(kernel='tma')}{tile(128, n=256)}", "or kernel=tma_cooperative",
     f"{COOPERATIVE}{tile(128, n=256)}"),
    ("registers", f"{GEMM80}.with_tile(m=256, n=256, k=32)", "smaller tile",
     f"{GEMM80}.with_tile(m=256, n=128, k=32)"),
    ("cooperative-stages", f"{GEMM90}{schedule(kernel='tma_cooperative')}", "add .with_stages(2)", COOPERATIVE),
    ("stages-fit", f"{GEMM90}{tile(128)}.with_stages(9)", "write .with_stages(6)",
     f"{GEMM90}{tile(128)}.with_stages(6)"),
    ("stages-fit", f"gemm(){FP32}{LAYOUT}.with_arch(sm_90a){tile(256)}{schedule(kernel='tma_cooperative')}"
     ".with_stages(2)", "use a smaller tile",
     f"gemm(){FP32}{LAYOUT}.with_arch(sm_90a){tile(256, k=32)}{schedule(kernel='tma_cooperative')}.with_stages(2)"),
    ("stages-fit", f"{GEMM80.replace('80', '86')}.with_stages(7)", "write .with_stages(6)",
     f"{GEMM80.replace('80', '86')}.with_stages(6)"),
    ("stages-least", f"{GEMM90}.with_stages(1)", "write .with_stages(2)", f"{GEMM90}.with_stages(2)"),
    ("cooperative-epilogue", COOPERATIVE.replace("kernel=tma_cooperative", "kernel=tma_cooperative, epilogue=tma"),
     "write epilogue=tma_cooperative, or epilogue=auto",
     COOPERATIVE.replace("kernel=tma_cooperative", "kernel=tma_cooperative, epilogue=auto")),
    ("cooperative-epilogue", f"{GEMM90}{schedule(kernel='tma', epilogue='tma_cooperative')}", "write epilogue=tma",
     f"{GEMM90}{schedule(kernel='tma', epilogue='tma')}"),
    ("cooperative-epilogue", f"{GEMM90}{schedule(kernel='cp_async_cooperative', epilogue='tma')}",
     "epilogue=auto", f"{GEMM90}{schedule(kernel='cp_async_cooperative', epilogue='auto')}"),
    ("stream-k-cooperative", f"{GEMM90}{schedule(tile='stream_k', kernel='tma_pingpong')}",
     "write kernel=tma_cooperative", COOPERATIVE.replace("kernel=", "tile=stream_k, kernel=")),
    ("stream-k-cooperative", COOPERATIVE.replace("kernel=", "tile=stream_k, kernel=")
     .replace("gemm()", "grouped_gemm(expert_count=4)"), "write tile=persistent",
     COOPERATIVE.replace("kernel=", "tile=persistent, kernel=").replace("gemm()", "grouped_gemm(expert_count=4)")),
    ("persistent-schedule", f"{GEMM90}{schedule(tile='persistent', kernel='tma')}", "or tile=default",
     f"{GEMM90}{schedule(tile='persistent', kernel='tma_pingpong')}"),
    ("splits-stream-k", f"{GEMM90}{schedule(splits=4)}", "write tile=stream_k",
     COOPERATIVE.replace("kernel=", "tile=stream_k, splits=4, kernel=")),
    ("max-swizzle", f"{GEMM90}{schedule(max_swizzle=3)}", "write max_swizzle=1, 2, 4 or 8",
     f"{GEMM90}{schedule(max_swizzle=4)}"),
    ("raster-gemm", f"grouped_gemm(expert_count=4){SM90}{schedule(raster='along_m')}", "remove raster",
     f"{GEMM90}{schedule(raster='along_m')}"),
    ("raster-gemm", f"{CONV90}{schedule(max_swizzle=2)}", "remove raster", f"{GEMM90}{schedule(max_swizzle=2)}"),
    ("cp-async-cluster", f"{GEMM90}{schedule(kernel='cp_async')}.with_cluster(m=1, n=2, k=1)",
     "write .with_cluster(m=1, n=1, k=1)", f"{GEMM90}{schedule(kernel='cp_async')}"),
    ("grouped-schedule", f"grouped_gemm(expert_count=4){SM90}{schedule(kernel='tma')}", "or kernel=tma_pingpong",
     f"grouped_gemm(expert_count=4){SM90}{schedule(kernel='tma_pingpong')}"),
    ("grouped-schedule", f"grouped_gemm(expert_count=4){SM90}{schedule(kernel='tma_pingpong', epilogue='no_smem')}",
     "write epilogue=auto", f"grouped_gemm(expert_count=4){SM90}{schedule(kernel='tma_pingpong')}"),
    ("operand-swap", f"{GEMM90}.with_operand_swap(true)", "16-bit operands need no swap", GEMM90),
    ("operand-swap", f"batched_gemm(){FP32}{LAYOUT}.with_arch(sm_90a).with_operand_swap(true)", "it is for gemm()",
     f"gemm(){FP32}{LAYOUT}.with_arch(sm_90a).with_operand_swap(true)"),
    ("operand-swap", f"gemm(){FP32}{LAYOUT.replace('C=Row', 'C=Column')}.with_arch(sm_90a).with_operand_swap(true)",
     "write C=RowMajor", f"gemm(){FP32}{LAYOUT}.with_arch(sm_90a).with_operand_swap(true)"),
    ("conv-layout", CONV90 + ".with_layout(input=TensorNDHWC, filter=TensorNHWC, output=TensorNHWC)",
     "write .with_layout(input=TensorNHWC",
     CONV90 + ".with_layout(input=TensorNHWC, filter=TensorNHWC, output=TensorNHWC)"),
    ("conv-schedule", f"{CONV90}{schedule(kernel='tma_pingpong')}", "write kernel=tma",
     f"{CONV90}{schedule(kernel='tma', epilogue='tma')}"),
    ("conv-schedule", f"{CONV90}{schedule(tile='persistent', kernel='auto')}", "write tile=default", CONV90),
    ("conv-schedule", f"{CONV90}{schedule(epilogue='no_smem')}", "write epilogue=tma", CONV90),
    ("conv-dtype", f"{CONV}{FP8}.with_arch(sm_90a)", "write input=fp16", CONV90),
    *[("conv-dtype", f"{CONV.replace('fprop', direction)}{types}.with_arch(sm_90a)", "write input=fp16",
       CONV90.replace("fprop", direction))
      for direction in ("dgrad", "wgrad") for types in (INT8, FP32, FP32.replace("input=fp32", "input=tf32"))],
    ("conv-alignment", f"{CONV90}.with_alignment(A=4, B=8, C=8)", "write A=8", CONV90),
    ("conv-alignment", f"{CONV}{INT8}.with_arch(sm_90a).with_alignment(A=8, B=16, C=16)", "write A=16",
     f"{CONV}{INT8}.with_arch(sm_90a).with_alignment(A=16, B=16, C=16)"),
    ("wgrad-epilogue", CONV90.replace("fprop", "wgrad") + " >> relu()", "remove the epilogue",
     CONV90.replace("fprop", "wgrad")),
    ("group-count", f"group_conv1d(kernel_w=3, groups=1){TYPES}.with_arch(sm_80)", "write conv1d_fprop(...)",
     f"conv1d_fprop(kernel_w=3){TYPES}.with_arch(sm_80)"),
    ("tile-warps", f"{GEMM80}.with_tile(m=96, n=128, k=32)", "write m=64", f"{GEMM80}.with_tile(m=64, n=128, k=32)"),
    ("tile-warps", f"{GEMM80}.with_tile(m=128, n=128, k=8)", "write k=32", f"{GEMM80}.with_tile(m=128, n=128, k=32)"),
    ("tile-warps", f"gemm(){FP32}{LAYOUT}.with_arch(sm_80).with_tile(m=128, n=128, k=32)", "write k=8",
     f"gemm(){FP32}{LAYOUT}.with_arch(sm_80).with_tile(m=128, n=128, k=8)"),
    ("iterator-conv", f"{GEMM80}.with_iterator(optimized)", "remove .with_iterator", GEMM80),
    ("iterator-conv", f"{CONV80}.with_iterator(fixed_stride_dilation)", "write .with_iterator(optimized)",
     f"{CONV80}.with_iterator(optimized)"),
    ("iterator-conv", CONV80.replace("fprop", "dgrad") + ".with_iterator(few_channels)", "write optimized",
     f"{CONV80}.with_iterator(few_channels)"),
    ("split-k-slices", f"{GEMM80}.with_split_k(mode=none, slices=2)", "or mode=serial",
     f"{GEMM80}.with_split_k(mode=serial, slices=2)"),
    ("split-k-slices", f"{GEMM80}.with_split_k(mode=serial, slices=1)", "write slices=2",
     f"{GEMM80}.with_split_k(mode=none, slices=1)"),
    ("split-k-form", f"batched_gemm(){SM80}.with_split_k(mode=serial, slices=2)", "mode=none, slices=1",
     f"batched_gemm(){SM80}.with_split_k(mode=none, slices=1)"),
    ("split-k-form", f"{GEMM80}.with_split_k(mode=serial, slices=2).with_swizzle(pattern=StreamK)",
     "write pattern=Identity1", f"{GEMM80}.with_split_k(mode=serial, slices=2).with_swizzle(pattern=Identity1)"),
    ("split-k-epilogue", f"{GEMM80}.with_split_k(mode=serial, slices=2) >> bias()", "keep to activations",
     f"{GEMM80}.with_split_k(mode=parallel, slices=2) >> relu()"),
    ("split-k-epilogue", f"{CONV80}.with_split_k(mode=parallel, slices=2)", "write mode=serial",
     f"{CONV80}.with_split_k(mode=serial, slices=2)"),
    ("split-k-epilogue", f"gemm(){INT8}{LAYOUT}.with_arch(sm_80).with_split_k(mode=serial, slices=2)",
     "write mode=parallel, or output=int32",
     f"gemm(){INT8}{LAYOUT}.with_arch(sm_80).with_split_k(mode=parallel, slices=2)"),
    ("split-k-epilogue", f"{CONV}{INT8}.with_arch(sm_80).with_split_k(mode=serial, slices=2)",
     "write mode=none, slices=1, or output=int32",
     f"{CONV}{INT8.replace('output=s8', 'output=s32')}.with_arch(sm_80).with_split_k(mode=serial, slices=2)"),
    ("swizzle-form", f"batched_gemm(){SM80}.with_swizzle(pattern=StreamK)", "write pattern=Identity1",
     f"batched_gemm(){SM80}.with_swizzle(pattern=Identity1)"),
    ("swizzle-form", f"{GEMM80}.with_swizzle(pattern=StreamK) >> bias() >> aux_load(t)", "write pattern=Identity1",
     f"{GEMM80}.with_swizzle(pattern=StreamK) >> bias() >> relu()"),
    ("conv-epilogue", f"{CONV80} >> bias() >> per_channel_scale()", "keep one tensor, such as bias()",
     f"{CONV80} >> bias() >> gelu() >> scale(alpha=2)"),
    ("conv-epilogue", f"{CONV80} >> aux_store(t)", "keep one tensor", f"{CONV80} >> aux_load(t)"),
    ("conv-epilogue", f"{CONV}.with_dtype(input=s8, acc=s32, output=s8).with_arch(sm_80) >> bias()",
     "keep one tensor", f"{CONV}.with_dtype(input=s8, acc=s32, output=s8).with_arch(sm_80) >> relu()"),
    ("swizzle-form", f"{GEMM80}.with_swizzle(pattern=StreamK) >> per_row_scale()", "write pattern=Identity1",
     f"{GEMM80.replace('C=Row', 'C=Column')}.with_swizzle(pattern=StreamK) >> per_row_scale()"),
    ("split-k-epilogue", f"{GEMM80}.with_split_k(mode=serial, slices=2).with_scaling(alpha=1, beta=1)",
     "write mode=none", f"{GEMM80}.with_split_k(mode=serial, slices=2).with_scaling(alpha=2, beta=0)"),
    ("conv-epilogue", CONV80.replace("fprop", "wgrad") + " >> bias()", "has no bias",
     CONV80.replace("fprop", "wgrad") + " >> relu()"),
    ("conv-matrices", f"{CONV90} >> aux_store(t)", "remove it", f"{CONV90} >> aux_load(t)"),
    ("conv-matrices", f"{CONV90}.with_scaling(alpha=1, beta=1) >> aux_load(t)", "keep one of C",
     f"{CONV90}.with_scaling(alpha=1, beta=1) >> bias()"),
    ("conv-vector", f"pipeline({CONV80} >> bias(), transpose(output, NHWC, NCHW, fp16, fp32))",
     "leave the output's type", f"pipeline({CONV80} >> bias(), transpose(output, NHWC, NCHW))"),
    ("grouped-operands", f"grouped_gemm(expert_count=4){SM90} >> aux_load(t)", "keep to bias()",
     f"grouped_gemm(expert_count=4){SM90} >> bias() >> relu()"),
    ("grouped-operands", f"grouped_gemm(expert_count=4){SM90}.with_scaling(alpha=1, beta=1)", "write beta=0",
     f"grouped_gemm(expert_count=4){SM90}.with_scaling(alpha=2, beta=0)"),
    ("grouped-operands", f"grouped_gemm(expert_count=4){SM90.replace('C=Row', 'C=Column')}", "write A=RowMajor",
     f"grouped_gemm(expert_count=4){SM90}"),
    ("wgrad-epilogue", CONV90.replace("fprop", "wgrad") + ".with_scaling(alpha=1, beta=1)", "write beta=0",
     CONV90.replace("fprop", "wgrad") + ".with_scaling(alpha=2, beta=0)"),
    ("epilogue-once", f"{GEMM90} >> bias() >> bias()", "write row_broadcast(NAME)",
     f"{GEMM90} >> bias() >> row_broadcast(more)"),
    ("epilogue-length", GEMM90 + " >> relu()" * 17, "one custom(", GEMM90 + " >> relu()" * 16),
    ("operand-name", f"{GEMM90} >> aux_load(A)", "choose another", f"{GEMM90} >> aux_load(residual)"),
    ("operand-name", f"{GEMM90} >> aux_load(a__b)", "choose another", f"{GEMM90} >> aux_load(a_b)"),
    ("operand-name", f"{GEMM90} >> row_broadcast(v) >> column_broadcast(v)", "use two names",
     f"{GEMM90} >> row_broadcast(v) >> column_broadcast(w)"),
    ("operand-name", f"{GEMM90} >> aux_store(t) >> aux_store(t)", "use two names",
     f"{GEMM90} >> aux_store(t) >> aux_store(u)"),
    ("operand-unique", f"pipeline({GEMM90} >> row_broadcast(bias2), {GEMM90} >> bias())", "choose another name",
     f"pipeline({GEMM90} >> row_broadcast(bias3), {GEMM90} >> bias())"),
    ("operand-unique", f"{CONV90} >> row_broadcast(stride_h)", "choose another name",
     f"{CONV90} >> row_broadcast(strides_h)"),
    ("clip-order", f"{GEMM90} >> clip(min=6, max=0)", "write min=0, max=6", f"{GEMM90} >> clip(min=0, max=6)"),
    ("custom-arch", f"{GEMM80} >> custom('x')", "use .with_arch(sm_90a)", f"{GEMM90} >> custom('x')"),
    ("rows-of-conv", f"{CONV90} >> per_row_scale()", "per_channel_scale()", f"{CONV90} >> per_channel_scale()"),
    ("rows-of-conv", f"{CONV90} >> custom('x * s', inputs={{'s': 'column'}})", "row_broadcast(NAME)",
     f"{CONV90} >> custom('x * s', inputs={{'s': 'row'}})"),
    ("no-smem-epilogue", f"{GEMM90}{schedule(kernel='tma', epilogue='no_smem')} >> bias()", "write epilogue=auto",
     f"{GEMM90}{schedule(kernel='tma', epilogue='no_smem')} >> relu()"),
    ("pipeline-kernel", f"pipeline({TO_NLC})", "such as gemm()", f"pipeline({TO_NLC}, {CONV1D})"),
    ("pipeline-kernel", f"pipeline({', '.join([GEMM90] * 9)})", "write 1 to 8", f"pipeline({', '.join([GEMM90] * 8)})"),
    ("pipeline-arch", f"pipeline({GEMM90}, {GEMM80})", "write .with_arch(sm_90a)", f"pipeline({GEMM90}, {GEMM90})"),
    ("transpose-order", f"pipeline({CONV1D}, {TO_NLC})", "before the first kernel", f"pipeline({TO_NLC}, {CONV1D})"),
    ("transpose-order", f"pipeline({TO_NCL}, {CONV1D})", "move it to the end", f"pipeline({CONV1D}, {TO_NCL})"),
    ("transpose-once", f"pipeline({TO_NLC}, {TO_NLC}, {CONV1D})", "write one", f"pipeline({TO_NLC}, {CONV1D})"),
    ("transpose-axes", f"pipeline(transpose(input, NCHW, NLC), {CONV1D})", "NCL with NLC",
     f"pipeline({TO_NLC}, {CONV1D})"),
    ("transpose-dtypes", f"pipeline(transpose(input, NCL, NLC, fp32), {CONV1D})", "write both",
     f"pipeline(transpose(input, NCL, NLC, fp32, fp16), {CONV1D})"),
    ("transpose-dtypes", f"pipeline(transpose(input, NCL, NLC, int8, fp16), {CONV1D})", "use fp64, fp32, fp16 or bf16",
     f"pipeline(transpose(input, NCL, NLC, fp64, fp16), {CONV1D})"),
    ("transpose-nothing", f"pipeline(transpose(input, NLC, NLC), {CONV1D})", "remove it",
     f"pipeline(transpose(input, NLC, NLC, fp32, fp16), {CONV1D})"),
    ("transpose-gradient", f"pipeline(transpose(input, NCHW, NHWC), {CONV80.replace('fprop', 'dgrad')})",
     "channels last", f"pipeline(transpose(input, NCHW, NHWC), {CONV80})"),
    ("transpose-match", f"pipeline(transpose(input, NCL, NLC, fp32, bf16), {CONV1D})", "write fp16",
     f"pipeline(transpose(input, NCL, NLC, fp32, fp16), {CONV1D})"),
    ("transpose-match", f"pipeline({CONV1D}, transpose(output, NLC, NCL, bf16, fp32))", "write fp16",
     f"pipeline({CONV1D}, transpose(output, NLC, NCL, fp16, fp32))"),
    ("transpose-match", f"pipeline(transpose(input, NLC, NCL), {CONV1D})", "write transpose(input, NCL, NLC)",
     f"pipeline({TO_NLC}, {CONV1D})"),
    ("transpose-match", f"pipeline(transpose(weight, NCL, NLC), grouped_gemm(expert_count=4){SM90})",
     "layout of B", f"grouped_gemm(expert_count=4){SM90}"),
    ("transpose-match", f"pipeline(transpose(input, NCHW, NHWC), batched_gemm(){SM90})", "write NCL and NLC",
     f"pipeline({TO_NLC}, batched_gemm(){SM90})"),
    ("transpose-match", "pipeline(transpose(input, NCHW, NHWC), conv3d_fprop(kernel_d=1, kernel_h=3, kernel_w=3)"
     f"{TYPES}.with_arch(sm_90a))", "only convert the type",
     "pipeline(transpose(input, NHWC, NHWC, fp32, fp16), conv3d_fprop(kernel_d=1, kernel_h=3, kernel_w=3)"
     f"{TYPES}.with_arch(sm_90a))"),
    ("transpose-match", f"pipeline(transpose(weight, NCHW, NHWC), group_{CONV.replace('_fprop', '')[:-1]}, groups=2)"
     f"{TYPES}.with_arch(sm_80))", "prepare the weight once",
     f"pipeline(transpose(input, NCHW, NHWC), group_{CONV.replace('_fprop', '')[:-1]}, groups=2){TYPES}"
     ".with_arch(sm_80))"),
    ("pipeline-chain", f"pipeline({GEMM90}, {GEMM90.replace('input=fp16', 'input=bf16')})".replace(
        "input=bf16, acc=fp32, output=fp16", "input=bf16, acc=fp32, output=bf16"), "or input=fp16 here",
     f"pipeline({GEMM90}, {GEMM90})"),
    ("pipeline-chain", f"pipeline({GEMM90}, {CONV90})", "chain gemm() with gemm()", f"pipeline({GEMM90}, {GEMM90})"),
    ("pipeline-chain", f"pipeline(batched_gemm(){SM90}, batched_gemm(){SM90})", "programs of their own",
     f"pipeline(batched_gemm(){SM90})"),
    ("pipeline-chain", f"pipeline({GEMM90.replace('C=Row', 'C=Column')}, {GEMM90})", "write A=ColumnMajor",
     f"pipeline({GEMM90}, {GEMM90})"),
    ("bind-operand", f"{GEMM90} bind(X=x)", "bind A, B, D", f"{GEMM90} bind(A=x)"),
    ("bind-operand", f"{CONV90} bind(strides=2)", "stride", f"{CONV90} bind(stride=2)"),
    ("bind-value", f"{GEMM90} bind(A=3)", "write A=NAME", f"{GEMM90} bind(A=x)"),
    ("bind-value", f"{CONV90} bind(dilation_h=0)", "an integer from 1", f"{CONV90} bind(dilation_h=1, padding=0)"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "broken", "fix", "repaired"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)])
def test_a_program_that_breaks_one_rule_is_refused_by_its_name_with_a_fix(rule, broken, fix, repaired):
    with pytest.raises(ProgramError) as error:
        check(broken)
    found = error.value.findings
    also = {"arch-generated"} if "sm_70" in broken else set()
    assert {one.rule for one in found} == {rule} | also, error.value
    assert any(fix in one.fix for one in found), error.value
    assert f"[{rule}]" in str(error.value) and "why: " in str(error.value) and "fix: " in str(error.value)
    assert all(one.at for one in found)
    check(repaired)


def test_advice_for_alignments_is_legal_where_all_goes_by_tma():
    for operation in (f"{CONV}{TYPES}", f"grouped_gemm(expert_count=4){TYPES}{LAYOUT}"):
        (finding,) = all_findings(f"{operation}.with_arch(sm_90a).with_alignment(A=8, B=8, C=4)")
        assert finding.rule == "tma-alignment" and finding.fix == "write C=8, or a multiple, in .with_alignment(...)"


def test_a_name_that_is_an_operations_counts_as_a_tensor_of_its_own():
    assert Reads.of(check(f"{GEMM90} >> bias() >> row_broadcast(Bias)").kernels[0]).rows == 2
    assert Reads.of(check(f"{GEMM90} >> row_broadcast(v) >> row_broadcast(v)").kernels[0]).rows == 1


def test_every_rule_has_a_case_here():
    assert {case[0] for case in CASES} == set(RULES)


def test_every_rule_has_a_reason_that_is_no_sentence_of_blame():
    for rule in RULES.values():
        assert re.fullmatch(r"[a-z][a-z0-9-]+", rule.name) and len(rule.why.split()) >= 6


def test_the_parsers_rules_have_tests_too():
    """Names of findings outside the registry stand in a test of the language or of binding."""
    root = Path(kernelbench.ucutlass.__file__).parent
    named = set()
    for path in [*(root / "language").glob("*.py"), root / "operands" / "binding.py"]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in (
                "_find", "Finding",
            ) and isinstance(node.args[0], ast.Constant):  # fmt: skip
                named.add(node.args[0].value)
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert len(named) > 15 and all(f'"{name}"' in tests for name in named), named


def test_rules_of_the_same_program_are_all_reported_in_the_order_of_the_source():
    source = f"""gemm()
        {TYPES.replace("acc=fp32", "acc=int32")}
        {LAYOUT}
        .with_arch(sm_90)
        .with_tile(m=256, n=256, k=64)
        .with_split_k(mode=serial, slices=2)
        .with_scheduler(kernel=tma, epilogue=tma_cooperative)
        >> bias() >> bias() >> clip(min=1, max=0)"""
    found = all_findings(source)
    assert [one.rule for one in found] == [
        "dtype-triple", "arch-sm90a", "tile-clause", "registers", "arch-clause", "cooperative-epilogue",
        "epilogue-once", "clip-order",
    ]  # fmt: skip
    assert [one.at.line for one in found] == [2, 4, 5, 5, 6, 7, 8, 8]


def test_the_message_of_rule_5_says_that_m_is_the_clusters():
    (finding,) = all_findings(f"{COOPERATIVE}{tile(128)}.with_cluster(m=2, n=1, k=1)")
    assert "m=128 of the cluster / cluster m=2 = 64 per CTA" in finding.what


def test_findings_are_json_with_line_and_column():
    (finding,) = all_findings(GEMM90.replace("90a", "90"))
    data = finding.as_json()
    assert set(data) == {"rule", "what", "why", "fix", "line", "column"} and data["line"] == 1
