"""Solutions of kinds that another program translates: a command makes CUDA C++ of them, nvcc a library."""

import ctypes
import json
import sys
from pathlib import Path

import pytest
import torch

from harness.compile import BuildContext, build
from harness.compile.artefact import ToolchainError, Translator
from harness.compile.cost import compile_cost
from harness.compile.toolchain import nvcc
from harness.problem.module import ProblemId
from harness.result import CandidateFailure, Status
from harness.solution.discover import read_solution

# Copies the solution behind an include of answer.h, with the problem's first line as a number.
TRANSLATE = """
import sys
file, out, _, problem = sys.argv[1:5]
text = open(file).read()
if "wrong" in text:
    print("2:1: [a-rule] this is wrong\\n  fix: write something else")
    sys.exit(1)
if "breaks" in text:
    raise RuntimeError("the translator broke")
number = open(problem).readline().strip()
open(out, "w").write('#include "answer.h"\\nextern "C" int answer() { return ANSWER + ' + number + '; }\\n' + text)
"""
PLUS = "// nothing else\n"

needs_nvcc = pytest.mark.skipif(nvcc() is None, reason="needs nvcc")


@pytest.fixture
def built(server, tmp_path, monkeypatch):
    """Build a program of a solution ``a.dsl``, with a translator of this test."""
    monkeypatch.setenv("KERNELBENCH_CACHE", str(tmp_path / "cache"))
    script, headers, problem = tmp_path / "translate.py", tmp_path / "headers", tmp_path / "problem.py"
    script.write_text(TRANSLATE)
    headers.mkdir()
    (headers / "answer.h").write_text("#define ANSWER 40\n")
    problem.write_text("2\n")
    translator = Translator((sys.executable, str(script)), (f"-I{headers}",), (headers,))

    def built(text, translators=None, problem=problem):
        path = tmp_path / "a.dsl"
        path.write_text(text)
        solution = read_solution(path, problem=ProblemId(1, 19))
        given = {"dsl": translator} if translators is None else translators
        return build(solution, BuildContext(server, None, torch.__version__, 60, 4 << 30, translators=given), problem)

    built.headers = headers
    return built


@needs_nvcc
def test_what_a_translator_writes_is_compiled_with_its_headers(built):
    artefact = built(PLUS)
    assert ctypes.CDLL(str(artefact.library)).answer() == 42
    assert not artefact.cached and built(PLUS).cached


@pytest.mark.slow
@needs_nvcc
def test_a_changed_header_is_noticed(built):
    built(PLUS)
    (built.headers / "answer.h").write_text("#define ANSWER 50\n")
    again = built(PLUS)
    assert not again.cached and ctypes.CDLL(str(again.library)).answer() == 52


@needs_nvcc
def test_a_wrong_program_fails_with_its_findings_and_starts_no_compiler(built):
    with pytest.raises(CandidateFailure, match=r"\[a-rule\] this is wrong") as failed:
        built("wrong\n")
    assert failed.value.status is Status.BUILD_ERROR and "fix: write something else" in failed.value.message


@needs_nvcc
def test_a_translator_that_breaks_says_so(built):
    with pytest.raises(CandidateFailure, match="cannot be translated: RuntimeError: the translator broke"):
        built("breaks\n")


@needs_nvcc
def test_errors_of_the_compiler_are_the_candidates(built):
    with pytest.raises(CandidateFailure) as failed:
        built("int number = nothing;\n")
    assert failed.value.status is Status.BUILD_ERROR and "nothing" in failed.value.message


@pytest.mark.parametrize(("translators", "message"), [
    ({}, "nothing here translates .dsl files"),
    ({"dsl": Translator((), missing="pip install something")}, "pip install something"),
])  # fmt: skip
def test_what_this_machine_lacks_is_not_the_candidates_failure(built, translators, message):
    with pytest.raises(ToolchainError, match=message):
        built(PLUS, translators)


def test_a_translator_can_be_told_to_another_process():
    translator = Translator(("python", "-m", "x"), ("-Ia",), (Path("/a"),), "nothing")
    assert Translator.from_json(json.loads(json.dumps(translator.to_json()))) == translator


@pytest.mark.parametrize(("arch", "seconds", "gib"), [("sm_90a", 60, 4), ("sm_80", 20, 1)])
def test_the_build_queue_knows_what_a_program_costs(tmp_path, arch, seconds, gib):
    path = tmp_path / "1_1.dsl"
    path.write_text(f"gemm().with_arch({arch})\n")
    cost = compile_cost(read_solution(path))
    assert cost.seconds == seconds and cost.memory_bytes >> 30 == gib


def test_a_program_is_a_solution_for_cuda_and_its_comment_names_the_problem(tmp_path):
    path = Path(tmp_path / "fused.dsl")
    path.write_text("# kb: problem=2/76 sample=3\ngemm()\n")
    solution = read_solution(path)
    assert (solution.kind, solution.language, solution.device) == ("dsl", "cuda", "cuda")
    assert (str(solution.problem), solution.sample) == ("2/76", 3)
