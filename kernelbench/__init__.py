"""Is this GPU kernel right, is it really faster, and can I trust that?

>>> from kernelbench import evaluate, load_problem
>>> result = evaluate("1/19", "relu.cu")
>>> result.status, result.speedup

Importing this package imports no torch; its functions do.
"""

__version__ = "0.1.0"

__all__ = ["evaluate", "load_problem"]


def __getattr__(name: str):
    if name in __all__:
        from kernelbench import api

        return getattr(api, name)
    raise AttributeError(f"module 'kernelbench' has no attribute '{name}'")
