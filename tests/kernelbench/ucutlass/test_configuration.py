"""From a valid program to its defaults, canonical text, hash, operands and resources."""

import pytest
from ucutlass_programs import CONV, CONV1D, CONV80, CONV90, COOPERATIVE, FIGURE_1, GEMM80, GEMM90, LAYOUT, SM90, TYPES

from kernelbench.ucutlass import check, ir, parse
from kernelbench.ucutlass.canonical import canonical, digest
from kernelbench.ucutlass.explain import as_json, marked, report, text
from kernelbench.ucutlass.ir import DType, EpilogueSchedule, KernelSchedule, TileScheduler
from kernelbench.ucutlass.operands import Role, operands
from kernelbench.ucutlass.resources import KIB, estimate

FP32 = ".with_dtype(input=fp32, acc=fp32, output=fp32)"
PROGRAMS = [
    FIGURE_1, GEMM80, GEMM90, COOPERATIVE, CONV80, CONV90, f"batched_gemm(){SM90} >> bias()",
    f"grouped_gemm(expert_count=4){SM90} >> silu()",
    f"{GEMM90} >> custom('x * s', inputs={{'s': 'row'}}) >> scale(alpha=1e-5)",
    f"pipeline(transpose(input, NCL, NLC, fp32, fp16), {CONV1D} >> bias(), transpose(output, NLC, NCL, fp16, fp32))",
    f"depthwise_conv2d(kernel_h=3, kernel_w=3){TYPES}.with_arch(sm_80) >> bias()",
    f"pipeline({GEMM90} >> bias() >> relu(), {GEMM90} >> bias())",
]  # fmt: skip


# --- defaults -----------------------------------------------------------------------------------------------------


def test_a_cooperative_kernel_is_the_default_and_takes_all_stages_that_fit():
    kernel = check(GEMM90).body
    assert kernel.scheduler.kernel is KernelSchedule.TMA_COOPERATIVE
    assert kernel.scheduler.epilogue is EpilogueSchedule.TMA_COOPERATIVE
    assert kernel.scheduler.tile is TileScheduler.PERSISTENT
    assert kernel.stages == estimate(kernel).stages_that_fit
    assert kernel.tile.k * kernel.dtypes.input.bytes == 128


@pytest.mark.parametrize(
    ("clauses", "schedule"),
    [
        (".with_threadblockshape(m=64, n=128, k=64)", KernelSchedule.TMA_PINGPONG),
        (".with_threadblockshape(m=256, n=128, k=64).with_cluster(m=2, n=1, k=1)", KernelSchedule.TMA_COOPERATIVE),
        (".with_scheduler(epilogue=tma)", KernelSchedule.TMA_PINGPONG),
        (".with_scheduler(tile=stream_k)", KernelSchedule.TMA_COOPERATIVE),
        (".with_alignment(A=2, B=2, C=8)", KernelSchedule.CP_ASYNC_COOPERATIVE),
        (".with_alignment(A=2, B=2, C=8).with_threadblockshape(m=64, n=128, k=64)", KernelSchedule.CP_ASYNC),
    ],
)
def test_auto_becomes_the_schedule_that_suits_the_tile(clauses, schedule):
    assert check(GEMM90 + clauses).body.scheduler.kernel is schedule


def test_before_sm90_a_kernel_has_a_swizzle_and_no_cluster():
    kernel = check(GEMM80).body
    assert kernel.swizzle is ir.Swizzle.IDENTITY1 and kernel.cluster is None and kernel.scheduler is None
    assert kernel.split_k == ir.SplitK(ir.SplitKMode.NONE, 1)
    assert check(CONV80).body.iterator is ir.Iterator.OPTIMIZED


def test_fp32_on_cuda_cores_has_thin_tiles_and_tf32_has_not():
    assert check(f"gemm(){FP32}{LAYOUT}.with_arch(sm_80)").body.tile.k == 8
    assert check(f"gemm(){FP32.replace('input=fp32', 'input=tf32')}{LAYOUT}.with_arch(sm_80)").body.tile.k == 16


def test_a_convolution_needs_no_layout():
    assert check(CONV90).body.layout.input is ir.ConvTensor.NHWC
    conv3d = f"conv3d_fprop(kernel_d=1, kernel_h=3, kernel_w=3){TYPES}.with_arch(sm_90a)"
    assert check(conv3d).body.layout.output is ir.ConvTensor.NDHWC


# --- canonical text and hash --------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", PROGRAMS, ids=range(len(PROGRAMS)))
def test_canonical_text_is_a_program_that_means_the_same(source):
    program = check(source)
    assert check(canonical(program)) == program
    assert canonical(check(canonical(program))) == canonical(program)


def test_what_is_written_in_another_way_has_the_same_hash():
    other = (
        "# kb: problem=2/76\ngemm().with_arch(sm90a).with_layout(C=RowMajor, B=ColumnMajor, A=RowMajor)"
        ".with_dtype(output=float16, acc=float32, input=float16).with_cluster(m=1, n=1, k=1) bind(A=x)"
    )
    assert digest(check(other)) == digest(check(GEMM90))
    assert digest(check(f"{GEMM90} >> clamp(min=0, max=6)")) == digest(check(f"{GEMM90} >> clip(min=0, max=6.0)"))
    assert digest(check(f"{GEMM90} >> custom('x+1')")) == digest(check(f"{GEMM90} >> custom('(x + 1.0)')"))


def test_every_choice_is_in_the_hash():
    sources = [
        GEMM90, COOPERATIVE, GEMM80, f"{GEMM90} >> relu()", f"{GEMM90} >> gelu()", f"{GEMM90}.with_stages(3)",
        f"{GEMM90}.with_scheduler(raster=along_n)", f"{GEMM90}.with_scheduler(max_swizzle=2)", f"batched_gemm(){SM90}",
        f"{GEMM90}.with_scaling(alpha=2, beta=0)", f"{GEMM90} >> scale(alpha=0.1)", f"{GEMM90} >> scale(alpha=0.10001)",
    ]  # fmt: skip
    assert len({digest(check(source)) for source in sources}) == len(sources)


def test_the_hash_is_of_sixteen_digits_and_does_not_change():
    """A changed hash orphans every built header: change it on purpose only."""
    assert digest(check(FIGURE_1)) == "198985188074c51d"


# --- operands -----------------------------------------------------------------------------------------------------


def names(source):
    return [one.name for one in operands(check(source))]


def operand(source, name):
    return next(one for one in operands(check(source)) if one.name == name)


def test_inputs_come_before_outputs_in_the_order_of_the_chain():
    source = f"{GEMM90}.with_scaling(alpha=1, beta=1) >> bias() >> aux_store(t) >> column_broadcast(v) >> aux_load(r)"
    assert names(source) == ["A", "B", "C", "bias", "v", "r", "D", "t"]
    assert [one.role for one in operands(check(source))][-2:] == [Role.OUTPUT] * 2


@pytest.mark.parametrize(
    ("layout", "extents"),
    [("A=RowMajor, B=RowMajor", [("M", "K"), ("K", "N")]), ("A=ColumnMajor, B=ColumnMajor", [("K", "M"), ("N", "K")])],
)
def test_extents_are_as_the_matrices_lie_in_memory(layout, extents):
    found = operands(check(f"gemm(){TYPES}.with_layout({layout}, C=RowMajor).with_arch(sm_90a)"))
    assert [one.extents for one in found] == [*extents, ("M", "N")]


def test_a_batch_and_experts_have_an_axis_of_their_own():
    assert operand(f"batched_gemm(){SM90}", "B").extents == ("L", "N", "K")
    grouped = f"grouped_gemm(expert_count=4){SM90}"
    assert names(grouped) == ["A", "B", "offsets", "D"]
    assert operand(grouped, "B").extents == ("E", "N", "K") and operand(grouped, "offsets").dtype is DType.INT32


@pytest.mark.parametrize(
    ("operation", "order"),
    [("conv2d_fprop", ["input", "filter", "output"]), ("conv2d_dgrad", ["output", "filter", "input"]),
     ("conv2d_wgrad", ["output", "input", "filter"])],
)  # fmt: skip
def test_a_gradient_reads_the_gradient_of_the_output(operation, order):
    assert names(f"{CONV}{TYPES}.with_arch(sm_80)".replace("conv2d_fprop", operation)) == order


def test_transposes_and_conversions_show_in_what_the_caller_passes():
    source = (
        f"pipeline(transpose(input, NCHW, NHWC, fp32, fp16), transpose(weight, NCHW, NHWC), {CONV90} >> bias(),"
        "transpose(output, NHWC, NCHW, fp16, fp32))"
    )
    image = operand(source, "input")
    assert image.extents == ("N", "C", "H", "W") and image.dtype is DType.FP32
    assert operand(source, "filter").extents == ("K", "C", "R", "S") and operand(source, "filter").dtype is DType.FP16
    assert operand(source, "output").extents == ("N", "K", "P", "Q") and operand(source, "bias").dtype is DType.FP32


def test_a_transposed_weight_of_a_gemm_swaps_its_axes():
    assert operand(f"pipeline(transpose(weight, NCL, NLC), {GEMM90})", "B").extents == ("K", "N")


def test_the_second_kernels_operands_end_in_two_and_its_input_is_internal():
    assert names(f"pipeline({GEMM90} >> bias(), {GEMM90} >> bias())") == ["A", "B", "bias", "B2", "bias2", "D"]


def test_vectors_have_the_outputs_type_or_the_accumulators_where_the_output_is_small():
    assert operand(f"{GEMM90} >> bias()", "bias").dtype is DType.FP16
    small = f"gemm().with_dtype(input=e4m3, acc=fp32, output=e4m3){LAYOUT}.with_arch(sm_90a) >> bias()"
    assert operand(small, "bias").dtype is DType.FP32
    assert operand(small, "A").dtype is DType.FP8_E4M3


def test_tf32_is_fp32_in_memory():
    source = f"gemm().with_dtype(input=tf32, acc=fp32, output=fp32){LAYOUT}.with_arch(sm_90a)"
    assert {one.dtype for one in operands(check(source))} == {DType.FP32}


def test_a_scalar_is_passed_by_value():
    found = operand(f"{GEMM90} >> custom('x * s', inputs={{'s': 'scalar'}})", "s")
    assert found.role is Role.SCALAR and found.extents == ()


# --- resources ----------------------------------------------------------------------------------------------------


def resources(source):
    return estimate(check(source).body)


def tile(m, n, k):
    return f".with_threadblockshape(m={m}, n={n}, k={k})"


def test_the_papers_large_fp32_tile_has_one_stage():
    """256 x 128 x 64 in FP32: 96 KB a stage, "only 1 stage"."""
    kernel = parse(f"gemm(){FP32}{LAYOUT}.with_arch(sm_90a){tile(256, 128, 64)}"
                   ".with_scheduler(kernel=tma_cooperative).with_stages(1)").body  # fmt: skip
    from kernelbench.ucutlass.defaults import complete_kernel

    found = estimate(complete_kernel(kernel))
    assert found.stage_bytes == 96 * KIB and found.stages_that_fit == 1


def test_stages_follow_from_the_formula_by_hand():
    found = resources(f"{COOPERATIVE}{tile(128, 256, 64)}")
    assert found.stage_bytes == (128 + 256) * 64 * 2
    assert found.epilogue_bytes == 2 * 128 * 32 * 2  # two buffers of 128 x 32
    assert found.stages_that_fit == (228 * KIB - found.epilogue_bytes - 8 * KIB) // found.stage_bytes == 4
    assert found.shared_bytes == 2 * found.stage_bytes + found.epilogue_bytes <= found.shared_limit_bytes


def test_what_an_epilogue_reads_takes_shared_memory():
    plain = resources(f"{COOPERATIVE}{tile(128, 128, 64)}").epilogue_bytes
    piece = 128 * 32 * 2
    assert resources(f"{COOPERATIVE}{tile(128, 128, 64)} >> aux_load(t)").epilogue_bytes == 4 * piece
    assert resources(f"{COOPERATIVE}{tile(128, 128, 64)} >> aux_store(t)").epilogue_bytes == plain + 2 * piece
    assert resources(f"{COOPERATIVE}{tile(128, 128, 64)} >> bias()").epilogue_bytes == plain + 128 * 2
    assert resources(f"{GEMM90}.with_scheduler(kernel=tma, epilogue=no_smem)").epilogue_bytes == 0


@pytest.mark.parametrize(
    ("schedule", "threads", "accumulators"),
    [("tma", 256, 128), ("tma_pingpong", 384, 128), ("tma_cooperative", 384, 64), ("cp_async", 384, 128)],
)
def test_threads_and_accumulators_follow_from_the_schedule(schedule, threads, accumulators):
    found = resources(f"{GEMM90}{tile(128, 128, 64)}.with_scheduler(kernel={schedule}).with_stages(2)")
    assert (found.threads, found.accumulator_registers) == (threads, accumulators)
    assert found.blocks_per_sm >= 1


def test_before_sm90_shared_memory_is_the_architectures():
    assert resources(GEMM80).shared_limit_bytes == 163 * KIB
    assert resources(GEMM80.replace("80", "89")).shared_limit_bytes == 99 * KIB


def test_a_build_costs_what_was_measured():
    assert resources(GEMM90).compile_memory_bytes == 4 << 30 and resources(GEMM80).compile_seconds == 6


# --- explanation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", PROGRAMS, ids=range(len(PROGRAMS)))
def test_every_program_is_explained_with_its_defaults_marked(source):
    program, written = check(source), parse(source)
    shown = text(program, written)
    assert digest(program) in shown and "# default" in shown and "kernel_ex" in shown
    data = report(program, written)
    assert data["ir"]["type"] == "Program" and len(data["resources"]) == len(program.kernels)
    assert data["defaults"] and all(line in data["canonical"] for line in data["defaults"])


def test_only_clauses_that_the_program_leaves_out_are_marked():
    lines = dict(marked(check(FIGURE_1), parse(FIGURE_1)))
    assert lines["  .with_stages(2)"] is False and lines["  .with_cluster(m=1, n=1, k=1)"] is True
    second = f"pipeline({GEMM90}.with_stages(2), {GEMM90})"
    stages = [mark for line, mark in marked(check(second), parse(second)) if "with_stages" in line]
    assert stages == [False, True]


def test_ir_is_json_without_places():
    data = as_json(parse(FIGURE_1).body)
    assert data["operation"] == {"type": "Gemm", "form": "gemm", "expert_count": None}
    assert data["epilogue"][2] == {"type": "Clip", "min": 0.0, "max": 6.0} and "positions" not in data
