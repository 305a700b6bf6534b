"""Device functions that a generated epilogue calls, each emitted only where it is needed.

In FP32 they use the GPU's fast exponential and division; absolute errors stay below 3e-7 for results of size 1.
erf is approximation 7.1.26 of Abramowitz and Stegun, Handbook of Mathematical Functions (1964): error below 1.5e-7.
"""

from __future__ import annotations

from kernelbench.ucutlass.codegen.elements import literal

# name -> (arguments, functions that it calls, body in FP32, body in FP64; '' where they are the same)
_FUNCTIONS = {
    "exp": ("x", (), "return __expf(x);", "return ::exp(x);"),
    "log": ("x", (), "return ::logf(x);", "return ::log(x);"),
    "log1p": ("x", (), "return ::log1pf(x);", "return ::log1p(x);"),
    "sqrt": ("x", (), "return ::sqrtf(x);", "return ::sqrt(x);"),
    "rsqrt": ("x", (), "return ::rsqrtf(x);", "return ::rsqrt(x);"),
    "pow": ("x, y", (), "return ::powf(x, y);", "return ::pow(x, y);"),
    "sin": ("x", (), "return ::sinf(x);", "return ::sin(x);"),
    "cos": ("x", (), "return ::cosf(x);", "return ::cos(x);"),
    "floor": ("x", (), "return ::floorf(x);", "return ::floor(x);"),
    "ceil": ("x", (), "return ::ceilf(x);", "return ::ceil(x);"),
    "abs": ("x", (), "return ::fabsf(x);", "return ::fabs(x);"),
    # written so that NaN passes, as it does in PyTorch
    "min": ("x, y", (), "return x < y || x != x ? x : y;", ""),
    "max": ("x, y", (), "return x > y || x != x ? x : y;", ""),
    "div": ("x, y", (), "return x / y;", ""),
    "quotient": ("x, y", (), "return __fdividef(x, y);", "return x / y;"),
    "sigmoid": ("x", ("exp", "quotient"), "return u_quotient(1, 1 + u_exp(-x));", ""),
    "tanh": ("x", ("exp", "quotient"), "return 1 - u_quotient(2, 1 + u_exp(2 * x));", "return ::tanh(x);"),
    "erf": (
        "x",
        ("exp", "quotient"),
        "float const t = u_quotient(1.0f, 1.0f + 0.3275911f * ::fabsf(x));\n"
        "  float const p = t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + "
        "t * 1.061405429f))));\n"
        "  return ::copysignf(1.0f - p * u_exp(-x * x), x);",
        "return ::erf(x);",
    ),
    "relu": ("x", (), "return x < 0 ? 0 : x;", ""),
    "gelu": ("x", ("erf",), "return HALF * x * (1 + u_erf(x * ROOT));", ""),
    "silu": ("x", ("sigmoid",), "return x * u_sigmoid(x);", ""),
    "softplus": ("x", ("exp", "log1p"), "return x > 20 ? x : u_log1p(u_exp(x));", ""),
    # tanh(log(1 + e)) = (e² + 2e) / (e² + 2e + 2); above 20 it is 1 in FP32 and in FP64
    "mish": (
        "x",
        ("exp", "quotient"),
        "if (x > 20) return x;\n  TYPE const e = u_exp(x), s = e * (e + 2);\n  return x * u_quotient(s, s + 2);",
        "",
    ),
    "hardswish": ("x", (), "return x * (x < -3 ? 0 : x > 3 ? 1 : (x + 3) / 6);", ""),
    "leaky_relu": ("x, y", (), "return x < 0 ? y * x : x;", ""),
    "elu": ("x, y", ("exp",), "return x < 0 ? y * (u_exp(x) - 1) : x;", "return x < 0 ? y * ::expm1(x) : x;"),
}


def definitions(used: set[str], type_name: str) -> str:
    """Return the C++ definitions of the functions ``used`` and of those that they call."""
    needed: list[str] = []
    for name in sorted(used):
        _collect(name, needed)
    return "\n".join(_definition(name, type_name) for name in needed)


def _collect(name: str, needed: list[str]) -> None:
    if name in needed:
        return
    for other in _FUNCTIONS[name][1]:
        _collect(other, needed)
    needed.append(name)


def _definition(name: str, type_name: str) -> str:
    arguments, _, single, double = _FUNCTIONS[name]
    body = double if double and type_name == "double" else single
    body = body.replace("TYPE", type_name).replace("HALF", literal(0.5, type_name))
    body = body.replace("ROOT", literal(0.5**0.5, type_name))
    typed = ", ".join(f"{type_name} {argument}" for argument in arguments.split(", "))
    return f"CUTLASS_DEVICE {type_name} u_{name}({typed}) {{\n  {body}\n}}"
