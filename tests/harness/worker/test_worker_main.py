"""Memory that a worker keeps of a burst."""

from types import SimpleNamespace

import pytest
import torch

from harness.worker import main
from harness.worker.main import Candidate


@pytest.fixture
def closed():
    return []


@pytest.fixture
def candidate(closed, monkeypatch):
    """A candidate without a model, beside shared memory that tells when it is closed."""

    def opened(handle, fds):
        view, close = (lambda slot: torch.empty(slot.shape)), (lambda: closed.append(handle))
        return SimpleNamespace(view=view, close=close)

    monkeypatch.setattr(main, "OpenedSharedTensors", opened)
    made = Candidate([], print)
    made._device, made._inputs_like = torch.device("cpu"), [torch.empty(4, device="meta")]
    return made


def outputs_of_a_burst(candidate):
    candidate._burst_left = [[torch.empty(4)]]


@pytest.mark.parametrize("end", ["close_burst", "clear"])
def test_a_burst_is_given_up_once(candidate, closed, end):
    candidate.open_burst("first", 2)
    outputs_of_a_burst(candidate)
    getattr(candidate, end)()
    assert closed == ["first"] and not candidate._burst_left and not candidate._burst_inputs
    candidate.clear()
    assert closed == ["first"]


def test_a_burst_that_was_left_open_is_given_up_before_the_next(candidate, closed):
    """Its inputs and outputs counted as memory that the candidate keeps."""
    candidate.open_burst("first", 2)
    outputs_of_a_burst(candidate)
    candidate.open_burst("second", 1)
    assert closed == ["first"] and not candidate._burst_left and len(candidate._burst_inputs) == 1
