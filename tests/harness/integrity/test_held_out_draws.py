"""The loop over held-out workloads: what is replaced, what ends it, and what an entry says."""

import pytest
import torch

from harness.faults import MachineFault, NoRoom
from harness.integrity.held_out import evaluate_held_out
from harness.judge.conditions import Conditions
from harness.problem.module import ProblemError, load_problem
from harness.result import Result, Status
from kernelbench import suite

SEED = 3


@pytest.fixture
def held_out():
    """``held_out(ends, count)``: the entries, where the evaluations end as ``ends`` say, the last of them for ever."""
    workload = load_problem(suite.find("1/19")[0]).workload("small")
    asked = []

    def evaluate(other, conditions):
        asked.append((other.sizes, conditions.structure))
        assert conditions.baselines == ("eager",), "they are compared with something, also where the rest is stored"
        end = ends[min(len(asked), len(ends)) - 1]
        if isinstance(end, Exception):
            raise end
        return Result("1/19", "relu", {}, {}, end)

    def entries(these, count, **conditions):
        nonlocal ends
        ends = these
        return evaluate_held_out(workload, count, SEED, Conditions(torch.device("cpu"), **conditions), evaluate)

    ends = []
    entries.asked, entries.published = asked, workload.sizes
    return entries


@pytest.mark.slow
def test_each_is_of_other_sizes_or_of_another_structure(held_out):
    found = held_out([Status.OK], 7)
    assert len(found) == 7
    for (sizes, structure), entry in zip(held_out.asked, found):
        assert (sizes != held_out.published) != bool(structure)
        assert entry["draw"] == structure and sizes == held_out.published | entry["changed"]


def test_without_a_baseline_of_the_same_run_they_are_compared_with_eager(held_out):
    """Whose calls took fifty times as long on them was told that it keeps its verdict."""
    assert [entry["status"] for entry in held_out([Status.OK], 2, baselines=())] == ["ok", "ok"]


@pytest.mark.parametrize("unfit", [ProblemError("the reference fails"), NoRoom("too large")])
def test_what_the_reference_does_not_take_is_replaced(held_out, unfit):
    found = held_out([unfit, Status.OK], 3)
    assert [entry["status"] for entry in found] == ["ok"] * 3 and len(held_out.asked) == 4


def test_where_none_fits_the_memory_the_machine_is_at_fault(held_out):
    """A candidate that left no memory had no held-out workload, and a gate on them held."""
    with pytest.raises(MachineFault, match="no held-out workload could be evaluated: needs 5 GB"):
        held_out([NoRoom("needs 5 GB")], 3)


def test_a_failure_of_the_candidate_is_an_entry(held_out):
    assert [entry["status"] for entry in held_out([Status.WRONG_VALUE, Status.OK], 2)] == ["wrong_value", "ok"]


@pytest.mark.parametrize(
    "fault",
    [MachineFault("a worker does not end"), torch.OutOfMemoryError("CUDA out of memory"), OSError(28, "No space left")],
)
def test_a_workload_on_which_the_machine_fails_is_neither_replaced_nor_tried_again_within(held_out, fault):
    """A candidate that is wrong there can make the fault: it had another workload, or six tries of the same."""
    with pytest.raises(type(fault)):
        held_out([Status.OK, fault], 5)
    assert len(held_out.asked) == 2


def test_an_error_of_the_judge_itself_is_raised(held_out):
    with pytest.raises(KeyError):
        held_out([Status.OK, KeyError("a defect")], 5)


def test_a_reference_that_takes_nothing_ends_it(held_out):
    assert held_out([ProblemError("the reference fails")], 2) == []
