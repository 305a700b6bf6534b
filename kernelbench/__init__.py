"""Is this GPU kernel right, is it really faster, and can I trust that?

>>> from kernelbench import evaluate, load_problem
>>> result = evaluate("1/19", "relu.cu")
>>> result.status, result.speedup

Importing this package imports no torch; of its functions only ``load_problem`` does.
"""

import importlib

__version__ = "0.1.0"

_MODULES = {
    "Evaluator": "service.client",
    "EvaluationError": "evaluator.client",
    "Reward": "rl",
    "evaluate": "api",
    "load_problem": "api",
    "reward": "rl",
    "rewards": "rl",
}

__all__ = list(_MODULES)


def __getattr__(name: str):
    if name in __all__:
        return getattr(importlib.import_module(f"kernelbench.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'kernelbench' has no attribute '{name}'")
