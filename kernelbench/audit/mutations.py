"""The mistakes that kernel authors make, each as a change of one operator call.

A mutation is a plain function from a call to what it returns instead; it raises
``Inapplicable`` where there is nothing to change. Adding one is a function and its line in
``MUTATIONS``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kernelbench.audit.operator_call import Call, Inapplicable, leading, need, refuse

_TILE, _CHUNKS = 32, 16  # elements; roundings in an emulated half-precision accumulation

# -- left out ---------------------------------------------------------------------------------
_BIASED = {"convolution", "native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit"}
_PASSED_THROUGH = {
    "relu", "gelu", "sigmoid", "tanh", "silu", "mish", "leaky_relu", "elu", "selu", "celu", "hardtanh", "hardswish",
    "hardsigmoid", "softplus", "clamp", "clamp_min", "clamp_max", "_softmax", "_log_softmax", "abs", "sqrt", "exp",
    "log", "tril", "triu", "neg", "reciprocal", "rsqrt", "pow", "cumsum", "cumprod", "flip", "masked_fill",
    "native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit", "native_dropout",
}  # fmt: skip
_REDUCING = {"logsumexp", "linalg_vector_norm", "avg_pool2d", "avg_pool3d"}
_COMBINING = {"add", "sub", "mul", "div", "maximum", "minimum", "where"}


def drop_bias(call: Call) -> Any:
    """Leave the bias out."""
    if call.name in ("addmm", "baddbmm"):
        return call.run(beta=0)
    need(call.name in _BIASED and call.arguments.get("bias") is not None)
    if call.name == "convolution":
        return call.run(bias=None)
    return call.run(bias=torch.zeros_like(call.arguments["bias"]))


def drop_scale(call: Call) -> Any:
    """Take ones for the weight of a normalisation."""
    need(call.name in _BIASED - {"convolution"} and call.arguments.get("weight") is not None)
    return call.run(weight=torch.ones_like(call.arguments["weight"]))


def skip(call: Call) -> Any:
    """Return the input in place of the result."""
    need(call.name in _PASSED_THROUGH)
    original, given = call.run(), call.first
    replaced = original if isinstance(original, Tensor) else original[0]
    need(given.shape == replaced.shape and given.dtype == replaced.dtype)
    return leading(original, lambda _: given.clone())


def drop_operand(call: Call) -> Any:
    """Return one operand of a sum or product in place of the result."""
    need(call.name in _COMBINING and len(call.tensors) >= 1)
    result, given = call.run(), call.tensors[-1] if call.name == "where" else call.tensors[0]
    need(given.shape == result.shape and given.dtype == result.dtype)
    return given.clone()


# -- computed wrongly -------------------------------------------------------------------------


def shift_epsilon(call: Call) -> Any:
    """Take ten times the epsilon."""
    if call.name in ("add", "clamp_min", "clamp"):
        name = "other" if call.name == "add" else "min"
        value = call.arguments.get(name)
        need(isinstance(value, float) and 0 < value <= 1e-2)
        return call.run(**{name: 10 * value})
    need("eps" in call.arguments)
    return call.run(eps=10 * call.arguments["eps"])


_CONSTANTS = ("other", "min", "max", "min_val", "max_val", "negative_slope", "alpha", "scale", "beta", "exponent")


def change_constant(call: Call) -> Any:
    """The first constant that is not an epsilon: a tenth larger, or a tenth instead of zero."""
    for name in _CONSTANTS:
        value = call.arguments.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e30:
            if name == "other" and isinstance(value, float) and 0 < value <= 1e-2:
                continue
            return call.run(**{name: 1.1 * value if value else 0.1})
    raise Inapplicable


def tanh_gelu(call: Call) -> Any:
    """Compute GELU by its tanh approximation."""
    need(call.name == "gelu" and call.arguments.get("approximate", "none") == "none")
    return torch.ops.aten.gelu(call.first, approximate="tanh")


_MAX_POOLS = {"max_pool2d_with_indices": F.avg_pool2d, "max_pool3d_with_indices": F.avg_pool3d}
_AVERAGE_POOLS = {"avg_pool2d": F.max_pool2d, "avg_pool3d": F.max_pool3d}
_OPPOSITES = {"sum": "mean", "mean": "sum", "amax": "amin", "amin": "amax", "argmax": "argmin", "argmin": "argmax",
              "max": "min", "min": "max"}  # fmt: skip


def other_reduction(call: Call) -> Any:
    """Mean for sum, average for maximum, and the other way round."""
    a = call.arguments
    if call.name in _MAX_POOLS | _AVERAGE_POOLS:
        pool = (_MAX_POOLS | _AVERAGE_POOLS)[call.name]
        window = {name: a[name] for name in ("stride", "padding", "ceil_mode") if a.get(name)}
        pooled = pool(a["self"], a["kernel_size"], **window)
        return leading(call.run(), lambda original: pooled if pooled.shape == original.shape else refuse())
    need(call.name in _OPPOSITES and a.get("dim") is not None)
    return getattr(torch.ops.aten, _OPPOSITES[call.name])(a["self"], a["dim"], a.get("keepdim", False))


def running_statistics(call: Call) -> Any:
    """Normalise by running statistics in place of the batch's."""
    need(call.name in ("native_batch_norm", "_native_batch_norm_legit") and call.arguments["training"])
    need(call.arguments.get("running_mean") is not None)
    return call.run(training=False)


def half_accumulation(call: Call) -> Any:
    """Products exact, sums rounded to half precision after each of ``_CHUNKS`` pieces."""
    a = call.arguments
    if call.name in ("mm", "bmm", "addmm", "baddbmm"):
        left, right = (a["mat1"], a["mat2"]) if call.name == "addmm" else call.tensors[-2:]
        total = None
        for one, two in zip(_pieces(left, -1), _pieces(right, -2)):
            total = _add_half(total, one @ two)
        if call.name in ("addmm", "baddbmm"):
            total = a.get("alpha", 1) * total + a.get("beta", 1) * a["self"]
        return total
    if call.name == "convolution":
        weight = a["weight"]
        total = None
        # a transposed convolution sums over the first dimension, any other over all but the first
        flat = torch.arange(weight.numel(), device=weight.device).reshape(weight.shape)
        position = flat // weight[0].numel() if a["transposed"] else flat % weight[0].numel()
        count = int(position.max()) + 1
        for piece in torch.arange(count, device=weight.device).chunk(min(_CHUNKS, count)):
            mask = (position >= piece[0]) & (position <= piece[-1])
            total = _add_half(total, call.run(weight=weight * mask, bias=None))
        bias = a["bias"]
        return total if bias is None else total + bias.reshape(-1, *[1] * (total.ndim - 2))
    if call.name in ("sum", "mean") and "dim" in a:
        dims = [d % a["self"].ndim for d in (a["dim"] or range(a["self"].ndim))]
        total = None
        for piece in _pieces(a["self"], dims[-1]):
            total = _add_half(total, piece.sum(dims, keepdim=a.get("keepdim", False)))
        size = torch.tensor([a["self"].shape[d] for d in dims]).prod()
        return total / size.to(total) if call.name == "mean" else total
    raise Inapplicable


def half_precision(call: Call) -> Any:
    """The operands of one operator rounded to half precision, as in a kernel that works in it throughout."""
    need(call.name in _PASSED_THROUGH | _COMBINING | _REDUCING)
    need(any(t.is_floating_point() and t.ndim for t in call.tensors))
    rounded = {name: _rounded(value) for name, value in call.arguments.items()}
    return call.run(**rounded)


def _rounded(value: Any) -> Any:
    return value.half().to(value.dtype) if isinstance(value, Tensor) and value.is_floating_point() else value


def _pieces(tensor: Tensor, dim: int) -> tuple[Tensor, ...]:
    return tensor.chunk(min(_CHUNKS, tensor.shape[dim]), dim)


def _add_half(total: Tensor | None, addend: Tensor) -> Tensor:
    return (addend if total is None else total + addend).half().to(addend.dtype)


# -- computed in the wrong place --------------------------------------------------------------

WORK = {
    "mm", "bmm", "addmm", "baddbmm", "convolution", "sum", "mean", "amax", "amin", "max", "min", "prod", "logsumexp",
    "_softmax", "_log_softmax", "native_layer_norm", "native_group_norm", "native_batch_norm",
    "_native_batch_norm_legit", "max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d", "avg_pool3d",
    "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "cumsum", "cumprod", "linalg_vector_norm", "argmax", "argmin",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_flash_attention", "mkldnn_rnn_layer", "_cudnn_rnn", "embedding", "upsample_bilinear2d",
    "upsample_nearest2d", "grid_sampler_2d", "cat",
} | (_PASSED_THROUGH - {"masked_fill"}) | _COMBINING  # fmt: skip
_WINDOWED = {"convolution", "max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d", "avg_pool3d"}


def _blank(result: Any, where: Callable[[Tensor], tuple]) -> Any:
    """``result`` with zeros ``where`` its first tensor was not written."""

    def change(output: Tensor) -> Tensor:
        need(output.ndim and output.numel() > 1)
        output = output.clone()
        output[where(output)] = 0
        return output

    return leading(result, change)


def skip_last_row(call: Call) -> Any:
    """Leave the last row out."""
    need(call.name in WORK)
    return _blank(call.run(), lambda output: (-1,) if output.shape[0] > 1 else refuse())


def skip_last_tile(call: Call) -> Any:
    """Leave the last tile of each row out."""
    need(call.name in WORK)
    return _blank(call.run(), lambda output: (..., slice(-min(_TILE, output.shape[-1] // 2), None)))


def skip_ragged_edge(call: Call) -> Any:
    """One element, the last of the last row: what a bounds check that is off by one misses."""
    need(call.name in WORK)
    return _blank(call.run(), lambda output: (-1,) * output.ndim)


_ALONG_ONE = {
    "_softmax", "_log_softmax", "cumsum", "cumprod", "logsumexp", "sum", "mean", "amax", "amin", "flip",
}  # fmt: skip


def swap_axis(call: Call) -> Any:
    """Another dimension, or a transposed operand, where the shapes do not give it away."""
    a = call.arguments
    if call.name in ("mm", "bmm"):
        left = call.tensors[0]
        need(left.shape[-1] == left.shape[-2])
        return call.func(left.mT, *call.tensors[1:])
    if call.name in _ALONG_ONE:
        name = "dims" if call.name == "flip" else "dim"
        need(a.get(name) is not None)
        single = isinstance(a[name], int)
        dim = (a[name] if single else a[name][0]) % a["self"].ndim
        expected = call.run()
        for other in range(a["self"].ndim):
            if other != dim and (single or len(a[name]) == 1):
                result = call.run(**{name: other if single else [other]})
                if result.shape == expected.shape and a["self"].shape[other] > 1:
                    return result
    if call.name == "cat":
        tensors = a["tensors"]
        need(len(tensors) > 1)
        return call.run(tensors=[*tensors[1:], tensors[0]])
    raise Inapplicable


def off_by_one_window(call: Call) -> Any:
    """A window that is one element to the right; a reduction that leaves its last element out."""
    a = call.arguments
    if call.name in _WINDOWED:
        need(call.first.shape[-1] > 1)
        name = "input" if call.name == "convolution" else "self"
        return call.run(**{name: call.first.roll(1, -1)})
    need(call.name in ("sum", "mean", "amax", "amin", "max", "min", "prod", "logsumexp") and a.get("dim") is not None)
    dim = a["dim"] if isinstance(a["dim"], int) else a["dim"][-1]
    need(a["self"].shape[dim] > 1)
    return call.run(self=a["self"].narrow(dim, 0, a["self"].shape[dim] - 1))


def short_sum(call: Call) -> Any:
    """The last term of a sum of products left out."""
    if call.name in ("mm", "bmm"):
        left, right = call.tensors
        need(left.shape[-1] > 1)
        return call.func(left[..., :-1], right[..., :-1, :])
    if call.name == "addmm":
        left, right = call.arguments["mat1"], call.arguments["mat2"]
        need(left.shape[-1] > 1)
        return call.run(mat1=left[:, :-1], mat2=right[:-1])
    need(call.name == "convolution" and call.arguments["weight"][0].numel() > 1)
    weight = call.arguments["weight"].clone()
    weight[(slice(None), -1, *[-1] * (weight.ndim - 2))] = 0
    return call.run(weight=weight)


def shift_rows(call: Call) -> Any:
    """Every sample gets the result of its neighbour."""
    need(call.name in WORK)
    result = call.run()
    return leading(result, lambda output: output.roll(1, 0) if output.ndim and output.shape[0] > 1 else refuse())


def published_range(call: Call) -> Any:
    """Right on [0, 1), where most published inputs lie, and nowhere else."""
    need(call.name in _PASSED_THROUGH and call.first.is_floating_point())
    return call.run(**{next(iter(call.arguments)): call.first.clamp(0, 1)})


_CHEAP: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": F.hardsigmoid,
    "tanh": F.hardtanh,
    "silu": F.hardswish,
    "mish": F.silu,
    "gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "softplus": torch.relu,
    "elu": F.leaky_relu,
    "selu": F.elu,
    "hardswish": F.silu,
    "hardsigmoid": torch.sigmoid,
    "exp": lambda x: 1 + x + x * x / 2 + x * x * x / 6,
}


def cheap_approximation(call: Call) -> Any:
    """Compute a function by a cheaper one that is close near zero."""
    need(call.name in _CHEAP)
    return _CHEAP[call.name](call.first)


def exclusive_scan(call: Call) -> Any:
    """Leave an element itself out of its prefix."""
    need(call.name in ("cumsum", "cumprod"))
    return call.run().roll(1, call.arguments["dim"])


def other_attention(call: Call) -> Any:
    """A causal mask where there is none, or none where there is one."""
    need("is_causal" in call.arguments or "scaled_dot_product" in call.name)
    return call.run(is_causal=not call.arguments.get("is_causal", False))


MUTATIONS: dict[str, Callable[[Call], Any]] = {
    "bias dropped": drop_bias,
    "scale dropped": drop_scale,
    "skipped": skip,
    "operand dropped": drop_operand,
    "epsilon times 10": shift_epsilon,
    "constant changed": change_constant,
    "tanh GELU for erf": tanh_gelu,
    "other reduction": other_reduction,
    "running statistics": running_statistics,
    "half-precision accumulation": half_accumulation,
    "half-precision operands": half_precision,
    "last row skipped": skip_last_row,
    "last tile skipped": skip_last_tile,
    "last element skipped": skip_ragged_edge,
    "axis swapped": swap_axis,
    "window off by one": off_by_one_window,
    "sum cut short": short_sum,
    "rows shifted": shift_rows,
    "published range only": published_range,
    "cheap approximation": cheap_approximation,
    "scan exclusive": exclusive_scan,
    "causality flipped": other_attention,
}
