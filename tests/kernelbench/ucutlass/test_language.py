"""Every production of the grammar: what is accepted, what it becomes, and what is refused."""

import dataclasses
import warnings

import pytest
from linear_time import in_linear_time
from ucutlass_programs import CONV1D, FIGURE_1, GEMM80, GEMM90, SWAP_TEMPLATE, TEMPLATE, TYPES

from kernelbench.ucutlass import ProgramError, check, ir, parse
from kernelbench.ucutlass.canonical import canonical
from kernelbench.ucutlass.ir import Arch, ConvForm, Direction, DType, GemmForm, Position
from kernelbench.ucutlass.language import vocabulary
from kernelbench.ucutlass.language.vocabulary import Kind


def refused(source):
    with pytest.raises(ProgramError) as error:
        check(source)
    return error.value.findings


def rules(source):
    return [finding.rule for finding in refused(source)]


def kernel(source):
    return parse(source).body


# --- the programs of the paper ------------------------------------------------------------------------------------


def test_the_program_of_figure_1_is_accepted_as_it_is():
    program = check(FIGURE_1)
    assert program.body.scheduler.kernel is ir.KernelSchedule.TMA
    assert program.body.epilogue == (ir.Bias(), ir.Activation(ir.ActivationKind.GELU), ir.Clip(0, 6))


def test_the_first_template_breaks_rule_6_and_its_fix_repairs_it():
    (finding,) = refused(TEMPLATE)
    assert finding.rule == "cooperative-stages" and "add .with_stages(2)" in finding.fix
    assert check(TEMPLATE + ".with_stages(2)").body.cta_tile == ir.CtaTile(256, 128, 64)


def test_the_second_template_leaves_32_rows_a_cta_and_its_fix_repairs_it():
    (finding,) = refused(SWAP_TEMPLATE)
    assert finding.rule == "wgmma-tile" and "32 per CTA" in finding.what and finding.fix == "write m=256"
    assert check(SWAP_TEMPLATE.replace("m=128", "m=256")).body.operand_swap is True


# --- operations ---------------------------------------------------------------------------------------------------

OPERATIONS = {
    "gemm()": ir.Gemm(),
    "batched_gemm()": ir.Gemm(GemmForm.BATCHED),
    "grouped_gemm(expert_count=8)": ir.Gemm(GemmForm.GROUPED, 8),
    "conv2d_fprop(kernel_h=3, kernel_w=5)": ir.Conv((3, 5)),
    "conv2d_dgrad(kernel_h=3, kernel_w=5)": ir.Conv((3, 5), Direction.DGRAD),
    "conv2d_wgrad(kernel_h=3, kernel_w=5)": ir.Conv((3, 5), Direction.WGRAD),
    "conv1d_fprop(kernel_w=7)": ir.Conv((7,)),
    "depthwise_conv1d(kernel_w=7)": ir.Conv((7,), form=ConvForm.DEPTHWISE),
    "group_conv1d(kernel_w=7, groups=4)": ir.Conv((7,), form=ConvForm.GROUPED, groups=4),
    "conv3d_fprop(kernel_d=2, kernel_h=3, kernel_w=5)": ir.Conv((2, 3, 5)),
    "conv3d_dgrad(kernel_d=2, kernel_h=3, kernel_w=5)": ir.Conv((2, 3, 5), Direction.DGRAD),
    "conv3d_wgrad(kernel_d=2, kernel_h=3, kernel_w=5)": ir.Conv((2, 3, 5), Direction.WGRAD),
    "depthwise_conv2d(kernel_h=3, kernel_w=5)": ir.Conv((3, 5), form=ConvForm.DEPTHWISE),
    "group_conv2d(kernel_h=3, kernel_w=5, groups=2)": ir.Conv((3, 5), form=ConvForm.GROUPED, groups=2),
    "group_conv3d(kernel_d=2, kernel_h=3, kernel_w=5, groups=2)": ir.Conv((2, 3, 5), form=ConvForm.GROUPED, groups=2),
}


@pytest.mark.parametrize("source", OPERATIONS)
def test_an_operation_becomes_its_class(source):
    assert kernel(source).operation == OPERATIONS[source]
    assert source.startswith(kernel(source).operation.word + "(")


def test_every_operation_has_a_case_here():
    assert {source.partition("(")[0] for source in OPERATIONS} == set(vocabulary.OPERATIONS)


@pytest.mark.parametrize("source", [one for one in OPERATIONS if "=" in one])
def test_an_operation_without_one_of_its_arguments_is_refused_with_its_signature(source):
    word, _, arguments = source.partition("(")
    dropped = arguments.rstrip(")").split(", ")[0]
    rest = ", ".join(arguments.rstrip(")").split(", ")[1:])
    finding = next(one for one in refused(f"{word}({rest})") if one.rule == "missing-argument")
    assert f"lacks {dropped.partition('=')[0]}" in finding.what and f"write {word}(" in finding.fix


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "three", "'3'", "9999999999"])
def test_an_extent_is_a_positive_integer(value):
    finding = next(one for one in refused(f"conv1d_fprop(kernel_w={value})") if one.rule == "argument-value")
    assert "kernel_w" in finding.what and "an integer from 1" in finding.fix


# --- configuration ------------------------------------------------------------------------------------------------

# clause -> field, value
CLAUSES = {
    ".with_dtype(input=fp16, acc=fp32, output=bf16)": ("dtypes", ir.DTypes(DType.FP16, DType.FP32, DType.BF16)),
    ".with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)": (
        "layout", ir.GemmLayout(ir.Matrix.ROW_MAJOR, ir.Matrix.COLUMN_MAJOR, ir.Matrix.ROW_MAJOR)),
    ".with_arch(sm_90a)": ("arch", Arch.SM90A),
    ".with_tile(m=128, n=64, k=32)": ("tile", ir.Tile(128, 64, 32)),
    ".with_threadblockshape(m=128, n=64, k=32)": ("tile", ir.Tile(128, 64, 32, is_threadblockshape=True)),
    ".with_stages(4)": ("stages", 4),
    ".with_alignment(A=8, B=4, C=2)": ("alignment", ir.Alignment(8, 4, 2)),
    ".with_cluster(m=2, n=1, k=1)": ("cluster", ir.Cluster(2, 1, 1)),
    ".with_swizzle(pattern=Identity4)": ("swizzle", ir.Swizzle.IDENTITY4),
    ".with_scheduler(tile=stream_k, kernel=tma_cooperative, epilogue=auto, splits=2)": (
        "scheduler", ir.Scheduler(ir.TileScheduler.STREAM_K, ir.KernelSchedule.TMA_COOPERATIVE,
                                  ir.EpilogueSchedule.AUTO, 2)),
    ".with_scaling(alpha=0.5, beta=-1)": ("scaling", ir.Scaling(0.5, -1.0)),
    ".with_iterator(few_channels)": ("iterator", ir.Iterator.FEW_CHANNELS),
    ".with_split_k(mode=serial, slices=4)": ("split_k", ir.SplitK(ir.SplitKMode.SERIAL, 4)),
    ".with_operand_swap(true)": ("operand_swap", True),
    ".with_operand_swap(false)": ("operand_swap", False),
}  # fmt: skip


@pytest.mark.parametrize("clause", CLAUSES)
def test_a_clause_fills_its_field_and_knows_its_place(clause):
    field, value = CLAUSES[clause]
    parsed = kernel(f"gemm(){clause}")
    assert getattr(parsed, field) == value
    assert parsed.positions[field] == Position(1, 8)


def test_every_clause_has_a_case_here():
    assert {clause.partition("(")[0][1:] for clause in CLAUSES} == set(vocabulary.CONFIGURATIONS)


def test_a_convolution_has_a_layout_of_its_own():
    source = ".with_layout(input=TensorNDHWC, filter=TensorNHWC, output=TensorNHWC)"
    nhwc = ir.ConvTensor.NHWC
    assert kernel(f"conv1d_fprop(kernel_w=3){source}").layout == ir.ConvLayout(ir.ConvTensor.NDHWC, nhwc, nhwc)
    assert "unknown-argument" in rules(f"gemm(){source}")
    assert "unknown-argument" in rules("conv1d_fprop(kernel_w=3).with_layout(A=RowMajor, B=RowMajor, C=RowMajor)")


@pytest.mark.parametrize("clause", [one for one in CLAUSES if "scheduler" not in one])
def test_a_clause_without_arguments_is_refused(clause):
    word = clause.partition("(")[0]
    finding = next(one for one in refused(f"gemm(){word}()") if one.rule == "missing-argument")
    assert f"write {word[1:]}(" in finding.fix


@pytest.mark.parametrize(
    "clause",
    [
        ".with_dtype(input=fp12, acc=fp32, output=fp16)", ".with_layout(A=RowMayor, B=RowMajor, C=RowMajor)",
        ".with_arch(sm_75)", ".with_tile(m=0, n=1, k=1)", ".with_threadblockshape(m=a, n=1, k=1)", ".with_stages(two)",
        ".with_alignment(A=-8, B=8, C=8)", ".with_cluster(m=1, n=1, k=0)", ".with_swizzle(pattern=Identity3)",
        ".with_scheduler(kernel=tma_coop)", ".with_scheduler(tile=streams)", ".with_scheduler(epilogue=tmas)",
        ".with_scheduler(splits=0)", ".with_scheduler(raster=m)", ".with_scheduler(max_swizzle=-1)",
        ".with_scaling(alpha=one, beta=0)", ".with_iterator(fast)", ".with_split_k(mode=fast, slices=2)",
        ".with_operand_swap(yes)",
    ],
)  # fmt: skip
def test_a_clause_with_a_wrong_value_is_refused_with_the_right_ones(clause):
    finding = next(one for one in refused(f"gemm(){clause}") if one.rule == "argument-value")
    assert finding.fix.startswith(("did you mean", "write")) and finding.at.line == 1


@pytest.mark.parametrize(
    "arguments", ["kernel=tma", "epilogue=tma, kernel=tma", "splits=2, tile=stream_k, kernel=tma_cooperative", ""]
)
def test_parts_of_a_schedule_come_in_any_subset_and_order(arguments):
    parsed = kernel(f"gemm().with_scheduler({arguments})").scheduler
    assert sum(value is not None for value in dataclasses.astuple(parsed)[:4]) == arguments.count("=")


# --- words --------------------------------------------------------------------------------------------------------

ALIASES = {
    "float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "e4m3": "fp8_e4m3",
    "e5m2": "fp8_e5m2", "s8": "int8", "s16": "int16", "s32": "int32", "u8": "uint8", "u16": "uint16", "u32": "uint32",
}  # fmt: skip


@pytest.mark.parametrize("word", vocabulary.DTYPES)
def test_every_type_and_alias_is_read(word):
    parsed = kernel(f"gemm().with_dtype(input={word}, acc={word}, output={word})").dtypes
    assert str(parsed.input) == str(parsed.output) == ALIASES.get(word, word)
    assert parsed.input.bytes in (1, 2, 4, 8)


@pytest.mark.parametrize("word", vocabulary.ARCHS)
def test_every_architecture_is_read_with_and_without_underscore(word):
    assert str(kernel(f"gemm().with_arch({word})").arch).replace("_", "") == word.replace("_", "")


@pytest.mark.parametrize(
    ("clause", "words"),
    [
        ("with_scheduler(tile={})", "default persistent stream_k streamk"),
        ("with_scheduler(kernel={})", "auto cp_async cp_async_cooperative tma tma_cooperative tma_pingpong"),
        ("with_scheduler(epilogue={})", "auto tma tma_cooperative no_smem"),
        ("with_iterator({})", "analytic optimized fixed_channels few_channels fixed_stride_dilation"),
        ("with_split_k(mode={}, slices=2)", "none serial parallel"),
        ("with_swizzle(pattern={})", "Identity1 Identity2 Identity4 Identity8 StreamK"),
        ("with_operand_swap({})", "true false"),
    ],
)
def test_every_word_of_a_choice_is_read(clause, words):
    for word in words.split():
        assert parse(f"gemm().{clause.format(word)}")


# --- epilogues ----------------------------------------------------------------------------------------------------

EPILOGUES = {
    **{f"{kind.value}()": ir.Activation(kind) for kind in ir.ActivationKind},
    "leaky_relu(alpha=0.1)": ir.LeakyRelu(0.1),
    "elu(alpha=0.5)": ir.Elu(0.5),
    "elu()": ir.Elu(1.0),
    "clip(min=-1, max=1.5)": ir.Clip(-1, 1.5),
    "clamp(min=-1, max=1.5)": ir.Clip(-1, 1.5),
    "bias()": ir.Bias(),
    "per_channel_scale()": ir.PerChannelScale(),
    "per_row_scale()": ir.PerRowScale(),
    "per_col_scale()": ir.PerColScale(),
    "row_broadcast(v)": ir.RowBroadcast("v"),
    "column_broadcast(v)": ir.ColumnBroadcast("v"),
    "scale(alpha=2)": ir.Scale(2.0),
    "aux_store(t)": ir.AuxStore("t"),
    "aux_load(t)": ir.AuxLoad("t"),
    "custom('x * x')": ir.Custom(ir.Call("mul", (ir.Variable("x"), ir.Variable("x")))),
    "custom('x + s', inputs={'s': 'row'})": ir.Custom(
        ir.Call("add", (ir.Variable("x"), ir.Variable("s"))), (ir.CustomInput("s", ir.Extent.ROW),)
    ),
}


@pytest.mark.parametrize("op", EPILOGUES)
def test_an_epilogue_becomes_its_class_and_is_accepted(op):
    assert kernel(f"gemm() >> {op}").epilogue == (EPILOGUES[op],)
    check(f"{GEMM90} >> {op}")


def test_inputs_may_be_none():
    assert kernel("gemm() >> custom('x', inputs={})").epilogue == (ir.Custom(ir.Variable("x")),)
    assert refused(f"{GEMM90.replace('gemm()', 'gemm({})')}")


def test_every_epilogue_has_a_case_here():
    assert {op.partition("(")[0] for op in EPILOGUES} == set(vocabulary.EPILOGUES)


@pytest.mark.parametrize(
    "op",
    [
        "relu(alpha=1)", "gelu(3)", "leaky_relu()", "leaky_relu(alpha=x)", "elu(1)", "clip(min=0)", "clamp(max=0)",
        "bias(v)", "per_row_scale(v)", "row_broadcast()", "row_broadcast(3)", "column_broadcast('v')", "scale()",
        "aux_store()", "aux_load(1.5)", "custom()", "custom(x)", "swish()", "custom('x', inputs='s')",
    ],
)  # fmt: skip
def test_an_epilogue_with_wrong_arguments_is_refused(op):
    found = refused(f"{GEMM90} >> {op}")
    assert {one.rule for one in found} <= {
        "missing-argument", "unknown-argument", "argument-name", "argument-value", "unknown-word",
    }  # fmt: skip
    assert all(one.fix for one in found)


def test_a_chain_keeps_its_order():
    ops = kernel("gemm() >> bias() >> scale(alpha=2) >> relu()").epilogue
    assert [type(op) for op in ops] == [ir.Bias, ir.Scale, ir.Activation]


# --- expressions of custom epilogues ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "x", "-x", "+x", "x + 1", "x - 1.5e-3", "x * x / 2", "x ** 2", "x if x > 0 else 0.1 * x", "where(x >= 0, x, 0)",
        "max(min(x, 6), 0)", "sigmoid(x) * x", "exp(-abs(x))", "x * (x != 0)", "erf(x) + log1p(exp(x))",
    ],
)  # fmt: skip
def test_an_expression_is_read_and_its_canonical_text_means_the_same(text):
    program = check(f"{GEMM90} >> custom('{text}')")
    assert check(canonical(program)) == program


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("y", "declare it"), ("x.real", "use + - * /"), ("x[0]", "use + - * /"), ("lambda: x", "use + - * /"),
        ("__import__(x)", "use one of"), ("sigmod(x)", "did you mean sigmoid"), ("max(x)", "write max(a, b)"),
        ("x +", "write arithmetic"), ("", "write arithmetic"), ("x < 1 < 2", "use + - * /"), ("x and 1", "use + - * /"),
        ("True", "use + - * /"), ("1e999", "below 1e+38"), ("min(x, 1e300)", "below 1e+38"),
        ("f(*x)", "use one of"), ("max(x, key=x)", "use + - * /"),
        ("(" * 999 + "x" + ")" * 999, "write arithmetic"), ("x" * 9000, "write at most 8192"),
        ("x+" * 70 + "x", "several"), ("1(x)", "use + - * /"),
        ("x; x", "write arithmetic"), ("x // 2", "use + - * /"), ("\\x00", "write arithmetic"),
    ],
)  # fmt: skip
def test_what_is_no_arithmetic_is_refused_and_nothing_is_printed(text, fix):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (finding,) = refused(f'{GEMM90} >> custom("{text}")')
    assert finding.rule == "custom-expression" and fix in finding.fix


@pytest.mark.parametrize(
    "inputs", ["'x': 'row'", "'exp': 'row'", "'1a': 'row'", "'a b': 'row'", "'s': 'rows'", "'s': 'row', 's': 'row'"]
)
def test_inputs_have_names_and_shapes(inputs):
    (finding,) = refused(f"{GEMM90} >> custom('x', inputs={{{inputs}}})")
    assert finding.rule == "custom-inputs" and finding.fix


# --- pipelines ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [("NCL", "NLC"), ("NLC", "NCL"), ("NCHW", "NHWC"), ("NHWC", "NCHW")])
@pytest.mark.parametrize("tensor", ["input", "weight", "output"])
def test_a_transpose_names_a_tensor_and_two_orders_of_axes(tensor, axes):
    program = parse(f"pipeline(transpose({tensor}, {axes[0]}, {axes[1]}, fp32, fp16), gemm())")
    (stage,) = [stage for stage in program.stages if isinstance(stage, ir.Transpose)]
    assert (str(stage.tensor), str(stage.source), str(stage.target)) == (tensor, *axes)
    assert (stage.source_dtype, stage.target_dtype) == (DType.FP32, DType.FP16)


@pytest.mark.parametrize(
    "stage",
    ["transpose(bias, NCL, NLC)", "transpose(input, NCL)", "transpose(input, NLC, CNL)", "transpose(input)",
     "transpose(input, NCL, NLC, fp99, fp16)", "transpose(input, NCL, NLC, fp32, fp16, fp16)", "transpose()"],
)  # fmt: skip
def test_a_transpose_with_wrong_arguments_is_refused(stage):
    assert set(rules(f"pipeline({stage}, {GEMM90})")) <= {"argument-value", "missing-argument", "argument-name"}


def test_a_pipeline_keeps_its_stages_and_may_end_in_a_comma():
    program = check(f"pipeline(transpose(input, NCL, NLC), {CONV1D}, transpose(output, NLC, NCL),)")
    assert [type(stage) for stage in program.stages] == [ir.Transpose, ir.Kernel, ir.Transpose]


@pytest.mark.parametrize("source", ["pipeline()", "pipeline(,)", f"pipeline({GEMM90}", f"{GEMM90}, {GEMM90}"])
def test_a_pipeline_without_stages_or_without_its_end_is_refused(source):
    assert "syntax" in rules(source)


# --- bind, comments, and syntax errors ----------------------------------------------------------------------------


def test_bind_names_tensors_parameters_and_numbers():
    bound = parse("gemm() bind(A=x, B=linear.weight, stride=2, s=0.5)").bindings
    assert [(one.name, one.value) for one in bound] == [
        ("A", "x"), ("B", "linear.weight"), ("stride", 2), ("s", 0.5),
    ]  # fmt: skip


@pytest.mark.parametrize("number", ["20000000001", "1e999", "9" * 5000, "1" + "0" * 400 + ".0"])
def test_a_number_that_no_operand_has_is_refused_and_not_cut(number):
    """`stride=20000000001` was 200000000 without a word, and `1e999` infinite."""
    (finding,) = [one for one in refused(f"gemm() bind(stride={number})") if one.rule == "bind-form"]
    assert "9 digits" in finding.fix and len(finding.what) < 200


def test_a_number_of_nine_digits_is_bound_as_it_is():
    assert parse("gemm() bind(stride=999999999)").bindings[0].value == 999999999


@pytest.mark.parametrize("source", ["bind(x)", "bind(A='x')", "bind(3)"])
def test_bind_takes_names_with_tensors(source):
    (finding,) = refused(f"{GEMM90} {source}")
    assert finding.rule == "bind-form" and "bind(A=x" in finding.fix


def test_comments_of_three_kinds_are_skipped():
    assert parse(f"# kb: problem=2/76\n// a\n/* b\n c */ {GEMM90} # end") == parse(GEMM90)


def test_a_source_of_white_space_and_one_that_is_too_long_are_refused():
    assert rules("  \n# nothing\n") == ["syntax"]
    assert rules("gemm()" + " " * (1 << 16)) == ["syntax"]


@pytest.mark.parametrize("piece", ["/* ", "/*", "' ", "? ", "/* */ ?", "gemm(", ">> ", "*/"])
def test_a_source_of_nothing_but_errors_is_refused_in_linear_time(piece):
    with in_linear_time():
        assert "syntax" in rules(piece * ((1 << 16) // len(piece)))


def test_what_was_parsed_is_not_copied_for_each_error(monkeypatch):
    """17 kB of arguments before 500 colons took 53 s, in the process of `kb solve` where a model wrote them."""
    monkeypatch.setattr("lark.parsers.lalr_parser_state.deepcopy", lambda values: pytest.fail("they are copied"))
    assert "syntax" in rules(f"gemm({'a,' * 100}a {': ' * 100})")
    assert "syntax" in rules(f"{GEMM90} relu() >> bias(")


def test_several_errors_are_reported_at_once_with_their_places():
    source = """gemm()
  .with_dtype(input=fp16 acc=fp32, output=fp17)
  .with_arch(sm_90a
  .with_stages(1)
  >> bias() >> reluu()
"""
    found = refused(source)
    assert [(one.rule, one.at.line) for one in found] == [
        ("required-layout", 1), ("syntax", 2), ("argument-value", 2), ("syntax", 4), ("unknown-word", 5),
    ]  # fmt: skip
    assert all(one.what and one.why and one.fix for one in found)


@pytest.mark.parametrize(
    ("source", "line", "column"),
    [("gemm() ]", 1, 8), ("gemm()\n  with_stages(2)", 2, 3), ("gemm() >> ", 1, 10), ("gemm(", 1, 6),
     ("gemm().with_stages(2", 1, 21), ("gemm() $ >> relu()", 1, 8)],
)  # fmt: skip
def test_a_syntax_error_has_its_line_and_column(source, line, column):
    (first, *_) = [one for one in refused(source) if one.rule == "syntax"]
    assert (first.at.line, first.at.column) == (line, column)
    assert "here may stand" in first.why


def test_a_clause_with_wrong_arguments_is_not_missing_as_well():
    assert rules("gemm().with_dtype(input=fp16).with_arch(sm_91).with_layout(A=Row)") == [
        "missing-argument", "argument-value", "missing-argument", "argument-value",
    ]  # fmt: skip


def test_one_dropped_word_is_one_error():
    assert rules(f"{GEMM90} >> ] ] ] relu()").count("syntax") == 1


@pytest.mark.parametrize(
    ("source", "rule", "fix"),
    [
        ("gem()", "unknown-word", "did you mean gemm?"),
        ("gemm().with_dtyp(input=fp16, acc=fp32, output=fp16)", "unknown-word", "did you mean with_dtype?"),
        ("gemm().with_stages(2).with_stages(3)", "clause-once", "remove one"),
        ("gemm().with_tile(m=1, n=1, k=1).with_threadblockshape(m=1, n=1, k=1)", "clause-once", "remove one"),
        ("gemm().with_cluster(m=1, m=1, n=1, k=1)", "argument-once", "remove one"),
        ("gemm() bind(A=x, A=y)", "argument-once", "remove one"),
        ("gemm().with_cluster(1, 1, 1)", "argument-name", "write with_cluster(m="),
        ("gemm().with_cluster(m=1, n=1, k=1, l=1)", "unknown-argument", "write with_cluster(m="),
        ("gemm() >> relu().with_stages(2)", "order", "before the first >>"),
        ("transpose(input, NCL, NLC)", "transpose-in-pipeline", "pipeline(transpose"),
        ("pipeline(transpose(input, NCL, NLC) >> relu(), gemm())", "transpose-plain", "move it to a kernel"),
    ],
)
def test_words_are_refused_by_name(source, rule, fix):
    (finding,) = [one for one in refused(source) if one.rule == rule]
    assert fix in finding.fix


def test_a_parameter_is_described_by_its_words_or_its_kind():
    form = vocabulary.EPILOGUES["clip"]
    assert [parameter.describes for parameter in form.parameters] == [Kind.NUMBER.value] * 2
    assert "RowMajor | ColumnMajor" in vocabulary.GEMM_LAYOUT.parameters[0].describes


def test_parse_alone_checks_no_rule_and_raises_for_words():
    assert parse("gemm()").body.dtypes is None
    with pytest.raises(ProgramError, match="did you mean gemm"):
        parse("gem()")


def test_positions_take_no_part_in_equality():
    assert parse(GEMM80) == parse("\n\n  " + GEMM80.replace(".", "\n  ."))
    assert hash(parse(GEMM80)) == hash(parse(GEMM80 + " "))


def test_a_file_with_windows_line_ends_is_the_same_program():
    assert parse(FIGURE_1.replace("\n", "\r\n")) == parse(FIGURE_1)


def test_types_alone_are_no_program():
    assert "syntax" in rules(TYPES)


@pytest.mark.parametrize(
    ("source", "missing"), [("gemm(.with_stages(2)", ")"), ("gemm().with_cluster(m=1 n=1, k=1)", ","), ("gemm(", ")")]
)
def test_a_missing_sign_is_named(source, missing):
    (finding,) = [one for one in refused(source) if one.rule == "syntax"]
    assert finding.fix == f"insert '{missing}' before it"
