"""The record of a baseline is of the module that was timed, and of what it failed of."""

import pytest
import torch

from harness.baselines import EAGER
from harness.judge.reference import time_baseline
from harness.judge.reference.time_baseline import blank_measurement, measure

MODULE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return x + {}
def get_inputs(): return [torch.rand(8)]
def get_init_inputs(): return []
"""


def test_a_baseline_has_the_digest_of_the_text_that_was_loaded(write_problem):
    """Its times stood for the text that the file had when they were written down."""
    loaded = write_problem(MODULE.format(1))
    saved = write_problem(MODULE.format(2))
    record = blank_measurement(loaded.workload("full"), EAGER, torch.device("cpu"), "fp32")
    assert record["sha256"] == loaded.sha256 != saved.sha256


@pytest.mark.parametrize(("error", "again"), [(MemoryError("no room"), True), (ValueError("no"), False)])
def test_a_lack_of_memory_is_worth_another_try(write_problem, monkeypatch, error, again):
    def fail(*_):
        raise error

    monkeypatch.setattr(time_baseline, "_fill", fail)
    record = measure(write_problem(MODULE.format(1)).workload("full"), EAGER, torch.device("cpu"), "fp32", 1 << 30, 0.1)
    assert record["error"] == f"{type(error).__name__}: {error}" and record.get("again", False) is again
