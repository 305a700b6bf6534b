"""Evaluations of one workload share what does not depend on the candidate."""

import torch

from harness.judge.conditions import Conditions
from harness.judge.reference import prepare as preparing
from harness.judge.reference.prepare import prepare

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
