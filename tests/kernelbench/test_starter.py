"""Starters build as they are, and the Python one is a correct solution."""

import subprocess

import pytest

from harness.result import Status
from kernelbench import starter

TWELVE = ["1/1", "1/19", "1/23", "1/36", "1/40", "1/95", "2/63", "2/76", "2/86", "3/1", "3/43", "3/48"]


@pytest.mark.parametrize("problem_id", TWELVE)
def test_cpp_starter_compiles(problem_id, tmp_path):
    (tmp_path / "s.cpp").write_text(starter.source(problem_id, "cpp"))
    subprocess.run(["c++", "-fsyntax-only", str(tmp_path / "s.cpp")], check=True)


@pytest.mark.parametrize("problem_id", ["1/36", "2/76", "3/48"])
def test_python_starter_is_the_reference_renamed_and_ok(problem_id, judged, problem):
    text = starter.source(problem_id, "py")
    assert "WORKLOADS" not in text and "def get_" not in text
    result = judged(problem(problem_id), text)
    assert result.status is Status.OK, result.message


def test_cu_starter_of_half_precision_includes_its_header():
    text = starter.source("1/19", "cu", "fp16")
    assert "#include <cuda_fp16.h>" in text and "const __half* x" in text
    assert text.startswith("// kb: problem=1/19\n")


def test_host_code_has_no_half():
    with pytest.raises(ValueError, match="use --kind cu"):
        starter.source("1/19", "cpp", "bf16")
