"""Small problems, written as the body of their forward."""

import pytest
import torch

from harness.sol.operators import trace

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


@pytest.fixture
def workload(write_problem):
    """The workload of a problem whose Model.forward has the given body; ``inputs`` is the source of their list."""

    def workload(forward, inputs="torch.rand(8, 4)", init="pass", arguments="x", more=""):
        source = (
            f"{HEAD}class Model(nn.Module):\n"
            f"    def __init__(self):\n        super().__init__()\n        {init}\n"
            f"    def forward(self, {arguments}):\n        {forward}\n"
            f"def get_inputs(): return [{inputs}]\ndef get_init_inputs(): return []\n{more}\n"
        )
        return write_problem(source).workload("full")

    return workload


@pytest.fixture
def traced(workload):
    """The trace of such a workload."""
    return lambda *args, dtype=torch.float32, **kwargs: trace(workload(*args, **kwargs), dtype)
