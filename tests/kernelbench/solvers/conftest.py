"""A stand-in for the model, solves in this process, and what candidates are made of."""

import importlib.util
import sys
from pathlib import Path

import pytest

from kernelbench.execution import Options
from kernelbench.solvers.endpoint import Endpoint
from kernelbench.solvers.orchestrator import Plan, solve
from kernelbench.solvers.script import Script

ROOT = Path(__file__).parents[3]
STRATEGIES = ROOT / "scripts" / "solvers"


@pytest.fixture(scope="session")
def stand_in():
    """The module of the stand-in endpoint."""
    spec = importlib.util.spec_from_file_location("stand_in", ROOT / "scripts" / "stand_in.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def candidate(expression):
    """A module for 1/19; ``x`` is a wrong one, which is found at once."""
    return f"import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return {expression}\n"


def answer(expression):
    return f"Here it is:\n\n```python\n{candidate(expression)}```\n"


WRONG, RIGHT = answer("x"), answer("x.clamp(min=0)")


@pytest.fixture
def solved(tmp_path):
    """Run a solver on 1/19 (or others) on the CPU."""

    def solved(solver, served=None, *, budget=1, selector="1/19", out="run", resume=False, prices=None, **plan):
        endpoint = Endpoint("model", served.base_url, prices=prices) if served else None
        path = solver if isinstance(solver, Path) else STRATEGIES / f"{solver}.py"
        made = Plan(Script(path), budget, endpoint, **plan)
        options = Options(device="cpu", timeout_s=20, jobs=1)
        return solve(made, selector, options, tmp_path / out, resume=resume)

    return solved
