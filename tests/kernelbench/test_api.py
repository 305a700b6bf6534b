"""The main job as a Python function."""

import pytest

import kernelbench
from harness.device import DeviceError
from harness.solution import SolutionError
from kernelbench.rewards import EvaluationError
from kernelbench.suite import SelectorError


def test_evaluate_a_file_against_a_problem(tmp_path):
    path = tmp_path / "mine.cpp"
    path.write_text(
        "#include <cstddef>\n"
        'extern "C" void solution(const float* x, float* y, size_t b, size_t d) {\n'
        "    for (size_t i = 0; i < b * d; i++) y[i] = x[i] > 0 ? x[i] : 0;\n}\n"
    )
    result = kernelbench.evaluate("1/19", path, device="cpu")
    assert result.correct and result.speedup > 0 and result.workload["name"] == "small"
    path.write_text("nonsense")
    assert kernelbench.evaluate("1/19", path, device="cpu").status.value == "build_error"


def test_a_machine_without_a_gpu_is_not_the_candidates_fault(tmp_path):
    path = tmp_path / "mine.cu"
    path.write_text('extern "C" void solution(const float* x, float* y, size_t b, size_t d) {}')
    with pytest.raises(DeviceError, match="mine.cu: cuda solution, needs a GPU"):
        kernelbench.evaluate("1/19", path, device="cpu")
    with pytest.raises(EvaluationError, match="needs a GPU"):
        kernelbench.reward("1/19", path.read_text(), kind="cu", device="cpu")


def test_load_problem():
    problem = kernelbench.load_problem("1/19")
    assert problem.name == "relu" and "full" in problem.workloads


def test_errors_of_the_caller_are_exceptions(tmp_path):
    with pytest.raises(SelectorError):
        kernelbench.load_problem("1/999")
    with pytest.raises(ValueError):
        kernelbench.load_problem("relu")
    with pytest.raises((SolutionError, FileNotFoundError)):
        kernelbench.evaluate("1/19", tmp_path / "nowhere.py", device="cpu")
