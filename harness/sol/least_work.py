"""The least work that a known rewriting leaves of a trace: what the integrity floor counts.

Every discount carries its reason. Each may be larger than what any kernel
achieves; none may be smaller, because an honest kernel must not be rejected.
Elementwise work is not counted at all, since fusion and algebra can remove much
of it and what remains overlaps with the tensor cores.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from harness.problem.meta_recurrent import GATES
from harness.sol.demand import Demand
from harness.sol.facts import DIAGONAL, LOWER, UPPER, Facts
from harness.sol.operators import Operator, Trace, View
from harness.sol.regions import Convolution

_MATMULS = ("mm", "bmm", "addmm", "baddbmm")
_STRASSEN_FROM = 2048  # the smallest dimension whose halving may pay
_FFT_FROM = 5  # taps in a dimension, from which on a transform leaves little but traffic

# Operators through which a sum can be pulled, and the sums.
_LINEAR = set(
    "add sub rsub neg mul div clone _to_copy cat stack flip roll constant_pad_nd repeat copy tril triu".split()
)
_SUMS = {"sum", "mean", "avg_pool1d", "avg_pool2d", "avg_pool3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d"}


@dataclass(frozen=True)
class Discount:
    """Work that need not be done. ``factor`` of what was counted before remains."""

    where: str
    factor: float
    reason: str


def least_flops(trace: Trace, facts: Facts, demand: Demand) -> tuple[float, list[Discount]]:
    """Least FLOPs of matrix products and convolutions, and why they are less than the direct ones."""
    folding, repeated = _Folding(trace), _repeated(trace)
    total, discounts = 0.0, []
    for number, operator in enumerate(trace.operators):
        if not operator.flops.contraction:
            continue
        remaining = float(operator.flops.contraction)
        if id(operator) in repeated:
            discounts.append(Discount(f"{number} {operator.name}", 0.0, "the same product was computed before"))
            continue
        for factor, reason in _discounts(operator, facts, demand, folding):
            if factor < 1 and remaining:
                discounts.append(Discount(f"{number} {operator.name}", factor, reason))
                remaining *= factor
        total += remaining
    return total, discounts


def _repeated(trace: Trace) -> set[int]:
    """Products of the same operands as an earlier one."""
    writers = Counter(storage for operator in trace.operators for storage in operator.writes)
    writers.update(view.storage for view in (*trace.inputs.values(), *trace.parameters.values()))
    seen, repeated = set(), set()
    for operator in trace.operators:
        if operator.flops.contraction and all(writers[view.storage] < 2 for view in operator.inputs):
            key = (operator.name, repr(operator.arguments), repr(operator.options))
            (repeated.add(id(operator)) if key in seen else seen.add(key))
    return repeated


def _discounts(operator: Operator, facts: Facts, demand: Demand, folding: _Folding) -> Iterator[tuple[float, str]]:
    share = demand.share(operator)
    if share == 0:
        yield 0.0, "its result is discarded, or the same for every input"
        return
    structured, why = _structure(operator, facts)
    if structured is not None:
        # this counts the zeros of the result as well
        yield structured, why
    elif operator.name in GATES:
        yield share, "steps that nobody reads are not computed"
    else:
        yield share, "only that part of its result is read (mask, slice)"
    if _is_product(operator):
        yield folding.share(operator) / share, "a sum, mean or average pooling after it is taken before it"
        yield folding.composed(operator), "two linear operators in a row are composed ahead of the call"
        yield folding.reordered(operator), "(A B) C is computed as A (B C), as in linear attention"
    if operator.name == "convolution":
        convolution = Convolution.of(operator)
        yield convolution.valid_share, "taps that meet padding, or are cropped away, are not computed"
        yield from _fast_convolution(operator, convolution)
    yield from _strassen(operator)


def _structure(operator: Operator, facts: Facts) -> tuple[float | None, str]:
    """Share of the products that a triangle or diagonal of zeros leaves; None where there is none."""
    if operator.name not in _MATMULS:
        return None, ""
    left, right = operator.inputs[-2:]
    kinds = [facts.of(view).structure for view in (left, right)]
    (rows, inner), columns = left.shape[-2:], right.shape[-1]
    if DIAGONAL in kinds:
        return 1 / inner, "a diagonal factor scales rows or columns"
    triangles = [kind for kind, square in zip(kinds, (rows == inner, inner == columns))
                 if kind in (LOWER, UPPER) and square]  # fmt: skip
    if len(triangles) == 2 and triangles[0] == triangles[1]:
        return (inner + 1) * (inner + 2) / (6 * inner**2), "triangular x triangular: about a sixth of the products"
    if len(triangles) == 2:
        return (inner + 1) * (2 * inner + 1) / (6 * inner**2), "lower x upper: about a third of the products"
    if triangles:
        return (inner + 1) / (2 * inner), "one factor is triangular (a causal mask leaves half the scores)"
    return None, ""


def _fast_convolution(operator: Operator, convolution: Convolution) -> Iterator[tuple[float, str]]:
    """Winograd's minimal filtering F(4, r) in each dimension, and Fourier transforms for large kernels.

    F(m, r) makes m outputs with m + r - 1 products instead of m r (Winograd, 1980;
    Lavin and Gray, 2016). With a stride each phase of the input meets r / stride taps.
    """
    taps = [math.ceil(window.taps / window.stride) for window in convolution.windows]
    if max(taps, default=1) >= _FFT_FROM:
        yield 0.0, "large kernel: a Fourier transform leaves little but traffic"
    gain = math.prod(4 * r / (4 + r - 1) for r in taps)
    if gain > 1:
        yield 1 / gain, "Winograd's minimal filtering"


def _strassen(operator: Operator) -> Iterator[tuple[float, str]]:
    """7/8 a level, as often as the smallest dimension of a matrix product can be halved."""
    if operator.name in _MATMULS:
        left, right = operator.inputs[-2:]
        smallest = min(*left.shape[-2:], right.shape[-1])
    elif operator.name == "convolution" and set(operator.arguments[1].shape[2:]) <= {1}:
        out_channels, in_channels = operator.arguments[1].shape[:2]
        smallest = min(out_channels, in_channels, operator.output.numel // max(out_channels, 1))
    else:
        return
    levels = max(0, int(math.log2(smallest / _STRASSEN_FROM))) if smallest else 0
    if levels:
        yield (7 / 8) ** levels, f"Strassen's algorithm, {levels} level{'s' if levels > 1 else ''}"


class _Folding:
    """Reach of sums that follow a linear operator: how far they can be taken before it.

    For y = conv(x) or x W the mean of y over positions, or its sum over columns, is
    the same operator on a mean of x, or with a sum of W's columns; the work shrinks
    as the result does. What lies between may add, scale and copy.
    """

    def __init__(self, trace: Trace):
        self._parameters = {view.storage for view in trace.parameters.values()}
        self._returned = {view.storage for view in trace.outputs}
        self._readers: dict[int, list[Operator]] = defaultdict(list)
        for operator in trace.operators:
            if not operator.is_view:
                for storage in {view.storage for view in operator.inputs}:
                    self._readers[storage].append(operator)
        self._shares: dict[int, float] = {}
        self._composed: dict[int, float] = {}
        self._reordered: dict[int, float] = {}
        for operator in trace.operators:
            if _is_product(operator):
                self._compose(operator)

    def share(self, operator: Operator) -> float:
        """Return how many results would do, as a share of those computed."""
        if id(operator) not in self._shares:
            enough = self._enough(operator.output, frozenset(), {})
            self._shares[id(operator)] = min(1.0, enough / max(operator.output.numel, 1))
        return self._shares[id(operator)]

    def composed(self, operator: Operator) -> float:
        """Return the work that composing with a neighbour leaves: the shorter sums of the second product only."""
        return self._composed.get(id(operator), 1.0)

    def reordered(self, operator: Operator) -> float:
        """Return what another order of three factors, none of them a parameter, leaves."""
        return self._reordered.get(id(operator), 1.0)

    def _compose(self, operator: Operator) -> None:
        """Compose products where a result is used by further products only, all with parameters or all without."""
        fixed = self._with_parameters(operator)
        products = self._products_of(operator.output, frozenset(), fixed, {})
        for product in (products or {}).values():
            shorter = min(1.0, _length(operator) / _length(product))
            known = self._composed if fixed else self._reordered
            known[id(product)] = min(shorter, known.get(id(product), 1.0))
            if not fixed:  # both become as short as the first one's sums
                self._reordered[id(operator)] = shorter
        if products and fixed:
            self._composed[id(operator)] = 0.0

    def _enough(self, view: View, path: frozenset[int], known: dict[int, float]) -> float:
        """Elements of a tensor that would do in place of all, for what is made of it."""
        if view.storage not in known:
            known[view.storage] = min(self._sum_enough(view, path | {view.storage}, known), view.numel)
        return known[view.storage]

    def _sum_enough(self, view: View, path: frozenset[int], known: dict[int, float]) -> float:
        if view.storage in self._returned:
            return view.numel
        total = 0.0
        for reader in self._readers[view.storage]:
            linear = self._linear_in(reader, path)
            if reader.output.storage in path and linear:  # in place: its readers are among these
                continue
            if linear or reader.name in _SUMS:
                total += self._enough(reader.output, path, known)
            elif _is_product(reader) and self._one_operand(reader, path):
                total += view.numel * self.share(reader)
            else:
                return view.numel
        return total

    def _products_of(
        self, view: View, path: frozenset[int], fixed: bool, known: dict[int, dict[int, Operator] | None]
    ) -> dict[int, Operator] | None:
        """The products, with parameters if ``fixed``, that all of a tensor goes into; None where it goes elsewhere."""
        if view.storage not in known:  # paths may meet again, and each meeting would double what there is to follow
            known[view.storage] = self._followed(view, path | {view.storage}, fixed, known)
        return known[view.storage]

    def _followed(self, view: View, path: frozenset[int], fixed: bool, known: dict) -> dict[int, Operator] | None:
        if view.storage in self._returned or not self._readers[view.storage]:
            return None
        found = {}
        for reader in self._readers[view.storage]:
            if _is_product(reader) and self._with_parameters(reader) == fixed and self._one_operand(reader, path):
                found[id(reader)] = reader
            elif self._linear_in(reader, path) and reader.output.storage not in path:
                more = self._products_of(reader.output, path, fixed, known)
                if more is None:
                    return None
                found |= more
            else:
                return None
        return found

    def _with_parameters(self, operator: Operator) -> bool:
        return any(view.storage in self._parameters for view in operator.inputs if len(view.shape) > 1)

    def _linear_in(self, operator: Operator, path: frozenset[int]) -> bool:
        name = operator.name.removesuffix("_")
        if name in ("mul", "div"):
            divisor = operator.arguments[1]
            return self._one_operand(operator, path) and not (
                name == "div" and isinstance(divisor, View) and divisor.storage in path
            )
        return name in _LINEAR or (name == "native_batch_norm" and not operator.arguments[5])

    def _one_operand(self, operator: Operator, path: frozenset[int]) -> bool:
        return sum(view.storage in path for view in operator.inputs) == 1


def _is_product(operator: Operator) -> bool:
    """Return whether it is linear in each of its operands."""
    return operator.name in _MATMULS or operator.name == "convolution"


def _length(operator: Operator) -> float:
    """Products that make one element of the result."""
    return operator.flops.contraction / max(operator.output.numel, 1)
