"""Weights beyond their initial values: hardened ones, under which every part of a model is seen.

Ones and zeros in a norm hide that its weights were left out, gates that forget hide that
steps were, and nearly equal scores of attention that it was not computed.

Judge and worker both call these functions, under equal seeds.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from harness.problem.module import Problem

_RECURRENT = (torch.nn.RNNBase, torch.nn.RNNCellBase)
_DRIVE, _GAIN = 0.02, 1.02  # chosen: 3/34 from zeros 128 steps before is off by 1.3 times the output's size
_SHARPNESS = 5.0  # of queries and keys: of inputs in [0, 1) scores have a standard deviation of 2 instead of 0.08
_SEVERAL = 4  # channels, at least, that have a mean at each place of a kernel
# Steps that a unit of a hardened recurrent layer remembers, at most; the suite's sequences have 512. In fewer bits a
# state that changes by less each step hardly changes at all: with 1000 PyTorch's own GRU in BF16 is off by three times
# the output's size (3/40, 256 steps), with 30 by a seventh of it.
_MEMORY_STEPS = {torch.bfloat16: 30, torch.float16: 200}
_MOST_MEMORY_STEPS = 1000


@contextlib.contextmanager
def hardened_initialisation(
    memory_steps: int = _MOST_MEMORY_STEPS,
    feedback: tuple[int, int] | None = None,
    attention: tuple[int, float] | None = None,
    raised: float = 0.0,
    centred: float = 0.0,
    even: float = 0.0,
) -> Iterator[None]:
    """Within it, layers that are made start with weights that let every part of a model be seen.

    What starts as a constant (in norms, mostly) starts at random around it. Matrices
    and kernels start as He et al. (2015) propose, because PyTorch's own start lets the
    signal of a deep network fade under its biases. Gates of recurrent layers start near
    what Tallec and Ollivier (2018) propose for so many ``memory_steps``, because PyTorch's
    own forget all but the last steps; with 0 they stay. Scores of attention differ by several units. A linear
    layer of ``feedback``, the sizes of its input and of its state, turns its state and
    hardly changes its length (Saxe et al., 2014), and its input changes that little.
    One that makes queries, keys and values of an ``attention``, the size of its input and
    a factor, makes queries and keys larger by that factor. Biases of convolutions are
    ``raised`` by so much. Weights of linear layers and convolutions are ``centred`` and
    larger by that factor. What a model draws by ``torch.randn`` is ``even``: of sizes
    from one to that much more.
    During construction and not afterwards, so that a candidate which prepares its
    weights in its constructor prepares the right ones.
    """

    def he(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def start(tensor: Tensor, *_: object, **__: object) -> Tensor:
            original(tensor, nonlinearity="relu")
            return _centre(tensor, centred) if centred else tensor

        return start

    init = torch.nn.init
    changes = {
        (init, "ones_"): _random_around, (init, "zeros_"): _random_around, (init, "constant_"): _random_around,
        (init, "kaiming_uniform_"): he,
    }  # fmt: skip
    if even:
        changes[torch, "randn"] = lambda original: lambda *size, **named: _even(original(*size, **named), even)
    changes[torch.nn.MultiheadAttention, "_reset_parameters"] = _then(_sharpen)
    linear = (torch.nn.Linear, "reset_parameters")
    if feedback:
        changes[linear] = _then(functools.partial(_keep_state, sizes=feedback))
    if attention:
        changes[linear] = _then(functools.partial(_enlarge_scores, attention=attention))
    if raised:
        changes[torch.nn.modules.conv._ConvNd, "reset_parameters"] = _then(functools.partial(_raise_bias, by=raised))
    if memory_steps:
        lengthen = _then(functools.partial(_lengthen_memory, steps=memory_steps))
        changes |= {(layer, "reset_parameters"): lengthen for layer in _RECURRENT}
    originals = {place: getattr(*place) for place in changes}
    for place, change in changes.items():
        setattr(*place, change(originals[place]))
    try:
        yield
    finally:
        for place, original in originals.items():
            setattr(*place, original)


def hides_work(model: torch.nn.Module, problem: Problem) -> bool:
    """Return whether with initial weights a part of the steps, of what attention weighs, or of the units would do.

    By initial gates memory lasts some twenty steps. By initial weights all scores of attention are nearly equal, and
    units may be alike for all inputs.
    """

    def has(*kinds: type[torch.nn.Module]) -> bool:
        return any(isinstance(layer, kinds) for layer in model.modules())

    remembers = bool(problem.feedback) or has(*_RECURRENT) and not problem.forgets
    return remembers or bool(problem.attention or problem.centred or problem.even) or has(torch.nn.MultiheadAttention)


def _random_around(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda tensor, *value, **named: _spread(original(tensor, *value, **named))


def _then(change: Callable[[torch.nn.Module], None]) -> Callable[[Callable], Callable]:
    """Return what has ``change`` follow a layer's own start."""

    def changing(original: Callable[[torch.nn.Module], None]) -> Callable[[torch.nn.Module], None]:
        def reset(layer: torch.nn.Module) -> None:
            original(layer)
            with torch.no_grad():
                change(layer)

        return reset

    return changing


def _sharpen(layer: torch.nn.MultiheadAttention) -> None:
    """Have scores of attention differ by more than a series of few terms, in time linear in the tokens, can follow."""
    for weight in (layer.q_proj_weight, layer.k_proj_weight):
        if weight is not None:
            weight.mul_(_SHARPNESS)
    if layer.in_proj_weight is not None:
        layer.in_proj_weight[: 2 * layer.embed_dim].mul_(_SHARPNESS)


def _enlarge_scores(layer: torch.nn.Linear, attention: tuple[int, float]) -> None:
    """Have a linear layer of this width that makes queries, keys and values, in this order, start with larger ones."""
    width, factor = attention
    if (layer.in_features, layer.out_features) == (width, 3 * width):
        layer.weight[: 2 * width].mul_(factor)


def _raise_bias(layer: torch.nn.Module, by: float) -> None:
    """Have the outputs of a convolution be larger, so that a minimum of them is not far below zero."""
    if layer.bias is not None:
        layer.bias.add_(by)


def _centre(weight: Tensor, factor: float) -> Tensor:
    """Have weights of what a unit takes in have a mean of zero, and be larger by a factor.

    What inputs have in common, as a mean, would else decide whether a ReLU or a clamp behind it is open. It is the mean
    at each place of a kernel, as padding and strides leave out some, but where few channels come in. Those are the
    first dimension of a transposed convolution and the second of all others, and nothing here says which it is.
    """
    with torch.no_grad():
        several = [dim for dim in (0, 1) if weight.shape[dim] >= _SEVERAL]
        for dim in several:
            weight.sub_(weight.mean(dim, keepdim=True))
        if 1 not in several and weight[0].numel() > 1:
            weight.sub_(weight.mean(tuple(range(1, weight.ndim)), keepdim=True))
        return weight.mul_(factor)


def _even(drawn: Tensor, spread: float) -> Tensor:
    """Have normal numbers keep their signs and their order by size, between one and one and the ``spread``."""
    with torch.no_grad():
        return drawn.copy_(drawn.sign() * (1 + spread * torch.erf(drawn.abs() / math.sqrt(2))))


def _keep_state(layer: torch.nn.Linear, sizes: tuple[int, int]) -> None:
    """Have a linear layer of an input and a state of these sizes keep the state; others stay as they are.

    The turn is that of the weights that were drawn: layers of one seed have the same. tanh makes a state shorter, by
    less than ``_GAIN`` for states as small as inputs of ``_DRIVE`` make them.
    """
    inputs, state = sizes
    if (layer.in_features, layer.out_features) != (inputs + state, state):
        return
    turn = torch.linalg.qr(layer.weight[:, inputs:].double().cpu()).Q
    layer.weight.mul_(_DRIVE)
    layer.weight[:, inputs:] = _GAIN * turn.to(layer.weight)
    if layer.bias is not None:
        layer.bias.mul_(_DRIVE)


def steps_remembered(dtype: torch.dtype) -> int:
    """Return how many steps hardened recurrent layers remember in a precision."""
    return _MEMORY_STEPS.get(dtype, _MOST_MEMORY_STEPS)


def _lengthen_memory(layer: torch.nn.Module, steps: int) -> None:
    """Have units of an LSTM or a GRU remember 1 to so many steps.

    Without random numbers, so that cells and layers of one seed have the same weights.
    """
    kept = torch.linspace(1, steps, layer.hidden_size).log()
    for name, bias in layer.named_parameters():
        if not name.startswith("bias_ih"):
            continue
        gates = bias.view(-1, layer.hidden_size)
        if len(gates) == 4:  # of an LSTM: input, forget, cell, output
            gates[0], gates[1] = -kept / 2, kept
        elif len(gates) == 3:  # of a GRU: reset, update, new
            gates[1] = kept


def spread_constants(model: torch.nn.Module) -> None:
    """Make random around their value the parameters that a model itself made as constants."""
    for parameter in model.parameters():
        if is_constant(parameter):
            _spread(parameter)


def is_constant(tensor: Tensor) -> bool:
    """Return whether all elements are equal; False for an empty tensor."""
    return bool(tensor.numel()) and bool((tensor == tensor.flatten()[0]).all())


def _spread(tensor: Tensor) -> Tensor:
    with torch.no_grad():
        return tensor.add_(torch.randn_like(tensor), alpha=0.5)
