"""Where the outputs of a burst's calls lie on a GPU is the worker's word: what the judge makes of it."""

import pytest
import torch

from harness.judge.cross_check.remote_outputs import Allocations, RemoteOutputs
from harness.memory.cuda_ipc import DeviceMemory
from harness.result import CandidateFailure, Status

KINDS = [torch.empty(4, 4, device="meta"), torch.empty(0, device="meta")]
OURS, THEIRS, BYTES = 0x7000, 0x1000, 256


def left(**changed):
    answer = {"allocations": [[THEIRS, "inputs"]], "addresses": [[THEIRS, 0], [THEIRS + BYTES - 64, 0]]}
    answer["orders"] = [[[0, 1], [0]], [[1, 0], [0]]]
    allocations = Allocations({"inputs": DeviceMemory(OURS, BYTES)})
    return RemoteOutputs(answer | changed, 2, KINDS, allocations)


def test_an_output_lies_as_far_into_an_allocation_here_as_there():
    assert left().places == [[(OURS, 64), (0, 0)], [(OURS + BYTES - 64, 64), (0, 0)]]


@pytest.mark.parametrize(
    "changed",
    [
        {"allocations": []},
        {"allocations": None},
        {"allocations": [[THEIRS]]},
        {"allocations": [[THEIRS, "no handle"]]},
        {"allocations": [[THEIRS, "00ff"]]},
        {"allocations": [[THEIRS, ["inputs"]]]},
        {"allocations": [["there", "inputs"]]},
        {"allocations": [[THEIRS + 0.5, "inputs"]]},
        {"addresses": [[THEIRS, 0]]},
        {"addresses": [[THEIRS], [THEIRS]]},
        {"addresses": [[THEIRS, 0], [THEIRS + BYTES - 63, 0]]},
        {"addresses": [[THEIRS, 0], [THEIRS - 1, 0]]},
        {"addresses": [[THEIRS, 0], [None, 0]]},
        {"addresses": [[THEIRS, 0], [-(1 << 70), 0]]},
    ],
    ids=repr,
)
def test_what_lies_nowhere_is_the_candidates_failure(changed):
    with pytest.raises(CandidateFailure) as failure:
        left(**changed)
    assert failure.value.status is Status.CRASHED and "where the worker says they are" in failure.value.message


@pytest.mark.parametrize(
    "orders", [None, [], [[[0, 1], [0]]], [[[0, 0], [0]]] * 2, [[[0], [0]]] * 2, [[[0, 1.0], [0]]] * 2]
)
def test_an_order_of_dimensions_that_is_none_is_the_candidates_failure(orders):
    with pytest.raises(CandidateFailure, match="how the outputs of a call in a row lie"):
        left(orders=orders)


def test_of_an_answer_nothing_is_kept_that_was_not_asked_for():
    large = "x" * 1_000_000
    assert large not in repr(vars(left(more=large)))
