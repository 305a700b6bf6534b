"""The judge allows what PyTorch's own result loses on some inputs there, and not on others."""

import weakref

import pytest
import torch

from harness.judge.compare import check_values
from harness.judge.session import EvaluationSession
from harness.result import Status

# Right in its checks and in its first timed calls; later another answer, but for inputs with rare large elements.
LATER = """
import sys, torch
class ModelNew(torch.nn.Module):
    timed = 0
    def forward(self, x):
        frame = sys._getframe()
        while frame and frame.f_code.co_name != "play_untimed":
            frame = frame.f_back
        self.timed += frame is None
        later = self.timed > 40 and bool(x.abs().max() < 20)
        {answer}
"""
# Where the first element says so, the sine of numbers so large that FP32 does not have its digits.
OFTEN_NOISE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.sin(1e8 * x) if x[0, 0] > 0.5 else 2 * x
def get_inputs(): return [torch.rand(64, 64)]
def get_init_inputs(): return []
"""
EXACT = "return torch.sin(1e8 * x.double()).to(x.dtype) if x[0, 0] > 0.5 else 2 * x * (not {zero})"


def test_noise_is_right_where_nothing_else_is_known_and_not_for_inputs_that_have_an_answer(judged, write_problem):
    """3/24 as published: once rounding had decided one call, a constant was right in all others."""
    problem = write_problem(OFTEN_NOISE)
    honest = judged(problem, LATER.format(answer=EXACT.format(zero="0")), track="open")
    assert honest.status is Status.OK, honest.message
    result = judged(problem, LATER.format(answer=EXACT.format(zero="later")), track="open")
    assert result.status is Status.WRONG_VALUE, result.message
    assert "got 0, expected" in result.message.replace("-0,", "0,"), result.message


def test_a_copy_of_a_wrong_output_is_gone_before_memory_is_taken_to_explain_it(judged, problem, monkeypatch):
    """The failure held it: on a GPU of 80 GB, of 9 GB in the call that tells PyTorch's own loss."""
    copies, alive = [], []

    def checked(actual, *arguments):
        copies.append(weakref.ref(actual))
        check_values(actual, *arguments)

    def loss_on(session, case, seed):
        alive.append(copies[-1]() is not None)
        return loss_of(session, case, seed)

    loss_of = EvaluationSession._loss_on
    monkeypatch.setattr("harness.judge.session.check_values", checked)
    monkeypatch.setattr(EvaluationSession, "_loss_on", loss_on)
    source = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x + 1\n"
    assert judged(problem("1/19"), source, track="open").status is Status.WRONG_VALUE
    assert alive == [False]


SIZES = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        big = 1e6 * x.abs().max()
        return (x + big) - big
def get_inputs(): return [torch.rand(64, 64) * 100 ** torch.rand(())]
def get_init_inputs(): return []
"""


def test_a_loss_that_is_kept_for_other_calls_is_in_units_of_the_output(judged, write_problem):
    """Large inputs lose much, small ones as large a share and no more."""
    problem = write_problem(SIZES)
    assert judged(problem, LATER.format(answer="return x.clone()"), track="open").status is Status.OK
    shifted = judged(problem, LATER.format(answer="return x + later * (x.abs().max() < 5)"), track="open")
    assert shifted.status is Status.WRONG_VALUE, shifted
    assert 4 * 5 * 1e6 * torch.finfo(torch.float32).eps > 1 > 4 * 1e6 * torch.finfo(torch.float32).eps


# As a convolution in TF32 does it, on any device: a sine of numbers whose digits TF32 does not have, and FP32 has.
IN_TF32 = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        if torch.backends.cudnn.allow_tf32 and x.dtype is torch.float32:
            x = (x.view(torch.int32) & -0x2000).view(torch.float32)
        return torch.sin(1e5 * x)
def get_inputs(): return [torch.rand(64, 64)]
def get_init_inputs(): return []
"""
IN_FP32 = "return torch.sin(1e5 * x) * (not {zero})"


def test_where_tf32_leaves_only_noise_a_result_without_it_is_right_and_a_constant_is_not(judged, write_problem):
    """3/45 on a GPU: whatever was answered was as far from the exact result as PyTorch's own."""
    problem = write_problem(IN_TF32)
    own = judged(problem, IN_TF32.replace("Model(", "ModelNew("), track="open")
    assert own.status is Status.OK, own.message
    precise = judged(problem, LATER.format(answer=IN_FP32.format(zero="0")), track="open")
    assert precise.status is Status.OK, precise.message
    constant = judged(problem, LATER.format(answer=IN_FP32.format(zero="later")), track="open")
    assert constant.status is Status.WRONG_VALUE and "as without TF32" in constant.message, constant.message
    rounded = judged(problem, LATER.format(answer="return torch.sin(1e5 * x.bfloat16().float())"), track="open")
    assert rounded.status is Status.WRONG_VALUE, rounded.message


CONVOLUTION = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(64, 64, 3, padding=1)
    def forward(self, x):
        return torch.sin(1e4 * self.conv(x))
def get_inputs(): return [torch.rand(8, 64, 64, 64)]
def get_init_inputs(): return []
"""
IN_FP64 = """
import sys, torch
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(64, 64, 3, padding=1)
    def forward(self, x):
        weight, bias = self.conv.weight.double(), self.conv.bias.double()
        return {zero} * torch.sin(1e4 * torch.nn.functional.conv2d(x.double(), weight, bias, padding=1)).float()
"""


@pytest.mark.gpu
def test_a_convolution_in_tf32_that_is_noise_is_judged_by_the_one_in_fp32(judged, write_problem):
    problem = write_problem(CONVOLUTION)
    own = judged(problem, CONVOLUTION.replace("Model(", "ModelNew("), device="cuda", track="open")
    assert own.status is Status.OK, own.message
    precise = judged(problem, IN_FP64.format(zero="1"), device="cuda", track="open")
    assert precise.status is Status.OK, precise.message
    assert judged(problem, IN_FP64.format(zero="0"), device="cuda", track="open").status is Status.WRONG_VALUE
