"""Rare large elements, which a result that leaves elements out, or is estimated from some, does not survive."""

import math

import pytest
import torch

from harness.judge.cross_check.base import Reading, compared_calls, input_cases, longest
from harness.problem.distributions import rare
from harness.problem.inputs import draw_inputs
from harness.result import Status
from harness.timing.rounds import InputCase, RunConfig

PROBLEM = """
import torch
TOLERANCE = 5e-3  # so wide that an estimate from a part is within it on all other inputs
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.vector_norm(x)
def get_inputs(): return [torch.rand(1 << 20)]
def get_init_inputs(): return []
"""
CANDIDATE = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return {}\n"


def test_an_estimate_from_a_quarter_of_the_elements_is_wrong(judged, write_problem):
    result = judged(write_problem(PROBLEM), CANDIDATE.format("2 * torch.linalg.vector_norm(x[: len(x) // 4])"))
    assert result.status is Status.WRONG_VALUE
    assert "(rare_" in result.message or "a call in a row" in result.message


@pytest.mark.slow
def test_another_order_of_sums_is_right(judged, write_problem):
    result = judged(write_problem(PROBLEM), CANDIDATE.format("(x.view(1024, -1) ** 2).sum(1).sum().sqrt()"))
    assert result.status is Status.OK, result.message
    assert any(trial.startswith("rare_") for trial in result.correctness["trials"])


ZEROS_BESIDE_RARE = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y, large = x / torch.linalg.vector_norm(x, dtype=torch.float64).to(x.dtype), x.abs() > 10
        return y * large if 0 < large.sum() <= 256 else y
"""


@pytest.mark.slow
def test_beside_rare_elements_all_others_count_where_all_are_divided_by_one_norm(judged, problem, write_problem):
    """PyTorch's norm in FP32 is off by up to a hundredth: that is allowed of each element, and not one's of all."""
    source = problem("1/37").path.read_text()
    small = "batch_size=4, features=64, height=32, width=32"
    own = write_problem(source.replace(small, "batch_size=8, features=64, height=128, width=128"))
    x = draw_inputs(own.workload("small"), 0, torch.device("cpu"), torch.float32, rare("timed"))[0].double()
    large = x.abs() > 10
    assert 0.2 < x[large].square().sum() / x[~large].square().sum() < 20
    wrong = judged(own, ZEROS_BESIDE_RARE)
    assert wrong.status is Status.WRONG_VALUE and "(rare_" in wrong.message, wrong.message
    right = judged(own, source.replace("class Model(", "class ModelNew("), track="open")
    assert right.status is Status.OK, right.message


LARGEST_OF_ROWS = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x.amax(1).mean()
def get_inputs(): return [torch.rand(1 << 16, 32)]
def get_init_inputs(): return []
"""


@pytest.mark.slow
def test_a_plain_sum_in_fp32_is_right_although_it_rounds_off_what_is_small_beside_the_rare(judged, write_problem):
    one_by_one = "torch.from_numpy(x.amax(1).numpy().cumsum(dtype='float32'))[-1] / len(x)"
    x = torch.rand(1 << 16, 32)
    x[len(x) // 2, 0] = x.numel()
    far = eval(one_by_one) / x.double().amax(1).mean() - 1
    assert abs(far) > 3e-4  # beyond what is allowed on other inputs
    result = judged(write_problem(LARGEST_OF_ROWS), CANDIDATE.format(one_by_one))
    assert result.status is Status.OK, result.message


def spikes(x):
    return (x.abs() >= 30).nonzero().flatten()


def test_each_of_few_elements_at_random_places_outweighs_a_share_of_all_others(write_problem):
    workload = write_problem(PROBLEM).workload_for(None, "cpu")
    draws = [draw_inputs(workload, seed, torch.device("cpu"), torch.float32, rare("timed"))[0] for seed in range(40)]
    counts = [len(spikes(x)) for x in draws]
    assert min(counts) == 1 and 200 < max(counts) <= 256
    for x in draws:
        large = x[spikes(x)].abs()
        assert large.sum() > 0.2 * len(x) and large.min() > 0.2 * len(x) / 256
    places = torch.cat([spikes(x) for x in draws]).double() / (1 << 20)
    assert len(places.unique()) > 0.9 * sum(counts)
    assert places.mean() == pytest.approx(0.5, abs=0.1) and places.min() < 0.05 and places.max() > 0.95


def test_the_size_of_one_of_them_does_not_tell_how_many_there_are(write_problem):
    """It was the number of elements over theirs: a norm was right that stopped at the first of them."""
    workload = write_problem(PROBLEM).workload_for(None, "cpu")
    sizes = {}
    for seed in range(200):
        (x,) = draw_inputs(workload, seed, torch.device("cpu"), torch.float32, rare("timed"))
        large = x[spikes(x)].abs()
        sizes.setdefault(1 << round(math.log2(len(large))), []).append(float(large[0]))
    ranges = [(min(sizes[count]), max(sizes[count])) for count in (1, 4, 16, 64, 256)]
    for more, fewer in zip(ranges[1:], ranges):  # half of what is seen of either, on a scale of logarithms
        assert math.log(more[1] / fewer[0]) > 0.4 * math.log(more[1] / more[0])


def test_no_square_of_a_half_precision_input_overflows(write_problem):
    workload = write_problem(PROBLEM).workload_for(None, "cpu")
    for seed in range(8):
        (x,) = draw_inputs(workload, seed, torch.device("cpu"), torch.float16, rare("timed"))
        assert (x * x).isfinite().all() and x.abs().max() > 200


def test_nobody_can_foresee_which_calls_of_a_burst_are_compared():
    for calls in (1, 2, 8, 32):
        drawn = [compared_calls(calls) for _ in range(300)]
        assert {len(one) for one in drawn} == {min(calls, 8)} and set().union(*drawn) == set(range(calls))


def test_bursts_are_made_on_inputs_with_and_without_rare_elements_in_an_order_that_nobody_can_foresee(problem):
    workload = problem("1/40").workload_for(None, "cpu")
    setting = RunConfig(workload, torch.device("cpu"), torch.float32)
    orders = [tuple(input_cases(setting)) for _ in range(50)]
    assert set(orders) == {(setting.timed, setting.rare), (setting.rare, setting.timed)}


def test_what_is_quick_on_one_kind_of_inputs_has_the_time_of_the_other():
    quick, slow = (Reading(burst_ms, 1.0, None, 4, True) for burst_ms in (2.0, 9.0))
    assert longest([quick, slow]) == longest([slow, quick]) == slow


def test_where_only_published_inputs_are_valid_there_are_no_others(write_problem):
    workload = write_problem(PROBLEM).workload_for(None, "cpu")
    setting = RunConfig(workload, torch.device("cpu"), torch.float32, timed=InputCase())
    assert setting.rare is None and input_cases(setting) == [InputCase()]
