"""Recurrent layers without data: one step instead of thousands.

On the meta device PyTorch unrolls an LSTM into its time steps, which takes up to
half a minute to learn a shape. Under this mode each layer is one call that only
makes outputs of the right shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


class RecurrentShapes(TorchFunctionMode):
    """Replaces ``torch.lstm``, ``gru``, ``rnn_tanh`` and ``rnn_relu`` on padded sequences; their values are not set.

    ``record`` is called with name, arguments and outputs of each call. Packed
    sequences and LSTMs with projections are left to PyTorch.
    """

    def __init__(self, record: Callable[[str, tuple, tuple], None] = lambda *_: None):
        super().__init__()
        self._record = record

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name not in GATES or not _plain(args):
            return function(*args, **(kwargs or {}))
        outputs = _outputs(args)
        self._record(name, args, outputs)
        return outputs


def _plain(args: tuple) -> bool:
    """Return whether these are (tokens, state, weights, has_bias, layers, dropout, train, bidirectional, first)."""
    if len(args) != 9 or not isinstance(args[3], bool):
        return False
    states = _states(args[1])
    return all(state.shape == states[0].shape for state in states)


def _states(state: Any) -> tuple[torch.Tensor, ...]:
    return (state,) if isinstance(state, torch.Tensor) else tuple(state)


def _outputs(args: tuple) -> tuple:
    tokens, state, *_, bidirectional, _ = args
    states = _states(state)
    width = states[0].shape[-1] * (2 if bidirectional else 1)
    return (tokens.new_empty(*tokens.shape[:-1], width), *(torch.empty_like(s) for s in states))
