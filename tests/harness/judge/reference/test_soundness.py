"""A reference that nobody can be held to is the problem's fault, and is refused before any candidate runs."""

import pytest
import torch

from harness.judge.reference import soundness
from harness.judge.reference.model import PUBLISHED, Reference
from harness.problem.inputs import DTYPES
from harness.problem.module import ProblemError
from harness.result import Status
from harness.timing.rounds import RunConfig

CPU = torch.device("cpu")
SOURCE = """
import random
import torch
class Model(torch.nn.Module):
    calls = 0
    def forward(self, x, index):
        {body}
def get_inputs(): return [{inputs}]
def get_init_inputs(): return []
"""
INPUTS = "torch.rand(16, 16), torch.arange(16)"
UNSOUND = {
    "overwrites its input 'x'.*x.clone": "return x.mul_(2)",
    "overwrites its input 'index'": "index.add_(1)\n        return x",
    "its output is random.*RANDOM": "return torch.nn.functional.dropout(x)",
    "is not deterministic": "return x + torch.tensor([random.random() for _ in range(16)])",  # 16 are never alike
    "is not deterministic.*state": "Model.calls += 1\n        return x + Model.calls",
    "returns NaN in 256 of 256 elements of output 0": "return (x - 2).log()",
    "returns no tensor": "return None",
    "its output 1 is a Thing": "return x, type('Thing', (), {})()",
}


def source(body, inputs=INPUTS):
    return SOURCE.format(body=body, inputs=inputs)


def check(problem):
    reference = Reference(RunConfig(problem.workload("full"), CPU, DTYPES["fp32"]), 7)
    soundness.check(reference, 5, reference.call(PUBLISHED, 5))


@pytest.mark.parametrize("reason", UNSOUND)
def test_the_problem_is_refused_with_the_reason_and_no_candidate_is_blamed(reason, judged, write_problem):
    own = source(UNSOUND[reason])
    with pytest.raises(ProblemError, match=f"the reference of 1/1 .* cannot be judged against: .*{reason}"):
        judged(write_problem(own), own.replace("class Model", "class ModelNew"))


@pytest.mark.parametrize("inputs", ["torch.full((16, 16), random.random()), torch.arange(16)", "random.random(), 1"])
def test_inputs_that_a_seed_does_not_determine_are_refused(inputs, write_problem):
    with pytest.raises(ProblemError, match="get_inputs draws another 'x' from the same seed"):
        check(write_problem(source("return torch.as_tensor(x) + 1", inputs)))


@pytest.mark.parametrize("inputs", ["[torch.rand(4)], 1", "torch.rand(4, 4).to_sparse(), 1"])
def test_inputs_that_cannot_be_handed_over_are_refused(inputs, write_problem):
    with pytest.raises(ProblemError, match="input 0 is a (list|sparse_coo)"):
        check(write_problem(source("return torch.ones(3)", inputs)))


def test_numbers_that_change_between_draws_are_refused(write_problem):
    with pytest.raises(ProblemError, match="its input 'index' is another number in each draw"):
        check(write_problem(source("return x * index", "torch.rand(4), float(torch.rand(1))")))


def test_outputs_whose_shape_depends_on_the_values_of_inputs_are_refused(judged, write_problem):
    own = source("return x[x > 0.5]", "torch.rand(1024, 1024), torch.arange(16)")  # rarely as many twice
    with pytest.raises(ProblemError, match="the shape of an output depends on the values"):
        judged(write_problem(own), own.replace("class Model", "class ModelNew"))


SOUND = {
    "dropout in eval mode": "return torch.nn.functional.dropout(x, training=False)",
    "dropout without effect": "return torch.nn.functional.dropout(x).clamp(max=0)",
    "in place on a copy": "return x.clone().mul_(2)",
    "in place without a change": "return x.relu_()",
    "infinities of its own": "return x.masked_fill(x > 0.5, -torch.inf)",
    "None beside a tensor": "return x * 2, None",
}


@pytest.mark.parametrize("name", SOUND)
def test_what_has_one_answer_is_judged(name, write_problem):
    check(write_problem(source(SOUND[name])))


NESTED = source("return {'b': (x * 2, None), 'a': [index + 1]}")


@pytest.mark.parametrize(
    ("returned", "status"),
    [
        ("{'a': (index + 1,), 'b': [x * 2, None]}", Status.OK),
        ("{'b': (x * 2, None), 'a': [index]}", Status.WRONG_VALUE),
        ("{'b': x * 2, 'a': [index + 1]}", Status.WRONG_SHAPE),
        ("(index + 1, x * 2)", Status.WRONG_SHAPE),
        ("[x * 2]", Status.WRONG_SHAPE),
        ("None", Status.WRONG_DTYPE),
    ],
)
def test_nested_outputs_are_compared_with_their_structure(returned, status, judged, write_problem):
    candidate = NESTED.replace("class Model", "class ModelNew")
    candidate = candidate.replace("{'b': (x * 2, None), 'a': [index + 1]}", returned)
    result = judged(write_problem(NESTED), candidate)
    assert result.status is status, result.message
    if status in (Status.WRONG_SHAPE, Status.WRONG_DTYPE):
        assert "expected {'a': (tensor,), 'b': (tensor, None)}" in result.message
