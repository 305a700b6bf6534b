"""The record of a baseline is of the module that was timed."""

import torch

from harness.baselines import EAGER
from harness.judge.reference.time_baseline import blank_measurement

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
