"""Facts about tensors whatever the inputs hold: constants, bounds, zeros in a triangle.

A pass over the trace from inputs to outputs. Facts come from the problem's
``DOMAIN`` (structure of inputs), from the construction of the model (masks) and
from what operators do; parameters are unknown, whatever they are initialised to.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

from harness.sol.operators import Operator, Trace, View

LOWER, UPPER, DIAGONAL, SYMMETRIC = "lower_triangular", "upper_triangular", "diagonal", "symmetric"
STRUCTURES = (LOWER, UPPER, DIAGONAL, SYMMETRIC)
_OPPOSITE = {LOWER: UPPER, UPPER: LOWER}


@dataclass(frozen=True)
class Fact:
    """Facts about one tensor; the default is nothing.

    ``fixed``: its values depend on no input and no parameter. ``structure``: what
    its last two dimensions hold nothing but zeros beside. ``masked``: the triangle
    outside of which it is minus infinity. ``low`` and ``high`` bound its values.
    ``same_as``: the tensor that has the same values in the same order, and which version of it.
    """

    fixed: bool = False
    structure: str | None = None
    masked: str | None = None
    low: float = -math.inf
    high: float = math.inf
    same_as: tuple[View, int] | None = None

    @property
    def constant(self) -> bool:
        return self.fixed or self.low == self.high


UNKNOWN = Fact()
_ZERO = Fact(fixed=True, low=0.0, high=0.0)

# Values, order and shape of the last two dimensions stay as they are.
_KEEPING = {
    "clone",
    "contiguous",
    "_to_copy",
    "detach",
    "alias",
    "lift_fresh",
    "expand",
    "slice",
    "select",
    "unsqueeze",
    "view",
}
_RESHAPING = {"_unsafe_view", "reshape", "squeeze"}
_FACTORIES = {"ones", "ones_like", "new_ones", "zeros", "zeros_like", "new_zeros", "full", "full_like", "arange", "eye"}
_REDUCTIONS = {"sum", "mean", "amax", "amin", "max", "min", "logsumexp", "prod"}
_SOFTMAX = {"_softmax": 1.0, "_safe_softmax": 1.0, "_log_softmax": 0.0}
# Zero where their input is zero; and those that are zero where their input is minus infinity.
_ZERO_TO_ZERO = {"relu", "mul", "div", "tanh", "abs", "sqrt", "neg", "gelu", "silu", "leaky_relu", "hardtanh", "elu"}
_INFINITY_TO_ZERO = {"_softmax", "_safe_softmax", "exp", "sigmoid"}

# Indices pick elements of the first operand, or say where something is put.
_PICKED = {"index_select", "index", "gather", "take", "grid_sampler_2d", "grid_sampler_3d", "_embedding_bag",
           "_embedding_bag_forward_only"}  # fmt: skip
_PLACED = {"scatter", "index_put", "index_copy", "index_fill", "masked_scatter", "put"}


class Facts:
    """Facts about every tensor of a trace."""

    def __init__(self, trace: Trace, domain: dict[str, str] | None = None):
        self._known: dict[View, Fact] = {}
        self._views: dict[int, list[View]] = defaultdict(list)  # of each storage, those in ``_known``
        self._versions: dict[int, int] = defaultdict(int)
        for operator in trace.construction:
            self._learn(operator)
        # a parameter is what training makes of it; buffers stay as they were made
        for name, view in trace.parameters.items():
            if name not in trace.buffers:
                self._set(view, UNKNOWN)
        for name, view in trace.inputs.items():
            structure = (domain or {}).get(name)
            self._set(view, Fact(structure=structure if structure in STRUCTURES else None))
        for operator in trace.operators:
            self._learn(operator)

    def of(self, view: Any) -> Fact:
        return self._known.get(view, UNKNOWN)

    def _learn(self, operator: Operator) -> None:
        fact = self._fact(operator)
        for storage in operator.writes:  # what was known about its views holds no longer
            self._versions[storage] += 1
            for view in self._views.pop(storage, ()):
                del self._known[view]
        for view in operator.outputs:
            self._set(view, fact)

    def _set(self, view: View, fact: Fact) -> None:
        if view not in self._known:
            self._views[view.storage].append(view)
        self._known[view] = fact

    def _fact(self, operator: Operator) -> Fact:
        name, arguments = operator.name.removesuffix("_"), operator.arguments
        if name in _FACTORIES:
            return Fact(fixed=True, structure=DIAGONAL if name == "eye" else None)
        if name == "scalar_tensor":
            return Fact(fixed=True, low=arguments[0], high=arguments[0])
        if name in ("zero", "fill") or not operator.inputs:
            return Fact(fixed=_deterministic(name) and len(operator.inputs) < 2)
        source = operator.inputs[0]
        known = self.of(source)
        if name in ("tril", "triu"):
            return self._triangle(name, arguments, known)
        if name == "diag_embed":
            return Fact(known.fixed, structure=DIAGONAL)
        if name in _KEEPING | _RESHAPING:
            return self._reshaped(source, operator.output, known)
        if name in ("t", "transpose", "permute"):
            swapped = _OPPOSITE.get(known.structure, known.structure) if _swaps(operator) else None
            return Fact(known.fixed, structure=swapped, low=known.low, high=known.high)
        if name in _SOFTMAX and source.shape and source.shape[arguments[1]] == 1:
            return Fact(fixed=True, low=_SOFTMAX[name], high=_SOFTMAX[name])
        if name in _REDUCTIONS and operator.output.numel == source.numel:
            return replace(known, same_as=self._root(source), structure=None, masked=None)
        if name == "sub" and self._cancels(arguments):
            return _ZERO
        if name == "mul" and any(self.of(view).low == self.of(view).high == 0 for view in operator.inputs):
            return _ZERO
        if name in ("clamp", "clamp_min", "clamp_max", "hardtanh", "relu"):
            return self._clamped(operator, known)
        return Fact(
            fixed=_deterministic(name) and all(self.of(view).constant for view in operator.inputs),
            structure=self._structure(name, operator),
            masked=self._masked(name, operator),
        )

    def _triangle(self, name: str, arguments: tuple, known: Fact) -> Fact:
        diagonal = arguments[1] if len(arguments) > 1 else 0
        upper = name == "triu"
        inside = diagonal >= 0 if upper else diagonal <= 0
        strict = diagonal == 1 if upper else diagonal == -1
        return Fact(
            known.fixed,
            structure=(UPPER if upper else LOWER) if inside else None,
            # ones, or minus infinity, strictly above the diagonal are a mask of that
            masked=(LOWER if upper else UPPER) if known.fixed and strict else None,
        )

    def _reshaped(self, source: View, output: View, known: Fact) -> Fact:
        kept = source.shape[-2:] == output.shape[-2:] or _same_corner(source, output)
        same = self._root(source) if source.numel == output.numel else None
        if kept:
            return replace(known, same_as=same)
        return replace(known, structure=None, masked=None, same_as=same)

    def _root(self, view: View) -> tuple[View, int]:
        return self.of(view).same_as or (view, self._versions[view.storage])

    def _cancels(self, arguments: tuple) -> bool:
        """x - x, also where a reduction over one element or another view stands between."""
        a, b = arguments[:2]
        return isinstance(a, View) and isinstance(b, View) and a.shape == b.shape and self._root(a) == self._root(b)

    def _clamped(self, operator: Operator, known: Fact) -> Fact:
        name, arguments = operator.name.removesuffix("_"), operator.arguments
        bounds = {
            "relu": (0.0, None),
            "hardtanh": (*arguments[1:3], *(-1.0, 1.0)[len(arguments[1:3]) :]),
            "clamp_min": (*arguments[1:2], None),
            "clamp_max": (None, *arguments[1:2]),
        }.get(name, (*arguments[1:3], None, None)[:2])
        low, high = (bound if isinstance(bound, (int, float)) else None for bound in bounds)

        def limit(value: float) -> float:
            value = value if low is None else max(value, low)
            return value if high is None else min(value, high)

        structure = known.structure if limit(0.0) == 0.0 else None
        if known.masked and low == 0:  # minus infinity becomes zero, as in the ReLU of masked scores
            structure = known.masked
        return Fact(
            fixed=known.fixed,
            structure=structure,
            low=limit(known.low),
            high=limit(known.high),
        )

    def _structure(self, name: str, operator: Operator) -> str | None:
        """Zeros of the result from zeros, or from minus infinity, of the operands."""
        known = [self.of(view) for view in operator.inputs]
        if name in ("mm", "bmm"):
            kinds = {fact.structure for fact in known}
            triangles = kinds - {DIAGONAL}
            return (triangles or kinds).pop() if len(triangles) < 2 and not triangles & {None, SYMMETRIC} else None
        if name in ("masked_fill", "where"):
            return self._chosen(operator, 0.0)
        if name in _INFINITY_TO_ZERO and known[0].masked:
            return known[0].masked
        if name == "mul":
            corner = operator.output.shape[-2:]
            whole = [self.of(view).structure for view in operator.inputs if view.shape[-2:] == corner]
            return next((kind for kind in whole if kind in (LOWER, UPPER, DIAGONAL)), None)
        return known[0].structure if name in _ZERO_TO_ZERO else None

    def _masked(self, name: str, operator: Operator) -> str | None:
        if name in ("eq", "bitwise_not", "logical_not"):
            # true outside of the triangle of ones; kept as the structure of what remains
            zero = name != "eq" or operator.arguments[1] == 0
            return self.of(operator.inputs[0]).structure if zero else None
        if name in ("masked_fill", "where"):
            return self._chosen(operator, -math.inf)
        if name in ("mul", "div", "add", "sub"):
            corner = operator.output.shape[-2:]
            masks = [self.of(view).masked for view in operator.inputs if view.shape[-2:] == corner]
            return next(filter(None, masks), None)
        return None

    def _chosen(self, operator: Operator, value: float) -> str | None:
        """The triangle outside of which a mask puts ``value``."""
        if operator.name.startswith("masked_fill"):
            mask, filled = operator.arguments[1:3]
            return self.of(mask).masked if self.of(mask).fixed and filled == value else None
        mask, inside, outside = operator.arguments
        if not self.of(mask).fixed:
            return None
        if self.of(outside).low == self.of(outside).high == value:
            return self.of(mask).structure
        return self.of(mask).masked if self.of(inside).low == self.of(inside).high == value else None


def masked_to(operator: Operator, facts: Facts) -> str | None:
    """The triangle of its operands that matters, where the result drops the rest (``tril``, a causal mask)."""
    if operator.name.removesuffix("_") not in ("masked_fill", "where", "tril", "triu", "mul", "add"):
        return None
    known = facts.of(operator.output)
    return known.masked or known.structure


def certain_share(operator: Operator, view: View, facts: Facts) -> float:
    """The part of an operand that is read whatever indices and masks hold, which may repeat or choose nothing of it."""
    name = operator.name.removesuffix("_")
    if name in ("where", "masked_fill"):
        mask = operator.arguments[name == "masked_fill"]
        known = facts.of(mask).constant and masked_to(operator, facts)
        return 1.0 if known or view == mask else 0.0
    if name == "embedding" and view is operator.inputs[0]:
        return 1 / max(view.shape[0], 1)
    if name in _PICKED:
        return float(view is not operator.inputs[0])
    if name in _PLACED:  # into places that something else may be put into later
        return float(not view.dtype.is_floating_point)
    return 1.0


def _same_corner(source: View, output: View) -> bool:
    """Return whether a slice begins where its source does, as of a mask for a shorter sequence."""
    if len(source.shape) < 2 or len(output.shape) < 2:
        return False
    return source.offset == output.offset and source.strides[-2:] == output.strides[-2:]


def _swaps(operator: Operator) -> bool:
    """Return whether just the last two dimensions change places."""
    (source, output) = operator.inputs[0], operator.output
    return (
        len(source.shape) >= 2
        and output.strides[-2:] == source.strides[:-3:-1]
        and output.strides[:-2] == source.strides[:-2]
    )


def _deterministic(name: str) -> bool:
    return not any(word in name for word in ("rand", "bernoulli", "uniform", "normal", "empty", "dropout"))


def structured_share(structure: str | None, shape: tuple[int, ...]) -> float:
    """Share of a matrix's elements that its structure leaves free; the others are zero or equal to one of these."""
    if structure is None or len(shape) < 2:
        return 1.0
    rows, columns = shape[-2:]
    if structure == DIAGONAL:
        return 1 / max(rows, columns)
    small = min(rows, columns)
    # the triangle of a square, and what lies beside it
    inside = small * (small + 1) // 2
    wide = rows <= columns
    extends = (structure == UPPER and wide) or (structure == LOWER and not wide)
    if extends:
        inside += small * (max(rows, columns) - small)
    return inside / (rows * columns)
