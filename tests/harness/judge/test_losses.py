"""The judge allows what PyTorch's own result loses on some inputs there, and not on others."""

import torch

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
    assert result.status is Status.WRONG_VALUE and "got 0, expected" in result.message, result.message


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
