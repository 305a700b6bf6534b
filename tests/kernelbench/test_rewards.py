"""The reward: its shape, its labels, and many processes at once."""

import multiprocessing
import subprocess
import sys

import pytest
from logs import result

import kernelbench
from harness.result import Status
from kernelbench.rewards import EvaluationError, shaped

GOOD = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.clamp(min=0)\n"
CPP = (
    "#include <cstddef>\n"
    'extern "C" void solution(const float* x, float* y, size_t b, size_t d) {\n'
    "    for (size_t i = 0; i < b * d; i++) y[i] = x[i] > 0 ? x[i] : 0;\n}\n"
)
CALL = "import kernelbench; print(kernelbench.reward('1/19', {source!r}, device='cpu').label)"


@pytest.fixture
def relu(tmp_path):
    path = tmp_path / "relu.py"
    path.write_text(GOOD)
    return path


def label(source):
    return kernelbench.reward("1/19", source, device="cpu", timeout_s=60).label


def test_a_correct_candidate_is_worth_its_speedup_and_a_constant():
    found = shaped(result("1/1", 0.5, seed=3))
    assert found.value == pytest.approx(2.3, rel=0.02) and found.label == "ok"
    # one per cent of noise in each of two series of 51: a median's share is about 1.25 / sqrt(51) of it
    assert found.variance == pytest.approx(2 * (2 * 0.01 * 1.25) ** 2 / 51, rel=1)


def test_the_bound_on_the_speedup():
    found = shaped(result("1/1", 0.01))
    assert found.value == 10.3 and found.variance == 0
    assert shaped(result("1/1", 0.01), max_speedup=2).value == 2.3


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_a_failure_is_worth_nothing_and_has_its_label(status):
    found = shaped(result("1/1", 0.1, status=status, message="why"))
    assert (found.value, found.variance, found.label, found.message) == (0, 0, status.value, "why")


def test_sources_of_every_kind_are_evaluated():
    right = kernelbench.reward("1/19", CPP, kind="cpp", device="cpu")
    assert right.label == "ok" and right.value > 0.3 and right.variance >= 0
    broken = kernelbench.reward("1/19", CPP.replace("void", "nonsense"), kind="cpp", device="cpu")
    assert broken.label == "build_error" and broken.value == 0 and "nonsense" in broken.message


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_a_parent_that_has_evaluated_itself(method, relu):
    """The parent has an evaluator and PyTorch's threads already; its children must use neither."""
    kernelbench.evaluate("1/19", relu, device="cpu")
    sources = [GOOD, GOOD.replace("clamp(min=0)", "neg()")]
    assert label(GOOD) == "ok"
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map_async(label, sources, chunksize=1).get(timeout=120)
    assert found == ["ok", "wrong_value"]
    assert label(GOOD) == "ok"  # and the parent's still works


def test_independent_processes_at_once():
    started = [
        subprocess.Popen([sys.executable, "-c", CALL.format(source=source)], stdout=subprocess.PIPE, text=True)
        for source in (GOOD, "class ModelNew: nonsense(")
    ]
    assert [process.communicate(timeout=120)[0].strip() for process in started] == ["ok", "build_error"]


def test_mistakes_of_the_caller_are_exceptions():
    with pytest.raises(ValueError, match="no kind"):
        kernelbench.reward("1/19", GOOD, kind="so")
    with pytest.raises(ValueError, match="1/999"):
        kernelbench.reward("1/999", GOOD, device="cpu")
    with pytest.raises(EvaluationError, match="'tpu' is no device"):
        kernelbench.reward("1/19", GOOD, device="tpu")
    assert label(GOOD) == "ok"  # the evaluator is not lost with it
