"""What PyTorch's own result loses, and that a candidate may lose about as much where it must."""

import torch

from harness.draw import DTYPES
from harness.hardened import TIMED
from harness.judge.reference import CHANGED, PUBLISHED, TRIALS, Reference, Trial
from harness.problem import ProblemFile, ProblemId, load_problem
from harness.rounds import Setting

CPU = torch.device("cpu")

CANCELLING = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return (x + 1e6) - 1e6
def get_inputs():
    return [torch.rand(100)]
def get_init_inputs():
    return []
"""


def written(tmp_path, source):
    path = tmp_path / "1_x.py"
    path.write_text(source)
    return load_problem(ProblemFile(ProblemId(1, 1), "x", path))


def reference(problem, workload="small"):
    return Reference(Setting(problem.workload(workload), CPU, DTYPES["fp32"]), 7)


def test_an_exact_operator_loses_nothing_and_a_matmul_little(problem):
    assert reference(problem("1/19")).losses(PUBLISHED, 1) == [0.0]
    (loss,) = reference(problem("1/1")).losses(Trial("signed"), 1)
    assert 0 < loss < 1e-5 * 16  # of the root mean square, which is 16


def test_cancellation_loses_what_it_must(tmp_path):
    (loss,) = reference(written(tmp_path, CANCELLING), "full").losses(PUBLISHED, 1)
    assert 0.01 < loss < 0.1  # half of the spacing at 1e6, which is 1/16


def test_a_correct_solution_passes_where_pytorch_itself_cannot_keep_the_tolerance(judged, tmp_path):
    loaded = written(tmp_path, CANCELLING)
    exact = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return {}\n"
    assert judged(loaded, exact.format("x.clone()")).correct
    assert judged(loaded, exact.format("(x.double() + 1e6 - 1e6).float()")).correct
    assert judged(loaded, exact.format("torch.zeros_like(x)")).status == "wrong_value"


def test_without_parameters_there_are_no_other_weights(problem):
    assert [t.weights for t in reference(problem("1/19")).trials(copied=True)] == ["initial"] * 8
    assert reference(problem("1/40")).trials(copied=True) == list(TRIALS)


def test_a_state_of_its_own_is_tried_with_other_constants_where_there_are_any(problem):
    assert CHANGED in reference(problem("1/40")).trials(copied=False)
    assert {t.weights for t in reference(problem("2/76")).trials(copied=False)} == {"initial"}, "its bias is random"


LOGARITHM = CANCELLING.replace("(x + 1e6) - 1e6", "torch.log(x + 1)")


def test_what_is_timed_are_published_inputs_as_they_are_where_the_function_has_no_value_elsewhere(judged, tmp_path):
    narrow = reference(written(tmp_path, LOGARITHM), "full")
    narrow.choose_timed_draw(1)
    assert narrow.timed == PUBLISHED
    right = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return torch.log(x + 1)\n"
    assert judged(written(tmp_path, LOGARITHM), right).correct


def test_what_is_timed_else_has_elements_that_are_not_published(problem):
    relu = reference(problem("1/19"))
    relu.choose_timed_draw(1)
    assert relu.timed == Trial(TIMED)
