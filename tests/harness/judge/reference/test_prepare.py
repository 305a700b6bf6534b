"""Evaluations of one workload share what does not depend on the candidate."""

import itertools
import types

import pytest
import torch

from harness.judge.conditions import Conditions
from harness.judge.reference import prepare as preparing
from harness.judge.reference.prepare import prepare
from harness.judge.reference.timed_inputs import tells

SCALE = '''
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4))

    def forward(self, x):
        return x * self.weight


def get_inputs():
    return [torch.rand({rows}, 4)]


def get_init_inputs():
    return []
'''


def prepared(workload, **conditions):
    made = prepare(workload, Conditions(torch.device("cpu"), **conditions), is_library=False)
    made.outbox.close()
    return made


def test_a_reference_is_checked_once_for_all_candidates_of_a_workload(write_problem, monkeypatch):
    workload, checked = write_problem(SCALE.format(rows=8)).workload_for(None, "cpu"), []
    monkeypatch.setattr(preparing.soundness, "check", lambda reference, *_: checked.append(reference))
    first, second = prepared(workload), prepared(workload)
    assert len(checked) == 1 and first.facts is second.facts
    assert first.reference.setting.timed == second.reference.setting.timed == first.facts.timed
    mine, theirs = (made.reference.timed_model().weight for made in (first, second))
    assert not torch.equal(mine, theirs), "weights are each candidate's own"


def test_other_conditions_and_other_problems_are_checked_by_themselves(write_problem):
    workload = write_problem(SCALE.format(rows=8)).workload_for(None, "cpu")
    known = [prepared(workload), prepared(workload, precision="bf16"), prepared(workload, structure="ragged")]
    known.append(prepared(write_problem(SCALE.format(rows=16)).workload_for(None, "cpu")))
    assert len({id(made.facts) for made in known}) == 4
    assert [made.facts.kinds[0].shape[0] for made in known] == [8, 8, 8, 16]


OFTEN_CONSTANT = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = torch.nn.Parameter(3 * torch.randn(()))

    def forward(self, x):
        return torch.clamp(x - self.bias, -1, 1) {times}


def get_inputs():
    return [torch.rand(8, 64)]


def get_init_inputs():
    return []
"""


@pytest.fixture
def same_seeds(monkeypatch):
    """Seeds one after the other, so that the same weights are drawn in every run of a test."""
    seeds = itertools.count()
    monkeypatch.setattr(preparing, "secrets", types.SimpleNamespace(randbits=lambda bits: next(seeds)))


@pytest.mark.usefixtures("same_seeds")
def test_weights_are_such_that_outputs_depend_on_what_is_timed(write_problem):
    """2/58: with a third of its biases the clamp makes every output the same, and whoever looks at it writes that."""
    workload = write_problem(OFTEN_CONSTANT.format(times="")).workload_for(None, "cpu")
    made = [prepared(workload) for _ in range(12)]
    assert made[0].facts.tells == (True, True)
    assert all(tells(one.reference, one.facts.timed, [1, 2])[0] for one in made)
    never = prepared(write_problem(OFTEN_CONSTANT.format(times="* 0")).workload_for(None, "cpu"))
    assert never.facts.tells == (False, False), "it is judged all the same"


@pytest.mark.usefixtures("same_seeds")
def test_weights_are_such_that_outputs_depend_on_all_bits_of_what_is_timed(write_problem):
    """2/49 at 1e-4: with a third of its weights outputs are so large beside what inputs change that eight bits do."""
    source = OFTEN_CONSTANT.replace("3 * torch.randn(())", "120.0 * (torch.rand(()) < 0.25)")
    workload = write_problem(source.replace("torch.clamp(x - self.bias, -1, 1) {times}", "x + self.bias")).workload_for(
        None, "cpu"
    )
    made = [prepared(workload) for _ in range(12)]
    assert made[0].facts.tells == (True, True)
    assert all(not one.reference.model().bias.any() for one in made)


def test_cores_that_were_idle_before_have_time_to_come_to_rest(monkeypatch):
    """The next candidate was timed beside the work that one before had left the kernel: nobody waited for it."""
    patience, idle = [], iter([False, True, True, False, False])
    monkeypatch.setattr(preparing, "wait_for_idle_cores", lambda seconds: patience.append(seconds) or next(idle))
    monkeypatch.setitem(preparing._rest, "seen", False)
    assert [preparing._cores_rest() for _ in range(5)] == [False, True, True, False, False]
    assert patience == [0.3, 0.3, 3.0, 3.0, 0.3], "a machine that others use from now on is waited for once"
