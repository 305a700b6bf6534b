"""KernelBand: a bandit over clusters of kernels and six strategies, with strategies masked where hardware is saturated.

KernelBand (2025), algorithm 1. Every constant and every point that the paper leaves open is an option of
``kernelbench.solvers.kernelband.settings``, such as ``--set k=1`` (no clustering), ``--set profile=off`` (no profiling)
and ``--set select=llm`` (the model names the strategy). Needs ``pip install 'kernelbench[llm,search]'``.
"""

from kernelbench.solvers.kernelband.model_author import ModelAuthor
from kernelbench.solvers.kernelband.search import search
from kernelbench.solvers.kernelband.settings import Settings


def solve(task):
    settings = Settings.of(task.options)
    yield from search(task, settings, ModelAuthor(task, settings))
