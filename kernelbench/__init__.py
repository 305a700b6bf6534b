"""Is this GPU kernel right, is it really faster, and can I trust that?

>>> from kernelbench import evaluate, load_problem
>>> result = evaluate("1/19", "relu.cu")
>>> result.status, result.speedup

Importing this package imports no torch; of its functions only ``load_problem`` does.
"""

import importlib
import importlib.util

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

# What verifiers looks for in a package: a taskset among the exported names, before 0.2 a function.
_OF_VERIFIERS = {
    "KernelTaskset": "integrations.verifiers",
    "load_environment": "integrations.verifiers_environment",
}

__all__ = list(_MODULES)
if importlib.util.find_spec("verifiers"):
    __all__ += ["KernelTaskset"]


def __getattr__(name: str):
    if module := (_MODULES | _OF_VERIFIERS).get(name):
        return getattr(importlib.import_module(f"kernelbench.{module}"), name)
    raise AttributeError(f"module 'kernelbench' has no attribute '{name}'")
