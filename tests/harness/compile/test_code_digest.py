"""Sources that differ in comments, spaces or names have one digest of their code; others have another."""

import dataclasses
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from linear_time import MEGABYTE, in_linear_time

from harness.compile import BuildContext, build, code_digest
from harness.compile.toolchain import host_compiler
from harness.problem.module import ProblemId
from harness.solution.discover import read_solution

CPP = """
#include <cstddef>
extern "C" void solution(const float *x, float *out, size_t batch_size, size_t dim) {
    for (size_t i = 0; i < batch_size * dim; ++i) out[i] = x[i] > 0 ? x[i] : 0;
}
"""
INLINE = """
import torch
from torch.utils.cpp_extension import load_inline
CPP = '''{source}'''
extension = load_inline(name="kb_same_code", cpp_sources=CPP, functions=["relu"])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension.relu(x)
"""
RELU = "#include <torch/types.h>\ntorch::Tensor relu(torch::Tensor x) { return x.clamp_min(0); }\n"


@pytest.fixture
def digest(server, tmp_path):
    """Build a source and return the digest of its code."""

    def digest(source, kind="py", name="19_s1"):
        path = tmp_path / f"{name}.{kind}"
        path.write_text(source)
        solution = read_solution(path, problem=ProblemId(1, 19))
        artefact = build(solution, BuildContext(server, None, torch.__version__, 300, 4 << 30, jobs=1))
        return code_digest.code_digest(solution, artefact)

    return digest


@pytest.mark.slow
def test_a_library_is_its_code_and_data(digest):
    first = digest(CPP, "cpp")
    assert first == digest("// another comment\n" + CPP.replace(" i", "  i"), "cpp", "19_s2")
    assert first == digest(CPP.replace("size_t i ", "size_t place ").replace("; ++i", "; ++place")
                           .replace("i <", "place <").replace("[i]", "[place]"), "cpp", "19_s3")  # fmt: skip
    assert first != digest(CPP.replace("> 0", "> 1"), "cpp", "19_s4")


def test_a_module_is_its_syntax_without_docstrings(digest):
    source = "class ModelNew:\n    def forward(self, x):\n        return x.clamp(min=0)\n"
    first = digest(source)
    assert first == digest('"""What it does."""\n\n' + source.replace("x.clamp", "x . clamp") + "# done\n")
    assert first != digest(source.replace("min=0", "min=1"))
    assert first != digest(source.replace("(self, x)", "(self, y)"))


@pytest.mark.slow
def test_an_extension_counts_by_its_code_and_not_by_its_text(digest):
    first = digest(INLINE.format(source=RELU))
    assert first == digest(INLINE.format(source="// a comment\n" + RELU.replace("{ return", "{\n    return")))


def test_cuda_code_is_its_instructions_and_without_the_tool_nothing_is_said(tmp_path, monkeypatch, digest):
    """A stand-in for ``cuobjdump`` prints what the real one prints: line numbers and files do not count."""
    built = tmp_path / "solution.so"
    tool = tmp_path / "cuobjdump"
    tool.write_text(
        "#!/bin/sh\necho 'Fatbin elf code:'\necho 'source_name = 19_s1.cu'\necho '\t\tFunction : relu'\n"
        "echo '        /*0000*/                   MOV R1, c[0x0][0x28] ;'\n"
    )
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(code_digest, "cuobjdump", lambda: str(tool))
    built.write_bytes(b"")
    assert code_digest._sass(built) == (
        "Function : relu\n/*0000*/                   MOV R1, c[0x0][0x28] ;"
    )
    monkeypatch.setattr(code_digest, "cuobjdump", lambda: None)
    assert code_digest._sass(built) is None


@pytest.mark.parametrize(
    "name, plain",
    [
        (b"\0/tmp/x/19_s1.cu\0", b"\0/tmp/x/module\0"),
        (b"_ZN46_INTERNAL_0a1b2c3d_10_19_relu_s1_cu_89abcdef4reluE", b"_ZN46_module4reluE".replace(b"_m", b"m")),
        (b"_INTERNAL_0a1b2c3d_4_19_cu_89abcdef_123 relu", b"module relu"),
        (b"<tmpxft_000012ab_00000000-6>", b"<module-6>"),
        (b"relu_s1.cpp 19_s1.cuh 19.cu", b"relu_s1.cpp 19_s1.cuh 19.cu"),
    ],
)
def test_the_names_that_a_compiler_gives_a_module_do_not_count(name, plain):
    assert code_digest._MODULE_NAME.sub(b"module", name) == plain


@pytest.mark.parametrize("piece", [b"a", b"1", b"_s1", b"_INTERNAL_0a1b2c3d_1_", b"_INTERNAL_0a1b2c3d_1_" + b"a" * 300])
def test_a_megabyte_of_one_name_is_read_in_linear_time(piece):
    with in_linear_time():
        code_digest._MODULE_NAME.sub(b"module", piece * (MEGABYTE // len(piece)))
        assert not list(code_digest._SASS_LINE.finditer("\n" * MEGABYTE))


def test_a_library_whose_sections_overlap_is_none():
    """Copies of all of it for each of 65,535 sections filled the memory of the process that looks."""
    section = struct.pack("<IIQQQQIIQQ", 0, 1, 2, 0, 0, 1 << 20, 0, 0, 0, 0)
    elf = bytearray(b"\x7fELF\x02\x01" + bytes(1 << 20))
    struct.pack_into("<Q", elf, 0x28, 64)
    struct.pack_into("<HHH", elf, 0x3A, len(section), 900, 0)
    elf[64 : 64 + 900 * len(section)] = section * 900
    with pytest.raises(ValueError, match="overlap"):
        code_digest.sections(bytes(elf))


def test_a_library_with_more_sections_than_its_header_counts_has_no_digest(tmp_path):
    """It ended the work on its whole problem: the count is 0 then, and no section has the names."""
    source = tmp_path / "many.s"
    source.write_text("".join(f'.section .s{number},"a"\n.byte 1\n' for number in range(65_300)))
    library = tmp_path / "many.so"
    subprocess.run([host_compiler().path, "-shared", "-nostdlib", "-o", library, source], check=True)
    with pytest.raises(ValueError, match="more of them than the header can count"):
        code_digest.sections(library.read_bytes())


def test_what_is_no_library_has_no_sections():
    with pytest.raises(ValueError, match="not a 64-bit"):
        code_digest.sections(b"text")
    program = Path(sys.executable).resolve().read_bytes()
    assert {name for name, _ in code_digest.sections(program)} >= {b".text", b".rodata"}


@pytest.mark.gpu
def test_sass_of_a_real_kernel(digest):
    """Needs ``cuobjdump``: two sources that differ in names and comments have the same instructions."""
    source = (
        "#include <cstddef>\n__global__ void relu(const float *x, float *out, size_t n) {\n"
        "    size_t i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) out[i] = x[i] > 0 ? x[i] : 0;\n}\n"
        'extern "C" void solution(const float *x, float *out, size_t b, size_t d) {\n'
        "    relu<<<(b * d + 255) / 256, 256>>>(x, out, b * d);\n}\n"
    )
    first = digest(source, "cu")
    assert first and first == digest("// a comment\n\n" + source, "cu", "19_s2")
    assert first != digest(source.replace("> 0", "> 1"), "cu", "19_s3")


def test_a_solution_with_files_of_its_own_has_none(tmp_path):
    path = tmp_path / "19.py"
    path.write_text("x = 1\n")
    solution = dataclasses.replace(read_solution(path, problem=ProblemId(1, 19)), taken_in=((Path("a.cuh"), "abc"),))
    assert code_digest.code_digest(solution, None) is None
