"""Thousands of generated programs: none crashes the validator, and none that is accepted breaks a constraint.

The constraints are written here a second time, from the text of the paper's appendix A.1 and Table 1, on what the
program says, so that a rule that is missing or wrong is found.
"""

import re

import pytest
from ucutlass_generator import Generator

from kernelbench.ucutlass import ProgramError, check, ir, parse
from kernelbench.ucutlass.canonical import canonical, digest
from kernelbench.ucutlass.explain import report, text
from kernelbench.ucutlass.operands import operands

SIZE = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2}


def constraints(kernel: ir.Kernel) -> list[str]:
    """What an accepted kernel breaks, of the paper's constraints and of what CUTLASS was seen to need."""
    broken = []

    def hold(condition, name):
        if not condition:
            broken.append(name)

    word = str(kernel.arch)
    late = word in ("sm_90a", "sm_100")
    hold(kernel.dtypes is not None and kernel.arch is not None, "required")
    hold(not word.endswith("_gemm") and (kernel.layout is not None or not kernel.is_gemm), "required layout")
    hold(word != "sm_90", "1: sm_90a")
    used = {name for name in ("swizzle", "iterator", "split_k") if getattr(kernel, name) is not None}
    hold(not (late and used), "SM70-89 only")
    used = {name for name in ("cluster", "scheduler", "operand_swap") if getattr(kernel, name) is not None}
    hold(late or not used, "SM90+ only")
    hold(kernel.tile is None or kernel.tile.is_threadblockshape == late, "2: with_threadblockshape")
    types = {str(kernel.dtypes.input), str(kernel.dtypes.acc), str(kernel.dtypes.output)}
    hold(not (word == "sm_70" and "bf16" in types), "bf16 from SM80")
    hold(late or not any(name.startswith("fp8") for name in types), "fp8 from SM90")
    hold(not (late and "fp64" in types), "no FP64 wgmma")
    operation = kernel.operation.word
    hold(not (operation.startswith("group_conv") and late), "grouped convolutions are SM80-89")
    hold(not (operation == "conv3d_wgrad" and late), "conv3d_wgrad is SM70-89")
    hold(late or not any(isinstance(op, ir.Custom) for op in kernel.epilogue), "custom on SM90a")
    if late:
        hopper(kernel, hold)
    return broken


def hopper(kernel: ir.Kernel, hold) -> None:
    """The constraints of SM90, with the compiler's defaults where the program leaves something out."""
    schedule = kernel.scheduler or ir.Scheduler()
    named = str(schedule.kernel or "auto")
    given, made = SIZE.get(str(kernel.dtypes.input), 1), SIZE.get(str(kernel.dtypes.output), 1)
    if str(kernel.dtypes.output) in ("int32", "uint32"):
        made = 4
    if kernel.alignment and named.startswith("tma"):
        hold(kernel.alignment.a * given % 16 == 0 and kernel.alignment.b * given % 16 == 0, "3: TMA alignment")
        hold(str(schedule.epilogue) == "no_smem" or kernel.alignment.c * made % 16 == 0, "3: TMA alignment of C")
    epilogue = str(schedule.epilogue or "auto")
    hold(named != "tma_cooperative" or epilogue in ("auto", "tma_cooperative"), "4: cooperative epilogue")
    cluster = kernel.cluster or ir.Cluster(1, 1, 1)
    if kernel.tile:
        m = kernel.tile.m / cluster.m
        hold("cooperative" not in named or m >= 128, "5: tile_m / cluster_m >= 128")
        hold(m % 64 == 0 and kernel.tile.n <= 256 and kernel.tile.n != 24, "wgmma")
        hold(not (m >= 256 and kernel.tile.n >= 256), "256 x 256 spills")
        stage = (m + kernel.tile.n) * kernel.tile.k * given
        hold((kernel.stages or 2) * stage <= (228 - 8) * 1024, "6: shared memory")
    hold(named != "tma_cooperative" or kernel.stages is not None, "6: explicit stages")
    hold(kernel.stages is None or kernel.stages >= 2, "stages")
    if kernel.operand_swap:
        hold(kernel.is_gemm and given == 4 and kernel.operation.word == "gemm", "7: operand swap is for FP32 GEMM")
    hold(cluster.m * cluster.n * cluster.k <= 8, "portable cluster")
    hold(not (named == "tma_pingpong" and str(schedule.tile) == "stream_k"), "ping-pong excludes stream-K")
    if kernel.is_gemm and given == 4:
        hold(str(kernel.layout.b) == "ColumnMajor" or kernel.operand_swap, "TF32 with N-major B was wrong")
    if not kernel.is_gemm and not kernel.operation.word.startswith("depthwise"):
        hold(named in ("auto", "tma"), "SM90 convolutions have one schedule")


def examine(seed: int, count: int) -> tuple[int, set[str]]:
    """Check generated programs; return how many were accepted, and the rules that refused others."""
    generator = Generator(seed)
    accepted, refused = 0, set()
    for number in range(count):
        source = generator.program()
        try:
            program = check(source)
        except ProgramError as error:
            assert error.findings, source
            for finding in error.findings:
                assert finding.rule and finding.what and finding.why and finding.fix and finding.at, (source, finding)
                lines = source.splitlines() or [""]
                assert 1 <= finding.at.line <= len(lines) + 1, (source, finding)
            refused |= {finding.rule for finding in error.findings}
            continue
        accepted += 1
        for kernel in parse(source).kernels:
            assert not constraints(kernel), (constraints(kernel), source)
        again = check(canonical(program))
        assert again.body == program.body and digest(again) == digest(program), source
        if number % 10 == 0:
            assert text(program, parse(source)) and report(program, parse(source))["operands"]
        assert len({one.name for one in operands(program)}) == len(operands(program)), source
    return accepted, refused


def test_a_thousand_generated_programs_are_accepted_or_refused_for_a_reason():
    accepted, refused = examine(seed=1, count=1000)
    assert accepted > 100 and len(refused) > 40, (accepted, sorted(refused))


@pytest.mark.study
@pytest.mark.parametrize("seed", range(2, 12))
def test_ten_thousand_generated_programs_are_accepted_or_refused_for_a_reason(seed):
    accepted, _ = examine(seed, count=1000)
    assert accepted > 100


def test_the_constraints_here_notice_programs_that_break_them():
    """Each of the paper's constraints refuses a program that the parser, without rules, would let through."""
    base = "gemm().with_dtype(input=fp16, acc=fp32, output=fp16).with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)"
    late = f"{base}.with_arch(sm_90a)"
    sources = {
        "1: sm_90a": f"{base}.with_arch(sm_90)",
        "2: with_threadblockshape": f"{late}.with_tile(m=128, n=128, k=64)",
        "3: TMA alignment": f"{late}.with_scheduler(kernel=tma).with_alignment(A=4, B=8, C=8)",
        "4: cooperative epilogue": f"{late}.with_scheduler(kernel=tma_cooperative, epilogue=tma).with_stages(2)",
        "5: tile_m / cluster_m >= 128": f"{late}.with_scheduler(kernel=tma_cooperative).with_stages(2)"
        ".with_threadblockshape(m=128, n=128, k=64).with_cluster(m=2, n=1, k=1)",
        "6: explicit stages": f"{late}.with_scheduler(kernel=tma_cooperative)",
        "7: operand swap is for FP32 GEMM": f"{late}.with_operand_swap(true)",
        "SM70-89 only": f"{late}.with_swizzle(pattern=Identity1)",
        "SM90+ only": f"{base}.with_arch(sm_80).with_cluster(m=1, n=1, k=1)",
        "fp8 from SM90": re.sub("input=fp16", "input=e4m3", f"{base}.with_arch(sm_80)"),
    }
    for name, source in sources.items():
        assert name in constraints(parse(source).body), name
        with pytest.raises(ProgramError):
            check(source)
