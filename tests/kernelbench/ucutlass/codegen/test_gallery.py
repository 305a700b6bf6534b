"""Every program of the gallery: what is generated for it, what it should return, and, slowly, what nvcc makes of it."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
import torch

from harness.compile.toolchain import Compiler, nvcc
from kernelbench.ucutlass import check
from kernelbench.ucutlass.codegen import BuildError, ToolchainMissing, build, coverage, generate, name_of
from kernelbench.ucutlass.codegen.assembly.program import program_extents
from kernelbench.ucutlass.codegen.build import compiler, instructions, reference
from kernelbench.ucutlass.operands import Role, operands

ROOT = Path(__file__).resolve().parents[4]
sys.path.append(str(ROOT / "scripts" / "bench"))
import ucutlass as bench  # noqa: E402

GALLERY = ROOT / "kernelbench" / "ucutlass" / "gallery"
PROGRAMS = sorted(path.stem for path in GALLERY.glob("*.dsl"))


@pytest.fixture(params=PROGRAMS)
def source(request):
    return (GALLERY / f"{request.param}.dsl").read_text()


def test_there_are_at_least_25_programs_of_both_back_ends():
    sources = [(GALLERY / f"{name}.dsl").read_text() for name in PROGRAMS]
    assert len(sources) >= 25 and len(set(sources)) == len(sources)
    assert min(sum("sm_90a" in text for text in sources), sum("sm_80" in text for text in sources)) >= 10


def test_a_program_says_what_it_is_for_and_on_which_extents_to_try_it(source):
    purpose, extents, *_ = source.splitlines()
    assert purpose.startswith("# ") and purpose.endswith(".") and extents.startswith("# extents: ")


def test_its_header_is_complete(source):
    program = check(source)
    text, name = generate(program), name_of(program)
    assert re.fullmatch(r"ucutlass_[0-9a-f]{16}", name)
    for line in source.strip().splitlines():
        assert line.strip() in text  # the source is embedded
    for function in ("run", "workspace_bytes", "can_implement", "message"):
        assert f" {name}_{function}(" in text
    for function in ("at::Tensor kernel(", "at::Tensor kernel_ex("):
        assert text.count(f"inline {function}") == 1
    # kernels have names of their own; CUTLASS's two of parallel split-K have them among their arguments
    assert any(part in text for part in ("struct ucutlass_", "ucutlass_depthwise<<<", "GemmSplitKParallel"))
    assert text.count("{") == text.count("}") and "CLOSE_NAMESPACE" not in text


def test_the_same_program_gives_the_same_header():
    source = (GALLERY / "folded_layer_norm.dsl").read_text()
    assert generate(check(source)) == generate(check(source))


def test_its_c_interface_takes_every_operand_once(source):
    program = check(source)
    listed = re.search(r"// C interface\. tensors: (.*)\. extents: (.*)\.", generate(program))
    wanted = [one.name for one in operands(program) if one.role is not Role.SCALAR]
    assert listed[1].split(", ") == wanted and tuple(listed[2].split(", ")) == program_extents(program)


def test_its_meaning_is_computed_by_the_reference(source):
    program = check(source)
    extents, steps = bench.told_extents(source, program_extents(program))
    named = bench.inputs(program, extents, "cpu")
    outputs = reference.expected(program, named, **steps)
    wanted = {one.name for one in operands(program) if one.role is Role.OUTPUT}
    assert set(outputs) == wanted
    for result in outputs.values():
        assert torch.isfinite(result).all() and result.std() > 0.01


def test_an_epilogue_without_shared_memory_applies_its_chain():
    text = generate(check((GALLERY / "odd_vocabulary.dsl").read_text()))
    assert "part0(float(accumulator), params.in_alpha)" in text and "x = x * 0.5f;" in text
    assert "Sm90EVT" not in text and "a.epilogue.thread = {float(c.alpha)};" in text


def test_a_depthwise_convolution_rounds_and_saturates_as_a_gemm_does():
    """A conversion of C++ cuts digits off, and 200 became -56 in INT8."""
    program = """depthwise_conv1d(kernel_w=3).with_dtype(input=s8, acc=s32, output=s8).with_arch(sm_80)
    >> aux_store(t) >> relu()"""
    text = generate(check(program))
    for name in ("t", "output"):
        stored = re.search(rf"c\.p_{name}\[at\] = cutlass::NumericConverter<(\w+), float>{{}}\(x\);", text)
        assert stored and stored[1] in ("int8_t", "ElementD")


def test_an_operand_may_have_the_name_of_a_mark_in_templates():
    """Its pointer was cut in two by the end of a namespace."""
    source = (GALLERY / "figure1.dsl").read_text()
    plain, named = (generate(check(f"{source} >> row_broadcast({name})")) for name in ("other", "CLOSE_NAMESPACE"))
    assert named.count("p_CLOSE_NAMESPACE") == plain.count("p_other") > 0
    assert named.count("{") == plain.count("{") and named.count("}") == plain.count("}")


def test_coverage_names_programs_that_exist_and_every_program_is_named():
    named = {name for row in coverage.ROWS for name in row.programs}
    assert named <= set(PROGRAMS)
    assert {row.state for row in coverage.ROWS} <= {"runs", "builds", "refused"}
    assert all(row.programs for row in coverage.ROWS if row.state != "refused")


def test_what_runs_was_right_on_a_gpu_with_the_instructions_of_its_schedule():
    results = json.loads((ROOT / "results" / "h100" / "ucutlass" / "ucutlass.json").read_text())["programs"]
    for row in coverage.ROWS:
        if row.state == "runs":
            seen = [results[name] for name in row.programs]
            assert all(one["right"] and not one["missing_instructions"] for one in seen), row


def test_instructions_follow_from_the_schedule():
    promised = {name: instructions.promised(check((GALLERY / f"{name}.dsl").read_text()).kernels[0])
                for name in ("figure1", "unaligned_cp_async", "sm80_fp32", "sm80_linear_relu")}  # fmt: skip
    assert promised == {
        "figure1": ("wgmma.mma_async", "cp.async.bulk.tensor"),
        "unaligned_cp_async": ("wgmma.mma_async", "cp.async.c"),
        "sm80_fp32": ("fma.rn.f32",),
        "sm80_linear_relu": ("mma.sync", "cp.async.c"),
    }
    program = check((GALLERY / "figure1.dsl").read_text())
    assert instructions.missing(program, "wgmma.mma_async.sync.aligned") == ["cp.async.bulk.tensor"]


def test_missing_headers_are_named_with_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv(compiler.HEADERS_VARIABLE, str(tmp_path))
    for folder, header in (("include", "cutlass/cutlass.h"), ("tools/util/include", "cutlass/util/packed_stride.hpp")):
        with pytest.raises(ToolchainMissing, match=f"holds no {header}: set CUTLASS_PATH to a checkout"):
            compiler.include_folders()
        path = tmp_path / folder / header
        path.parent.mkdir(parents=True)
        path.touch()
    assert compiler.include_folders() == [tmp_path / "include", tmp_path / "tools/util/include"]


@pytest.mark.parametrize(("arch", "device", "flags"), [
    ("sm_90a", "9.0", "arch=compute_90a,code=sm_90a"),
    ("sm_80", None, "arch=compute_80,code=sm_80"),
    ("sm_80", "9.0", "arch=compute_80,code=sm_90"),
    ("sm_89", "8.0", "arch=compute_89,code=sm_89"),
])  # fmt: skip
def test_a_program_is_compiled_for_its_architecture_and_the_device_at_hand(arch, device, flags):
    from kernelbench.ucutlass.ir import Arch

    assert compiler.architecture_flags(Arch(arch), device) == (f"-gencode={flags}",)


@pytest.mark.study
@pytest.mark.timeout(1800)
@pytest.mark.skipif(nvcc() is None, reason="needs nvcc")
def test_nvcc_makes_the_instructions_that_the_schedule_promises(source, tmp_path):
    try:
        compiler.include_folders()
    except ToolchainMissing as missing:
        pytest.skip(str(missing))
    program = check(source)
    built = build(program, tmp_path, keep_ptx=True)
    assert built.library.stat().st_size > 0
    assert instructions.missing(program, built.ptx.read_text()) == []


@pytest.mark.slow
@pytest.mark.parametrize(("does", "told"), [
    (f"head -c 1 {ROOT}/README.md >/dev/null && echo error read; echo error end; exit 1", r"failed:\nerror end"),
    ("sleep 60 & echo $! >pid; sleep 60", "took longer than|was ended"),
    ("head -c 100 /dev/zero >${@: -1}", ""),
])  # fmt: skip
def test_the_compiler_of_a_program_is_confined_and_ends_with_all_that_it_started(tmp_path, monkeypatch, does, told):
    """It ran with the user's rights and without limits, and went on with 3 GB where `kb` was ended."""
    (tmp_path / "nvcc").write_text(f"#!/bin/bash\n{does}\n")
    (tmp_path / "nvcc").chmod(0o755)
    monkeypatch.setattr(compiler, "nvcc", lambda: Compiler(str(tmp_path / "nvcc"), "13.0"))
    monkeypatch.setattr(compiler, "include_folders", lambda: [tmp_path])
    monkeypatch.setattr(compiler, "_TIMEOUT_S", 5.0)
    program = check((GALLERY / "folded_layer_norm.dsl").read_text())
    if told:
        with pytest.raises(BuildError, match=told):
            build(program, tmp_path / "out")
    else:
        assert build(program, tmp_path / "out").library.read_bytes() == bytes(100)
    assert not [name for name in os.listdir("/proc") if name.isdigit() and _command(name) == b"sleep\x0060\x00"]


def _command(process):
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:  # gone meanwhile
        return b""
