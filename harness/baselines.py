"""Baselines of a candidate: the reference, eager and as ``torch.compile`` makes it.

A baseline is a function from the reference model to what is called, and its line in ``BASELINES``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the command line lists the names, and is quick
    import torch

EAGER = "eager"
FORMAT = 2  # of the record of one that is measured alone
COMPILING_CALLS = 3  # until nothing is compiled, recorded or tuned any more
_ERROR_CHARACTERS = 2000


def describe_error(error: Exception) -> str:
    """Describe why a baseline does not compile or run, short enough for a record."""
    return f"{type(error).__name__}: {error}"[:_ERROR_CHARACTERS]


def _eager(model: torch.nn.Module) -> Callable:
    return model


def _compiled(**options: Any) -> Callable[[torch.nn.Module], Callable]:
    def compile_(model: torch.nn.Module) -> Callable:
        import torch

        torch._dynamo.reset()  # its cache of other models' code would count against this one's
        compiled = torch.compile(model, **options)

        def forward(*inputs):
            torch.compiler.cudagraph_mark_step_begin()  # outputs of earlier calls are no longer needed
            return compiled(*inputs)

        return forward

    return compile_


BASELINES: dict[str, Callable[[torch.nn.Module], Callable]] = {
    EAGER: _eager,
    "compile": _compiled(),
    "compile-reduce-overhead": _compiled(mode="reduce-overhead"),
    "compile-max-autotune": _compiled(mode="max-autotune"),
    "compile-max-autotune-no-cudagraphs": _compiled(mode="max-autotune-no-cudagraphs"),
    "compile-cudagraphs": _compiled(backend="cudagraphs"),
}
