"""What PyTorch's own result loses, and that a candidate may lose about as much where it must."""

import pytest
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from harness.judge.reference.model import (
    CHANGED,
    PUBLISHED,
    TRIALS,
    InputCase,
    Loss,
    Reference,
    _DrawnIn,
)
from harness.problem.inputs import DTYPES
from harness.problem.module import ProblemFile, ProblemId, load_problem
from harness.timing.rounds import RunConfig

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
    return Reference(RunConfig(problem.workload(workload), CPU, DTYPES["fp32"]), 7)


def test_an_exact_operator_loses_nothing_and_a_matmul_little(problem):
    assert reference(problem("1/19")).losses(PUBLISHED, 1) == [Loss(0.0)]
    ((loss, _),) = reference(problem("1/1")).losses(InputCase("signed"), 1)
    assert 0 < loss < 1e-5 * 16  # of the root mean square, which is 16


DRAWING = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x + torch.randn(x.shape, dtype=x.dtype) + torch.rand_like(x) + torch.randn(8, 8)
def get_inputs(): return [torch.rand(8, 8)]
def get_init_inputs(): return []
"""


def test_what_a_forward_draws_itself_is_no_loss(tmp_path, problem):
    """FP64 draws other numbers of the same seed, unless it is made to draw those of FP32."""
    ((loss, _),) = reference(written(tmp_path, DRAWING), "full").losses(PUBLISHED, 1)
    assert loss < 1e-5
    ((loss, _),) = reference(problem("3/35")).losses(PUBLISHED, 1)
    assert loss < 1e-5


FILLING = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        noise = torch.empty_like(x).uniform_() + torch.empty_like(x).normal_(0, 1) + torch.empty_like(x).exponential_()
        return x + noise + torch.empty_like(x).bernoulli_(0.5)
def get_inputs(): return [torch.rand(8, 8)]
def get_init_inputs(): return []
"""


def test_nor_is_what_it_fills_a_tensor_with(tmp_path):
    ((loss, _),) = reference(written(tmp_path, FILLING), "full").losses(PUBLISHED, 1)
    assert loss < 1e-5


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_dropout_has_one_mask_in_all_precisions(problem, device, precision):
    """On a GPU it depends on the type: any mask was right, and none."""
    setting = RunConfig(problem("2/66").workload("small"), torch.device(device), DTYPES[precision])
    model = Reference(setting, 7)
    ((loss, _),) = model.losses(InputCase("signed"), 1)
    (output,) = model.outputs(InputCase("signed"), 1)
    assert loss < 0.2 * output.double().square().mean().sqrt()  # with TF32, or in BF16; another mask's is 1


@pytest.mark.parametrize("function", [F.dropout, F.dropout1d, F.dropout2d, F.dropout3d])
def test_a_mask_is_drawn_in_the_precision_of_the_call(function):
    """And is that of the call without FP64, and scaled alike."""
    x = torch.rand((2, 40, 3, 3, 3)[: {F.dropout: 5, F.dropout1d: 3, F.dropout2d: 4, F.dropout3d: 5}[function]]) + 1
    drawn = []

    class Seen(TorchFunctionMode):
        def __torch_function__(self, called, types, args=(), kwargs=None):
            drawn.extend([args[0].dtype] if called is function else [])
            return called(*args, **kwargs or {})

    torch.manual_seed(1)
    expected = function(x, 0.3)
    for inplace in (False, True):
        torch.manual_seed(1)
        with Seen(), _DrawnIn(torch.float32):
            found = function(x.double(), 0.3, inplace=inplace)
        assert found.dtype is torch.float64 and torch.allclose(found.float(), expected)
    assert set(drawn) == {torch.float32}



def test_cancellation_loses_what_it_must(tmp_path):
    ((loss, _),) = reference(written(tmp_path, CANCELLING), "full").losses(PUBLISHED, 1)
    assert 0.01 < loss < 0.1  # half of the spacing at 1e6, which is 1/16


@pytest.mark.slow
def test_a_correct_solution_passes_where_pytorch_itself_cannot_keep_the_tolerance(judged, tmp_path):
    loaded = written(tmp_path, CANCELLING)
    exact = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return {}\n"
    assert judged(loaded, exact.format("x.clone()")).correct
    assert judged(loaded, exact.format("(x.double() + 1e6 - 1e6).float()")).correct
    assert judged(loaded, exact.format("torch.zeros_like(x)")).status == "wrong_value"


def test_without_parameters_there_are_no_other_weights(problem):
    assert [t.weights for t in reference(problem("1/19")).trials(copied=True)] == ["initial"] * 9
    layer_norm = reference(problem("1/40"))
    assert layer_norm.trials(copied=True) == [*TRIALS, layer_norm.setting.rare]


def test_a_state_of_its_own_is_tried_with_other_constants_where_there_are_any(problem):
    assert CHANGED in reference(problem("1/40")).trials(copied=False)
    assert {t.weights for t in reference(problem("2/76")).trials(copied=False)} == {"initial"}, "its bias is random"


def test_where_fp64_leaves_no_room_for_fp32_a_loss_is_told_without_it(problem, monkeypatch):
    """On a GPU of 80 GB a wrong output of 8 GB took the judge out of memory, in the call after that in FP64."""
    one, calls = reference(problem("1/1")), []
    outputs = one.outputs

    def first_fails(*arguments):
        calls.append(1)
        if len(calls) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return outputs(*arguments)

    monkeypatch.setattr(one, "outputs", first_fails)
    assert one.losses(InputCase("signed"), 1) == [Loss(0.0)] and len(calls) == 3
