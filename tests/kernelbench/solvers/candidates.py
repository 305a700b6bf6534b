"""What solvers and models of the tests propose for 1/19."""

from pathlib import Path

ROOT = Path(__file__).parents[3]
STRATEGIES = ROOT / "scripts" / "solvers"


def candidate(expression):
    """A module that computes ``expression``; ``x`` is a wrong one, which is found at once."""
    head = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
    return f"{head}        return {expression}\n"


def answer(expression):
    return f"Here it is:\n\n```python\n{candidate(expression)}```\n"


WRONG, RIGHT = answer("x"), answer("x.clamp(min=0)")
