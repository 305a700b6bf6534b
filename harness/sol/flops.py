"""Floating-point operations of one operator, as ``problems/README.md`` counts them.

Matrix products and convolutions are counted by PyTorch's own formulas
(``torch.utils.flop_counter``), which that table agrees with, and products with
vectors as those of matrices; everything else by
the number of elementary operations an element that the table gives. Work on
integers and booleans is no floating-point work.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import flop_registry

from harness.problem.meta_recurrent import GATES


@dataclass(frozen=True)
class Flops:
    """``contraction``: matrix products and convolutions; ``elementwise``: all else. Zero where not ``known``."""

    contraction: int = 0
    elementwise: int = 0
    known: bool = True

    @property
    def total(self) -> int:
        return self.contraction + self.elementwise


# Operations an element of the output.
_AN_OUTPUT = {
    1: """add sub rsub mul div neg abs exp log sqrt rsqrt reciprocal square pow tanh erf sin cos relu sign
          maximum minimum clamp_min clamp_max eq ne lt le gt ge masked_fill where threshold""",
    2: "hardtanh leaky_relu xlogy native_dropout",
    3: "softplus",
    4: "sigmoid hardsigmoid",
    5: "silu hardswish mish _softmax _safe_softmax _log_softmax",
}

# Operations an element of the first input.
_AN_INPUT = {
    1: """sum mean max min amax amin argmax argmin prod cumsum cumprod
          _adaptive_avg_pool2d _adaptive_avg_pool3d""",
    4: "logsumexp",
}

_VECTOR_PRODUCTS = ("mv", "addmv", "dot", "vdot")

# Moving, making and looking at elements; random numbers; bookkeeping.
_FREE = """
    view _unsafe_view reshape _reshape_alias t transpose permute expand squeeze unsqueeze select slice split
    split_with_sizes unbind unfold diagonal alias detach as_strided movedim lift_fresh narrow
    clone copy contiguous _to_copy cat stack flip roll repeat constant_pad_nd index gather index_select embedding
    tril triu diag_embed scatter index_put
    empty empty_like empty_strided new_empty new_zeros new_ones new_full new_empty_strided zeros zeros_like ones
    ones_like full full_like fill zero arange eye scalar_tensor linspace
    rand randn rand_like randn_like randint bernoulli uniform normal random trunc_normal erfinv
    bitwise_not bitwise_and bitwise_or logical_not logical_and logical_or _local_scalar_dense
"""


def count_flops(function, args: tuple, kwargs: dict, result: Any) -> Flops:
    """FLOPs of one call of an ATen operator."""
    packet = function._overloadpacket
    name = packet.__name__
    if name.endswith("_") and name[:-1] in _COUNTED:
        name = name[:-1]  # in place
    if packet in flop_registry:
        contraction = int(flop_registry[packet](*args, **kwargs, out_val=result))
        return Flops(contraction, _bias(name, args, result))
    if name in _VECTOR_PRODUCTS:  # which PyTorch's counter leaves out
        largest = max(leaf.numel() for leaf in args if isinstance(leaf, torch.Tensor))
        return Flops(2 * largest, result.numel() if name == "addmv" else 0)
    if name not in _COUNTED:
        return Flops(known=False)
    leaves = pytree.tree_leaves((args, kwargs))
    if not any(isinstance(leaf, torch.Tensor) and leaf.is_floating_point() for leaf in leaves):
        return Flops()
    return Flops(elementwise=int(_COUNTED[name](*args, **kwargs, out=_first(result))))


def count_recurrent(name: str, tokens: torch.Tensor, state, weights: list, has_bias: bool) -> Flops:
    """FLOPs of an LSTM, GRU or RNN over all its layers and directions.

    A step of one unit takes for each gate a product with the input, one with the
    hidden state, their sum and two biases, and then: LSTM three
    sigmoids (4), two tanh, two products and a sum for the cell, one product for
    the output; GRU two sigmoids (4), tanh, the product with the reset gate, and
    two products, a sum and a difference to blend with the old state; RNN its tanh
    or ReLU.
    """
    gates = GATES[name]
    steps = math.prod(tokens.shape[:-1])
    matrices = [weight for weight in weights if weight.dim() == 2]
    layers = len(matrices) // 2  # one with the input and one with the hidden state in each
    units = layers * (matrices[0].shape[0] // gates)
    gating = {"lstm": 3 * 4 + 2 + 4, "gru": 2 * 4 + 1 + 1 + 4}.get(name, 1)
    sums = gates * (3 if has_bias else 1)
    return Flops(2 * steps * sum(m.numel() for m in matrices), steps * units * (sums + gating))


def _bias(name: str, args: tuple, result: Any) -> int:
    """One an output where the operator adds a bias."""
    if name == "convolution":
        return result.numel() if args[2] is not None else 0
    return result.numel() if name in ("addmm", "baddbmm") else 0


def _first(result: Any) -> torch.Tensor | None:
    return next((leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)), None)


def _an_output(count: int) -> Callable:
    return lambda *args, out, **kwargs: count * out.numel()


def _an_input(count: int) -> Callable:
    return lambda x, *args, out, **kwargs: count * x.numel()


def _clamp(x, min=None, max=None, *, out) -> int:
    """One a bound."""
    return ((min is not None) + (max is not None)) * out.numel()


def _elu(x, alpha=1, scale=1, input_scale=1, *, out) -> int:
    """SELU is ELU with a scale."""
    return (3 if scale == 1 else 4) * out.numel()


def _gelu(x, *, approximate="none", out) -> int:
    return (5 if approximate == "none" else 8) * out.numel()


def _norm(x, weight=None, *args, out, **kwargs) -> int:
    """Statistics and scaling 5, weight and bias 2."""
    return (5 if weight is None else 7) * x.numel()


def _layer_norm(x, shape, weight=None, *args, out, **kwargs) -> int:
    return _norm(x, weight, out=out)


def _vector_norm(x, order=2, *args, out, **kwargs) -> int:
    """Absolute value or square, and sum, an input element; root an output."""
    return 2 * x.numel() + (out.numel() if order != 1 else 0)


def _pool(dimensions: int) -> Callable:
    """Window size an output; one number stands for all dimensions of the window."""

    def count(x, kernel_size, *args, out, **kwargs) -> int:
        sizes = kernel_size if len(kernel_size) > 1 else kernel_size * dimensions
        return math.prod(sizes) * out.numel()

    return count


def _smooth_l1(x, target, *args, out, **kwargs) -> int:
    """Difference, absolute value, comparison, square and halving, sum."""
    return 6 * x.numel()


def _nll(x, target, *args, out, **kwargs) -> int:
    """A sum over what is picked."""
    return target.numel()


_COUNTED: dict[str, Callable] = {
    **{name: _an_output(count) for count, names in _AN_OUTPUT.items() for name in names.split()},
    **{name: _an_input(count) for count, names in _AN_INPUT.items() for name in names.split()},
    **{name: _an_output(0) for name in _FREE.split()},
    "clamp": _clamp,
    "elu": _elu,
    "gelu": _gelu,
    "native_batch_norm": _norm,
    "_native_batch_norm_legit": _norm,
    "native_group_norm": _norm,
    "native_layer_norm": _layer_norm,
    "linalg_vector_norm": _vector_norm,
    "norm": _vector_norm,
    "avg_pool1d": _pool(1),
    "avg_pool2d": _pool(2),
    "avg_pool3d": _pool(3),
    "max_pool2d_with_indices": _pool(2),
    "max_pool3d_with_indices": _pool(3),
    "smooth_l1_loss": _smooth_l1,
    "nll_loss_forward": _nll,
}
