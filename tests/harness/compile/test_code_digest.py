"""Sources that no program could tell from each other have one digest; others have another."""

import pytest
import torch

from harness.compile import BuildContext, build
from harness.compile.code_digest import code_digest
from harness.compile.toolchain import nvcc
from harness.problem.module import ProblemId
from harness.solution.discover import read_solution

CPP = """
#include <cstddef>
extern "C" void solution(const float *x, float *out, size_t batch_size, size_t dim) {
    for (size_t i = 0; i < batch_size * dim; ++i) out[i] = x[i] > 0 ? x[i] : 0;
}
"""
CUDA = """#include <cstddef>
__global__ void relu(const float *x, float *out, size_t n) { size_t i = threadIdx.x; if (i < n) out[i] = x[i]; }
extern "C" void solution(const float *x, float *out, size_t batch_size, size_t dim) { relu<<<1, 32>>>(x, out, dim); }
"""


@pytest.fixture
def digest(server, tmp_path):
    """Build a source and return the digest of its code."""

    def digest(source, kind="py", name="19_s1"):
        path = tmp_path / f"{name}.{kind}"
        path.write_text(source)
        solution = read_solution(path, problem=ProblemId(1, 19))
        arch = "9.0" if kind == "cu" else None
        artefact = build(solution, BuildContext(server, arch, torch.__version__, 300, 4 << 30, jobs=1))
        return code_digest(solution, artefact)

    return digest


@pytest.mark.slow
def test_a_library_is_what_the_compiler_made(digest):
    first = digest(CPP, "cpp")
    assert first == digest("// another comment\n" + CPP.replace(" i", "  i"), "cpp", "19_s2")
    assert first == digest(CPP.replace("size_t i ", "size_t place ").replace("; ++i", "; ++place")
                           .replace("i <", "place <").replace("[i]", "[place]"), "cpp", "19_s3")  # fmt: skip
    assert first != digest(CPP.replace("> 0", "> 1"), "cpp", "19_s4")


@pytest.mark.slow
def test_a_section_that_nothing_loads_counts_too(digest):
    """A program can read its own library, and so a word that tells what it is to answer."""
    word = 'asm(".section .hidden; .ascii \\"{}\\"; .text");'
    digests = [digest(CPP + word.format(said), "cpp", f"19_s{said}") for said in ("1", "2")]
    assert None not in digests and digests[0] != digests[1]


@pytest.mark.slow
@pytest.mark.skipif(nvcc() is None, reason="needs nvcc")
def test_a_library_for_cuda_is_its_text(digest):
    first = digest(CUDA, "cu")
    assert first == digest(CUDA, "cu", "19_s2")
    assert first != digest(CUDA + "// done\n", "cu", "19_s3")


def test_of_a_module_nothing_is_said(digest):
    """It knows its name: one text was right as the first attempt and wrong as the second."""
    assert digest("class ModelNew:\n    def forward(self, x):\n        return x.clamp(min=0)\n") is None


def test_of_a_solution_with_other_files_nothing_is_said(digest, tmp_path):
    (tmp_path / "word.txt").write_text("right")
    assert digest("word = open('word.txt')\nclass ModelNew: pass\n") is None
