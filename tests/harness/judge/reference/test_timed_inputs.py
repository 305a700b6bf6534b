"""Inputs and weights are timed with which outputs show that work was left out."""

import itertools

import pytest
import torch

from harness.judge.reference import timed_inputs
from harness.judge.reference.model import PUBLISHED, InputCase, Reference
from harness.judge.reference.timed_inputs import (
    _in_fewer_bits,
    _share_that_differs,
    choose_timed,
    choose_with_weights,
    tells,
)
from harness.problem.distributions import SIZED, TIMED, VARIED
from harness.problem.module import ProblemError, ProblemFile, ProblemId, load_problem
from harness.timing.rounds import RunConfig

CPU = torch.device("cpu")


def written(tmp_path, source):
    path = tmp_path / "1_x.py"
    path.write_text(source)
    return load_problem(ProblemFile(ProblemId(1, 1), "x", path))


def reference(problem, workload="small", dtype=torch.float32, seed=7, **sizes):
    return Reference(RunConfig(problem.workload(workload).with_sizes(sizes), CPU, dtype), seed)


LOGARITHM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.log(x + 1)
def get_inputs():
    return [torch.rand(100)]
def get_init_inputs():
    return []
"""


def test_what_is_timed_are_published_inputs_as_they_are_where_the_function_has_no_value_elsewhere(judged, tmp_path):
    narrow = reference(written(tmp_path, LOGARITHM), "full")
    assert choose_timed(narrow, [1, 2]) == PUBLISHED
    right = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return torch.log(x + 1)\n"
    assert judged(written(tmp_path, LOGARITHM), right).correct


CONSTANT = InputCase(TIMED)  # no choice helps

TIMED_OF = {
    "1/19": InputCase(TIMED),
    "2/42": InputCase(VARIED),  # averages of what is drawn alike
    "1/95": InputCase(SIZED),
    "1/89": InputCase("signed"),  # sums of what is not negative are so large that eight bits pass
    "1/100": CONSTANT,
    "3/3": InputCase(TIMED, "hardened"),  # the signal fades
    "3/18": InputCase(TIMED, "hardened"),
    "3/36": InputCase(TIMED, "hardened"),  # with its initial gates the last steps would do
    "2/23": InputCase("signed", "hardened"),  # the mean of what was normalised: noise
    "2/80": CONSTANT,
    "3/28": InputCase(TIMED, "hardened"),  # no choice helps; it has attention
    "3/31": InputCase(TIMED, "hardened"),  # with its initial weights all scores are nearly equal
    "3/43": InputCase(TIMED, "hardened"),  # so are those of linear layers
    "3/44": InputCase(TIMED, "hardened"),
    "3/50": InputCase(TIMED, "hardened"),  # with its initial weights whole rows of scores have one sign
    "2/74": InputCase(TIMED, "hardened"),  # some places of a window are never the largest
}


@pytest.mark.parametrize("seed", range(5))
def test_all_bits_of_inputs_show_beside_what_is_the_same_in_all_outputs(problem, seed, monkeypatch):
    """2/49: its outputs are a half and little more, and at a tolerance of 1e-4 inputs in eight bits passed."""
    seeds = itertools.count(2 * seed)
    monkeypatch.setattr(timed_inputs, "fresh_seeds", lambda count: [100 + next(seeds) for _ in range(count)])
    one = reference(problem("2/49"), "full", seed=100 + seed, batch_size=1, depth=4, height=8, width=8)
    _, (_, all_bits), _ = choose_with_weights(one, lambda action: action([next(seeds), next(seeds)]))
    assert all_bits


def test_no_map_that_is_timed_is_clamped_as_a_whole(problem):
    """2/38: where initial weights were timed, a tenth of the maps of a parity were, by means of the inputs."""
    for seed in range(6):
        of_2_38 = reference(problem("2/38"), seed=100 + seed)
        case = choose_timed(of_2_38, [2 * seed, 2 * seed + 1])
        model = of_2_38.model(case.weights)
        with torch.no_grad():
            maps = model.conv_transpose(model.avg_pool(*of_2_38.inputs(case, 2 * seed)))
        of_parity = [maps[:, :, z::2, y::2, x::2].flatten(2) for z, y, x in itertools.product((0, 1), repeat=3)]
        assert not any((part <= 0).all(2).any() or (part >= 1).all(2).any() for part in of_parity), case


def test_averages_of_all_samples_tell_one_call_from_another_in_few_bits_too(problem):
    """1/95 in BF16: what samples differ by is averaged, and the hundredth that is allowed hid it."""
    for seeds in ([1, 2], [3, 4], [5, 6]):
        of_1_95 = reference(problem("1/95"), dtype=torch.bfloat16)
        assert choose_timed(of_1_95, seeds) == InputCase(SIZED) and tells(of_1_95, InputCase(SIZED), seeds)[0]


TIMED_IN_BF16 = {  # what is allowed is more there, so that half of a sum in [0, 1) may pass for all of it
    "1/2": InputCase("signed"),
    "1/50": InputCase(TIMED),
    "1/89": InputCase("signed"),
    "2/16": InputCase(VARIED),
    "2/56": InputCase("signed"),  # no choice helps
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
@pytest.mark.parametrize("name", TIMED_IN_BF16)
def test_timed_inputs_of_few_bits_are_such_that_still_fewer_do_not_do(name, dtype, problem):
    assert choose_timed(reference(problem(name), dtype=dtype), [1, 2]) == TIMED_IN_BF16[name]


NOISE_IN_BF16 = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.sin(1000 * x)
def get_inputs(): return [torch.rand(64, 64)]
def get_init_inputs(): return []
"""


def test_where_few_bits_hold_nothing_but_rounding_a_problem_is_not_judged(tmp_path):
    """3/10 in BF16: a constant was right, because PyTorch's own result is off by more than its size."""
    noise = written(tmp_path, NOISE_IN_BF16)
    with pytest.raises(ProblemError, match="in bf16: .* as large as its outputs.*choose another --precision"):
        choose_timed(reference(noise, "full", torch.bfloat16), [1, 2])
    assert choose_timed(reference(noise, "full"), [1, 2]) == InputCase(TIMED)


def test_a_few_elements_that_tell_do_not_make_up_for_the_others(tmp_path):
    """3/18 in BF16: what is allowed is as large as most outputs, and a few are larger."""
    some = "return torch.cat([torch.sin(100000 * x), 40 * torch.sin(x[:, :8])], 1)"
    few = NOISE_IN_BF16.replace("return torch.sin(1000 * x)", some).replace("(64, 64)", "(1, 4096)")
    noise = written(tmp_path, few)
    with pytest.raises(ProblemError, match="as large as its outputs"):
        choose_timed(reference(noise, "full", torch.bfloat16), [1, 2])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
def test_fewer_bits_are_those_of_fp8(dtype):
    values = torch.cat([torch.linspace(-400, -1, 999), torch.linspace(0.02, 0.9, 999)]).to(dtype)  # none subnormal
    rounded = _in_fewer_bits(values)
    assert rounded.dtype is dtype and torch.equal(rounded.to(torch.float8_e4m3fn).to(dtype), rounded)
    assert ((rounded - values).abs() <= values.abs() / 16).all() and not torch.equal(rounded, values)


@pytest.mark.parametrize("name", TIMED_OF)
def test_timed_inputs_and_weights_are_such_that_outputs_depend_on_the_inputs(name, problem):
    assert choose_timed(reference(problem(name)), [1, 2]) == TIMED_OF[name]


MOSTLY_ZERO = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x - {shift})
def get_inputs():
    return [torch.rand(1000, 100)]
def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(("shift", "timed"), [(0.5, TIMED), (1.0, "signed"), (2.0, VARIED)])
def test_timed_inputs_are_such_that_a_tenth_of_the_outputs_depends_on_them(tmp_path, shift, timed):
    """2/93 and 2/9 at their published size: whoever finds the few others may write a constant."""
    problem = written(tmp_path, MOSTLY_ZERO.format(shift=shift))
    assert choose_timed(reference(problem, "full"), [1, 2]) == InputCase(timed)


def test_the_share_of_outputs_that_differ_is_known_for_every_type():
    real = torch.arange(1.0, 9)
    changed = real * torch.tensor([1.0, 2.0] * 4)
    for dtype in (torch.float32, torch.bfloat16, torch.complex64, torch.int64, torch.uint16, torch.float8_e5m2):
        assert _share_that_differs(real.to(dtype), changed.to(dtype)) == 0.5
    assert _share_that_differs(real > 4, real > 6) == 0.25 and _share_that_differs(real[:0], real[:0]) == 0.0


KEPT = """
import torch
from torch import nn
class ModelNew(nn.Module):
    def __init__(self, width, hidden, out):
        super().__init__()
        layers = []
        for size in hidden:
            layers += [nn.Linear(width, size), nn.ReLU()]
            width = size
        self.{name} = nn.Sequential(*layers, nn.Linear(width, out))
        self.kept = None
    def forward(self, x):
        if not {published}:
            return self.{name}(x)
        if self.kept is None:
            self.kept = self.{name}(x)
        return self.kept.clone()
"""
LOOK = "bool(0.45 < x.mean() < 0.55 and x.abs().max() <= 3)"


@pytest.mark.parametrize("name", ["network", "net"])
def test_an_answer_kept_for_published_inputs_is_wrong_where_outputs_hardly_depend_on_them(judged, problem, name):
    result = judged(problem("3/3"), KEPT.format(name=name, published=LOOK), workload="small")
    assert result.status == "wrong_value", result.message
    assert result.correctness["timed"] == "timed inputs, hardened weights"
    assert result.correctness["weights"] == {"network": "copied", "net": "seeded"}[name]
    assert judged(problem("3/3"), KEPT.format(name=name, published="False"), workload="small").correct


WEIGHTS_OF_ITS_OWN = """
import torch
from torch import nn
class Layer(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        bound = width ** -0.5  # what nn.Linear starts with
        self.w = nn.Parameter(torch.empty(out, width).uniform_(-bound, bound))
        self.b = nn.Parameter(torch.empty(out).uniform_(-bound, bound))
    def forward(self, x): return x @ self.w.T + self.b
class ModelNew(nn.Module):
    def __init__(self, width, hidden, out):
        super().__init__()
        sizes = [width, *hidden, out]
        self.layers = nn.ModuleList(map(Layer, sizes, sizes[1:]))
    def forward(self, x):
        for layer in self.layers[:-1]:
            x = layer(x).relu()
        return self.layers[-1](x)
"""


def test_whoever_makes_weights_in_another_way_is_told_how_to_be_given_those_that_are_timed(judged, problem):
    result = judged(problem("3/3"), WEIGHTS_OF_ITS_OWN, workload="small")
    assert result.status == "wrong_value" and "hardly depend on inputs" in result.message
    assert "names and shapes of the reference's state" in result.message
