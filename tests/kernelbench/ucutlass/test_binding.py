"""Binding to a problem: which tensor an operand gets, and what is refused before anything is compiled."""

from types import SimpleNamespace

import pytest
from ucutlass_programs import CONV80, CONV90, GEMM80, GEMM90, LAYOUT, SM80, SM90, TYPES

from harness.problem.inputs import DTYPES
from harness.problem.signature import derive_signature
from kernelbench.api import load_problem
from kernelbench.ucutlass import ProgramError, check
from kernelbench.ucutlass.operands.binding import resolve


def tensor(name, *shape, dtype="float16"):
    return SimpleNamespace(name=name, shape=shape, dtype=dtype)


def problem(inputs, parameters=(), outputs=(), **scalars):
    named = [SimpleNamespace(name=name, value=value) for name, value in scalars.items()]
    return SimpleNamespace(inputs=inputs, parameters=parameters, outputs=outputs, scalars=named)


LINEAR = problem(
    [tensor("x", 64, 256)], [tensor("linear_weight", 128, 256), tensor("linear_bias", 128)], [tensor("output", 64, 128)]
)
IMAGES = problem(
    [tensor("x", 2, 16, 9, 9)], [tensor("conv_weight", 32, 16, 3, 3), tensor("conv_bias", 32)],
    [tensor("output", 2, 32, 9, 9)],
)  # fmt: skip
TRANSPOSED = (
    "pipeline(transpose(input, NCHW, NHWC), transpose(weight, NCHW, NHWC), {}, transpose(output, NHWC, NCHW)) {}"
)


def bound(source, to):
    return {one.operand.name: one.value for one in resolve(check(source), to).arguments}


def refused(source, to):
    with pytest.raises(ProgramError) as error:
        resolve(check(source), to)
    found = {}
    for one in error.value.findings:
        found.setdefault(one.rule, one)
    return found


def test_a_linear_layer_binds_without_a_word():
    assert bound(f"{GEMM90} >> bias() >> relu()", LINEAR) == {
        "A": "x", "B": "linear_weight", "bias": "linear_bias", "D": "output",
    }  # fmt: skip


def test_two_inputs_are_a_and_b():
    to = problem([tensor("left", 64, 256), tensor("right", 128, 256)], (), [tensor("output", 64, 128)])
    assert bound(GEMM90, to) == {"A": "left", "B": "right", "D": "output"}


def test_bind_wins_and_may_write_a_parameter_as_pytorch_does():
    to = problem([tensor("a", 64, 256), tensor("b", 64, 256)], LINEAR.parameters, LINEAR.outputs)
    assert bound(f"{GEMM90} bind(A=b, B=linear.weight)", to) == {"A": "b", "B": "linear_weight", "D": "output"}


def test_named_operands_bind_to_tensors_of_their_name():
    to = problem([*LINEAR.inputs, tensor("residual", 64, 128)], LINEAR.parameters, LINEAR.outputs)
    values = bound(f"{GEMM90} >> aux_load(residual) bind(B=linear_weight)", to)
    assert values["residual"] == "residual"


def test_a_scalar_is_a_number_or_a_scalar_of_the_problem():
    to = problem(LINEAR.inputs, LINEAR.parameters, LINEAR.outputs, factor=2.0)
    custom = f"{GEMM90} >> custom('x * s', inputs={{'s': 'scalar'}})"
    assert bound(f"{custom} bind(s=factor)", to)["s"] == "factor"
    assert bound(f"{custom} bind(s=0.5)", to)["s"] == 0.5
    assert "bind-missing" in refused(custom, to)


def test_sizes_of_all_symbols_are_known():
    found = resolve(check(GEMM90), LINEAR)
    assert found.extents == ({"M": 64, "K": 256, "N": 128},) and found.windows == ({},)


def test_leading_axes_are_taken_together():
    to = problem([tensor("x", 2, 32, 256)], LINEAR.parameters, [tensor("output", 2, 32, 128)])
    assert resolve(check(GEMM90), to).extents[0]["M"] == 64
    batched = problem([tensor("x", 3, 2, 32, 256), tensor("y", 3, 2, 128, 256)], (), [tensor("z", 3, 2, 32, 128)])
    assert resolve(check(f"batched_gemm(){SM90}"), batched).extents[0] == {"L": 6, "M": 32, "K": 256, "N": 128}


def test_axes_of_one_element_count_for_nothing_in_a_vector():
    to = problem(LINEAR.inputs, [LINEAR.parameters[0], tensor("bias", 1, 128, 1)], LINEAR.outputs)
    assert bound(f"{GEMM90} >> bias()", to)["bias"] == "bias"


def test_images_with_channels_first_bind_through_transposes():
    source = TRANSPOSED.format(f"{CONV80} >> bias()", "bind(padding=1)")
    found = resolve(check(source), IMAGES)
    assert found.windows == ({"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1)},)
    assert found.extents[0] == {"N": 2, "H": 9, "W": 9, "C": 16, "K": 32, "R": 3, "S": 3, "P": 9, "Q": 9}


def test_images_without_transposes_are_refused_with_the_transposes():
    finding = refused(f"{CONV80} bind(padding=1)", IMAGES)["bind-extent"]
    assert "transpose(input, NCHW, NHWC)" in finding.fix


def test_a_window_that_gives_another_size_is_refused():
    finding = refused(TRANSPOSED.format(CONV80, ""), IMAGES)["bind-extent"]
    assert "bind(stride=" in finding.fix and "padding 0" in finding.what


def test_a_window_may_have_a_value_for_each_axis_or_a_scalar_of_the_problem():
    to = problem(IMAGES.inputs, IMAGES.parameters, [tensor("output", 2, 32, 9, 5)], step=2)
    source = TRANSPOSED.format(CONV80, "bind(padding=1, stride_w=step)")
    assert resolve(check(source), to).windows[0]["stride"] == (1, 2)
    assert "bind-tensor" in refused(TRANSPOSED.format(CONV80, "bind(padding=1, stride_w=steps)"), to)


def test_kernels_of_a_pipeline_have_their_own_sizes_and_names():
    to = problem(
        [tensor("x", 64, 256)], [tensor("w1", 128, 256), tensor("w2", 32, 128)], [tensor("output", 64, 32)]
    )
    source = f"pipeline({GEMM90}, {GEMM90}) bind(B=w1, B2=w2)"
    found = resolve(check(source), to)
    assert [one.operand.name for one in found.arguments] == ["A", "B", "B2", "D"]
    assert found.extents == ({"M": 64, "K": 256, "N": 128}, {"M": 64, "K": 128, "N": 32})
    assert "bind-extent" in refused(f"pipeline({GEMM90}, {GEMM90}) bind(B=w1, B2=w1)", to)


@pytest.mark.parametrize(
    ("rule", "source", "to", "fix"),
    [
        ("bind-tensor", f"{GEMM90} bind(A=y)", LINEAR, "write one of x, linear_weight"),
        ("bind-tensor", f"{GEMM90} bind(D=x)", LINEAR, "write one of output"),
        ("bind-missing", GEMM90, problem([], (), LINEAR.outputs), "write bind(A=NAME)"),
        ("bind-missing", f"{GEMM90} >> aux_load(residual)", LINEAR, "write bind(residual=NAME)"),
        ("bind-dtype", GEMM90, problem([tensor("x", 64, 256, dtype="float32")], LINEAR.parameters, LINEAR.outputs),
         "transpose(input, NLC, NLC, fp32, fp16)"),
        ("bind-rank", GEMM90, problem([tensor("x", 256)], LINEAR.parameters, LINEAR.outputs), "check .with_layout"),
        ("bind-rank", f"{GEMM90} >> bias() bind(bias=linear_weight, B=linear_weight)", LINEAR, "check .with_layout"),
        ("bind-extent", GEMM90.replace("B=ColumnMajor", "B=RowMajor"), LINEAR, "check .with_layout"),
        ("bind-alignment", f"{GEMM90}", problem([tensor("x", 64, 20)], [tensor("weight", 128, 20)], LINEAR.outputs),
         "write A=4 in .with_alignment(...) with kernel=cp_async"),
        ("bind-alignment", f"{GEMM90}", problem([tensor("x", 64, 21)], [tensor("weight", 128, 21)], LINEAR.outputs),
         "use .with_arch(sm_80)"),
        ("bind-alignment", f"{GEMM80}", problem([tensor("x", 64, 21)], [tensor("weight", 128, 21)], LINEAR.outputs),
         "write A=1 in .with_alignment(...) and .with_stages(2)"),
        ("operand-swap", f"gemm().with_dtype(input=fp32, acc=fp32, output=fp32){LAYOUT}.with_arch(sm_90a)"
         ".with_operand_swap(true)",
         problem([tensor("x", 64, 256, dtype="float32")], [tensor("weight", 128, 256, dtype="float32")],
                 [tensor("output", 64, 128, dtype="float32")]), "remove .with_operand_swap(true)"),
        ("bind-stride", CONV90.replace("fprop", "dgrad") + " bind(output=g, filter=w, stride=2, padding=1)",
         problem([tensor("g", 2, 8, 8, 32), tensor("w", 32, 3, 3, 16)], (), [tensor("output", 2, 15, 15, 16)]),
         "use .with_arch(sm_80)"),
        ("bind-groups", f"group_conv2d(kernel_h=3, kernel_w=3, groups=2){TYPES}.with_arch(sm_80) bind(filter=w)",
         problem([tensor("x", 2, 8, 8, 32), tensor("w", 32, 3, 3, 16)], (), [tensor("output", 2, 6, 6, 32)]),
         "write .with_iterator(analytic)"),
        ("bind-groups", f"group_conv2d(kernel_h=3, kernel_w=3, groups=2){TYPES}.with_arch(sm_80)"
         ".with_tile(m=128, n=32, k=32).with_iterator(analytic) bind(filter=w)",
         problem([tensor("x", 2, 8, 8, 64), tensor("w", 128, 3, 3, 32)], (), [tensor("output", 2, 6, 6, 128)]),
         "write .with_iterator(optimized)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_problem_is_refused_by_name_with_a_fix(rule, source, to, fix):
    found = refused(source, to)
    assert rule in found and fix in found[rule].fix, found


def test_advice_for_a_grouped_gemm_names_no_choice_that_its_rules_refuse():
    to = problem([tensor("x", 64, 20), tensor("w", 4, 128, 20), tensor("rows", 5, dtype="int32")], (),
                 [tensor("output", 64, 128)])  # fmt: skip
    source = f"grouped_gemm(expert_count=4){SM90} bind(A=x, B=w, offsets=rows)"
    assert refused(source, to)["bind-alignment"].fix == "pad the tensor"


def test_a_gradient_is_checked_as_the_operation_defines_it():
    to = problem([tensor("g", 2, 6, 6, 32), tensor("w", 32, 3, 3, 16)], (), [tensor("output", 2, 8, 8, 16)])
    assert bound(CONV90.replace("fprop", "dgrad") + " bind(output=g, filter=w)", to)["input"] == "output"


@pytest.mark.parametrize(("dtype", "type_"), [("float32", "fp32"), ("float64", "fp64")])
def test_cuda_cores_and_tensor_cores_of_fp64_need_no_alignment(dtype, type_):
    to = problem([tensor("x", 64, 21, dtype=dtype)], [tensor("weight", 127, 21, dtype=dtype)],
                 [tensor("output", 64, 127, dtype=dtype)])  # fmt: skip
    assert bound(f"gemm().with_dtype(input={type_}, acc={type_}, output={type_}){LAYOUT}.with_arch(sm_80)", to)


@pytest.mark.parametrize(
    ("id_", "precision", "source"),
    [
        ("1/1", "fp16", GEMM90), ("1/3", "fp16", f"batched_gemm(){SM90}".replace("B=Column", "B=Row")),
        ("1/10", "fp16", GEMM90.replace("B=Column", "B=Row")), ("2/76", "fp16", f"{GEMM90} >> bias() >> relu()"),
        ("2/70", "fp16", f"{GEMM90} >> bias() >> custom('sigmoid(x) * 2 + x')"),
        ("1/67", "fp32", "pipeline(transpose(input, NCL, NLC, fp32, fp16), transpose(weight, NCL, NLC, fp32, fp16),"
         f"conv1d_fprop(kernel_w=3){TYPES}.with_arch(sm_90a), transpose(output, NLC, NCL, fp16, fp32))"),
        ("1/16", "fp16", GEMM80.replace("A=Row", "A=Column").replace("B=Column", "B=Row")),
        ("1/17", "fp16", f"gemm(){SM80}"),
    ],
)  # fmt: skip
def test_problems_of_the_suite_bind(id_, precision, source):
    signature = derive_signature(load_problem(id_).workload("full"), DTYPES[precision])
    assert resolve(check(source), signature).arguments[-1].value == "output"
