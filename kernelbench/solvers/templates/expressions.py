"""Elementwise operators in C."""

from __future__ import annotations

from collections.abc import Callable

from harness.sol.operators import Operator

# Of their arguments; numbers come as literals.
_C: dict[str, Callable[..., str]] = {
    "abs": lambda x: f"fabsf({x})",
    "neg": lambda x: f"-{x}",
    "exp": lambda x: f"expf({x})",
    "log": lambda x: f"logf({x})",
    "sqrt": lambda x: f"sqrtf({x})",
    "rsqrt": lambda x: f"1.f / sqrtf({x})",
    "reciprocal": lambda x: f"1.f / {x}",
    "tanh": lambda x: f"tanhf({x})",
    "sigmoid": lambda x: f"1.f / (1.f + expf(-{x}))",
    "silu": lambda x: f"{x} / (1.f + expf(-{x}))",
    "relu": lambda x: f"fmaxf({x}, 0.f)",
    "leaky_relu": lambda x, slope="0.01f": f"{x} > 0.f ? {x} : {slope} * {x}",
    "elu": lambda x, a="1.f", s="1.f", i="1.f": f"{x} > 0.f ? {s} * {x} : {a} * {s} * expm1f({i} * {x})",
    "hardsigmoid": lambda x: f"fminf(fmaxf({x} + 3.f, 0.f), 6.f) / 6.f",
    "hardswish": lambda x: f"{x} * fminf(fmaxf({x} + 3.f, 0.f), 6.f) / 6.f",
    "hardtanh": lambda x, low="-1.f", high="1.f": f"fminf(fmaxf({x}, {low}), {high})",
    "softplus": lambda x, b="1.f", t="20.f": f"{b} * {x} > {t} ? {x} : log1pf(expf({b} * {x})) / {b}",
    "mish": lambda x: f"{x} * tanhf({x} > 20.f ? {x} : log1pf(expf({x})))",
    "clamp_min": lambda x, low: f"fmaxf({x}, {low})",
    "clamp_max": lambda x, high: f"fminf({x}, {high})",
    "maximum": lambda x, y: f"fmaxf({x}, {y})",
    "minimum": lambda x, y: f"fminf({x}, {y})",
    "add": lambda x, y: f"{x} + {y}",
    "sub": lambda x, y: f"{x} - {y}",
    "rsub": lambda x, y: f"{y} - {x}",
    "mul": lambda x, y: f"{x} * {y}",
    "div": lambda x, y: f"{x} / {y}",
    "xlogy": lambda x, y: f"{x} == 0.f ? 0.f : {x} * logf({y})",
}
ELEMENTWISE = {*_C, "pow", "gelu", "clamp"}
_PLAIN_OPTIONS = {"dtype", "layout", "device", "pin_memory"}


def in_c(operator: Operator, operands: list[str | None]) -> str | None:
    """The operator as a C expression; None where its arguments have none."""
    options = {key: value for key, value in operator.options.items() if key not in _PLAIN_OPTIONS and value is not None}
    if operator.name == "pow" and not options:
        return _power(operands[0], operator.arguments[1])
    if operator.name == "gelu":
        return _gelu(operands[0], options.pop("approximate", "none"))
    if operator.name == "clamp" and not options:
        x, low, high = (*operands, None, None)[:3]
        x = f"fmaxf({x}, {low})" if low else x
        return f"fminf({x}, {high})" if high else x
    if options or None in operands:
        return None
    return _C[operator.name](*operands)


def _power(x: str, exponent: object) -> str | None:
    if not isinstance(exponent, (int, float)):
        return None
    if exponent in (2, 3):
        return " * ".join([x] * int(exponent))
    return f"sqrtf({x})" if exponent == 0.5 else f"powf({x}, {literal(exponent)})"


def _gelu(x: str, approximate: str) -> str:
    if approximate == "tanh":
        return f"0.5f * {x} * (1.f + tanhf(0.7978845608f * ({x} + 0.044715f * {x} * {x} * {x})))"
    return f"0.5f * {x} * (1.f + erff({x} * 0.7071067812f))"


def literal(number: int | float) -> str:
    """A number as a float of C."""
    text = repr(float(number))
    return (text.removesuffix(".0") + "." if text.endswith(".0") else text) + "f"
