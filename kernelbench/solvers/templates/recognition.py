"""Reads a traced reference as one pass of elementwise operators and reductions, or as a matrix product.

All reductions must do with one pass over the inputs (softmax corrects its sum when the maximum
rises, variances are those of differences to the row's first element). What does not fit raises
``NoTemplate``: convolutions, scans, chains of reductions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from harness.sol.operators import Operator, Trace, View
from kernelbench.solvers.templates.expressions import ELEMENTWISE, in_c, literal
from kernelbench.solvers.templates.formula import Formula, Load, Product, Reduction
from kernelbench.solvers.templates.patterns import NoTemplate, Pattern, broadcast, is_whole, line, merged, reshaped


def recognise(trace: Trace) -> Formula | Product:
    """Raises NoTemplate."""
    if len(trace.outputs) != 1:
        raise NoTemplate("it has several outputs")
    operators = [operator for operator in trace.operators if not operator.is_view]
    if any(operator.name in ("mm", "bmm") for operator in operators):
        return _product(trace, operators)
    return _Reader(trace).read()


@dataclass(frozen=True)
class _Value:
    """Content of a storage of the trace: an element, a row or a total, by its C name."""

    name: str
    level: str
    needs_rows: bool = False


class _Reader:
    def __init__(self, trace: Trace):
        self._trace = trace
        views = [view for o in trace.operators if not o.is_view for view in (*o.inputs, *o.outputs[:1])]
        self._formula = Formula(size=max((view.numel for view in views), default=0))
        self._values: dict[int, _Value] = {}
        self._arguments = {view.storage: name for name, view in {**trace.inputs, **trace.parameters}.items()}

    def read(self) -> Formula:
        formula, output = self._formula, self._trace.outputs[0]
        for operator in self._trace.operators:
            if not operator.is_view and operator.name != "empty":
                self._take(operator)
        value = self._values.get(output.storage)
        if value is None or not is_whole(output, self._sizes()[value.level]):
            raise NoTemplate("its output is not what the last operator computes")
        formula.output, formula.level = value.name, value.level
        formula.length = formula.length or formula.size
        if output.dtype not in (torch.float32, torch.int64):
            raise NoTemplate(f"its output is of type {output.dtype}")
        formula.c_output = "float" if output.dtype == torch.float32 else "int64_t"
        return formula

    def _sizes(self) -> dict[str, int]:
        formula = self._formula
        return {"element": formula.size, "row": formula.outer * formula.inner, "total": 1}

    def _take(self, operator: Operator) -> None:
        if operator.name in self._REDUCTIONS:
            self._values[operator.output.storage] = self._REDUCTIONS[operator.name](self, operator)
            return
        if operator.name not in ELEMENTWISE:
            raise NoTemplate(f"{operator.name} is no operator of a template")
        level = "element" if operator.output.numel == self._formula.size else "row"
        operands = [self._operand(argument, operator.output, level) for argument in operator.arguments]
        computed = in_c(operator, [operand and operand.name for operand in operands])
        if computed is None:
            raise NoTemplate(f"{operator.name} with other arguments than usual")
        needs_rows = any(operand.needs_rows or operand.level == "row" for operand in operands if operand)
        self._values[operator.output.storage] = self._define(computed, level, needs_rows)

    def _define(self, expression: str, level: str, needs_rows: bool = False, c_type: str = "float") -> _Value:
        formula = self._formula
        if level == "element":
            name = f"t{len(formula.elements)}"
            formula.elements.append((name, expression, needs_rows))
            return _Value(name, "element", needs_rows)
        name = f"v{len(formula.rows)}"
        formula.rows.append((name, c_type, expression))
        return _Value(name, "row")

    def _operand(self, argument: object, output: View, level: str) -> _Value | None:
        """An argument as the elements, or rows, of ``output`` see it; None where it has no value in C."""
        if isinstance(argument, bool) or not isinstance(argument, (int, float, View)):
            return None
        if not isinstance(argument, View):
            return _Value(literal(argument), "number")
        pattern = merged(output.shape, broadcast(argument, output.shape))
        value = self._values.get(argument.storage)
        if value is None:
            if level != "element":
                raise NoTemplate("a row value meets an input")
            return self._load(argument, pattern)
        if value.level == level:
            expected = line(math.prod(output.shape))
        elif (value.level, level) == ("row", "element"):
            formula = self._formula
            expected = merged((formula.outer, formula.length, formula.inner), (formula.inner, 0, 1))
        else:
            raise NoTemplate("it goes on after a sum over everything")
        if pattern != expected or argument.offset:
            raise NoTemplate("a result is seen in another order or only in part")
        return _Value(f"row.{value.name}", "row") if value.level != level else value

    def _load(self, view: View, pattern: Pattern) -> _Value:
        types = {torch.float32: "float", torch.bool: "bool"}
        if view.dtype not in types or view.offset or view.storage not in self._arguments:
            raise NoTemplate(f"an operand of type {view.dtype}, or a part of one")
        load = Load(self._arguments[view.storage], types[view.dtype], pattern)
        loads = self._formula.loads
        name = next((name for name, known in loads.items() if known == load), f"x{len(loads)}")
        loads[name] = load
        return _Value(f"e.{name}", "element")

    # Reductions

    def _over(self, view: View, dims: object) -> _Value:
        """``view`` as an element, with the space of the formula set by the dimensions that are reduced."""
        rank = len(view.shape)
        wanted = sorted(d % rank for d in ([dims] if isinstance(dims, int) else dims or range(rank)))
        wanted = [d for d in wanted if view.shape[d] > 1] or wanted[:1]
        if wanted != list(range(wanted[0], wanted[-1] + 1)) or view.numel != self._formula.size:
            raise NoTemplate("it reduces dimensions that are apart, or something smaller than its inputs")
        sizes = (view.shape[: wanted[0]], view.shape[wanted[0] : wanted[-1] + 1], view.shape[wanted[-1] + 1 :])
        space = tuple(map(math.prod, sizes))
        formula = self._formula
        if space[1] <= 1 or (formula.length and space != (formula.outer, formula.length, formula.inner)):
            raise NoTemplate("its reductions are over different dimensions")
        formula.outer, formula.length, formula.inner = space
        value = self._operand(view, view, "element")
        if value.needs_rows:
            raise NoTemplate("a reduction depends on another one")
        return value

    def _reduce(self, state: str, element: str) -> str:
        reductions = self._formula.reductions
        reductions.append(Reduction(f"r{len(reductions)}", state, element))
        return f"s.{reductions[-1].name}"

    def _sum(self, operator: Operator, scale: bool = False) -> _Value:
        view, dims = (*operator.arguments, None)[:2]
        value = self._values.get(view.storage)
        divisor = view.numel // max(1, operator.output.numel) if scale else 1
        of_rows = value is not None and value.level == "row" and is_whole(view, self._sizes()["row"])
        if of_rows and operator.output.numel == 1:
            total = self._define(f"{value.name} / {literal(divisor)}" if scale else value.name, "row")
            return _Value(total.name, "total")
        reduced = self._reduce("Sum", self._over(view, dims).name)
        return self._define(f"{reduced}.s / {literal(divisor)}" if scale else f"{reduced}.s", "row")

    def _mean(self, operator: Operator) -> _Value:
        return self._sum(operator, scale=True)

    def _extreme(self, operator: Operator, state: str, result: str = "m", c_type: str = "float") -> _Value:
        view, dims = (*operator.arguments, None)[:2]
        reduced = self._reduce(state, self._over(view, dims).name)
        return self._define(f"{reduced}.{result}", "row", c_type=c_type)

    def _max(self, operator: Operator) -> _Value:
        return self._extreme(operator, "Max")

    def _min(self, operator: Operator) -> _Value:
        return self._extreme(operator, "Min")

    def _argmax(self, operator: Operator) -> _Value:
        return self._extreme(operator, "ArgMax", "at", "int64_t")

    def _argmin(self, operator: Operator) -> _Value:
        return self._extreme(operator, "ArgMin", "at", "int64_t")

    def _vector_norm(self, operator: Operator) -> _Value:
        view, *more = operator.arguments
        order, dims = (more[0] if more else 2), (more[1] if len(more) > 1 else None)
        x = self._over(view, dims).name
        if order == 1:
            return self._define(f"{self._reduce('Sum', f'fabsf({x})')}.s", "row")
        if order == 2:
            return self._define(f"sqrtf({self._reduce('Sum', f'{x} * {x}')}.s)", "row")
        raise NoTemplate(f"a norm of order {order}")

    def _softmax(self, operator: Operator) -> _Value:
        x = self._over(*operator.arguments[:2]).name
        reduced = self._reduce("Softmax", x)
        maximum, total = (self._define(f"{reduced}.{part}", "row").name for part in ("m", "s"))
        return self._define(f"expf({x} - row.{maximum}) / row.{total}", "element", True)

    def _log_softmax(self, operator: Operator) -> _Value:
        x = self._over(*operator.arguments[:2]).name
        reduced = self._reduce("Softmax", x)
        shift = self._define(f"{reduced}.m + logf({reduced}.s)", "row").name
        return self._define(f"{x} - row.{shift}", "element", True)

    def _smooth_l1_loss(self, operator: Operator) -> _Value:
        return self._loss(operator, "fabsf({d}) < 1.f ? 0.5f * {d} * {d} : fabsf({d}) - 0.5f")

    def _mse_loss(self, operator: Operator) -> _Value:
        return self._loss(operator, "{d} * {d}")

    def _loss(self, operator: Operator, of_difference: str) -> _Value:
        """The mean of a function of the difference, which is what ``reduction`` is by default."""
        if len(operator.arguments) != 2 or operator.options:
            raise NoTemplate(f"{operator.name} with other arguments than usual")
        x, y = (self._over(view, None).name for view in operator.arguments)
        difference = self._define(f"{x} - {y}", "element").name
        reduced = self._reduce("Sum", of_difference.format(d=difference))
        return self._define(f"{reduced}.s / {literal(self._formula.size)}", "row")

    # Norms with a mean and a variance

    def _native_layer_norm(self, operator: Operator) -> _Value:
        view, normalised, weight, bias, epsilon = operator.arguments
        dims = range(len(view.shape) - len(normalised), len(view.shape))
        return self._normalise(view, dims, weight, bias, epsilon)

    def _native_group_norm(self, operator: Operator) -> _Value:
        view, weight, bias, batch, channels, positions, groups, epsilon = operator.arguments
        shape = (batch, groups, channels // groups, positions)
        grouped = reshaped(view, shape)
        per_channel = [w and reshaped(w, (groups, channels // groups, 1)) for w in (weight, bias)]
        return self._normalise(grouped, (2, 3), *per_channel, epsilon)

    def _native_batch_norm(self, operator: Operator) -> _Value:
        view, weight, bias, running_mean, _, training, _, epsilon = operator.arguments
        if view.shape[0] != 1 or running_mean is not None or not training:
            raise NoTemplate("a batch norm, whose reductions are over dimensions that are apart")
        shape = (view.shape[1], math.prod(view.shape[2:]))
        per_channel = [w and reshaped(w, (shape[0], 1)) for w in (weight, bias)]
        return self._normalise(reshaped(view, shape), (1,), *per_channel, epsilon)

    def _normalise(self, view, dims, weight, bias, epsilon) -> _Value:
        """(x - mean) / sqrt(variance + epsilon), from sums of differences to the first element of the row."""
        x = self._over(view, dims).name
        if not x.startswith("e."):
            raise NoTemplate("a norm of something that is computed first")
        first = f"first.{x.removeprefix('e.')}"
        difference = self._define(f"{x} - {first}", "element").name
        sums = [self._reduce("Sum", expression) for expression in (difference, f"{difference} * {difference}")]
        count = literal(self._formula.length)
        shift = self._define(f"{sums[0]}.s / {count}", "row").name
        variance = self._define(f"fmaxf({sums[1]}.s / {count} - {shift} * {shift}, 0.f)", "row").name
        scale = self._define(f"1.f / sqrtf({variance} + {literal(epsilon)})", "row").name
        expression = f"({difference} - row.{shift}) * row.{scale}"
        for sign, affine in (("*", weight), ("+", bias)):
            if affine is not None:
                expression += f" {sign} {self._operand(affine, view, 'element').name}"
        return self._define(expression, "element", True)

    _REDUCTIONS = {
        "sum": _sum,
        "mean": _mean,
        "max": _max,
        "amax": _max,
        "min": _min,
        "amin": _min,
        "argmax": _argmax,
        "argmin": _argmin,
        "linalg_vector_norm": _vector_norm,
        "norm": _vector_norm,
        "_softmax": _softmax,
        "_log_softmax": _log_softmax,
        "smooth_l1_loss": _smooth_l1_loss,
        "mse_loss": _mse_loss,
        "native_layer_norm": _native_layer_norm,
        "native_group_norm": _native_group_norm,
        "native_batch_norm": _native_batch_norm,
    }


def _product(trace: Trace, operators: list[Operator]) -> Product:
    product, *rest = operators
    keeps = {"triu": "column >= row", "tril": "column <= row"}
    plain = product.name in ("mm", "bmm") and all(o.name in keeps and len(o.arguments) == 1 for o in rest)
    if not plain or len(rest) > 1 or not all(isinstance(a, View) for a in product.arguments):
        raise NoTemplate("a matrix product with other operators around it")
    names = {view.storage: name for name, view in {**trace.inputs, **trace.parameters}.items()}
    operands = []
    for view in product.arguments:
        if view.storage not in names or view.offset or view.dtype != torch.float32:
            raise NoTemplate("a matrix product of something that is computed first")
        batch_stride = view.strides[0] if product.name == "bmm" else 0
        operands.append((names[view.storage], batch_stride, *view.strides[-2:]))
    (*batch, m, k), n = product.arguments[0].shape, product.arguments[1].shape[-1]
    if not is_whole(trace.outputs[0], math.prod(batch) * m * n):
        raise NoTemplate("a matrix product that is only seen in part")
    if n == 1 and not (batch or rest) and all(is_whole(view, view.numel) for view in product.arguments):
        return _matrix_vector(m, k, operands[0][0], operands[1][0])
    return Product(math.prod(batch), m, n, k, *operands, keep=keeps[rest[0].name] if rest else "true")


def _matrix_vector(m: int, k: int, matrix: str, vector: str) -> Formula:
    """Each row of the matrix times the vector, summed."""
    formula = Formula(size=m * k, outer=m, length=k, output="v0", level="row")
    formula.loads = {"x0": Load(matrix, "float", line(m * k)), "x1": Load(vector, "float", ((m, 0), (k, 1)))}
    formula.reductions = [Reduction("r0", "Sum", "e.x0 * e.x1")]
    formula.rows = [("v0", "float", "s.r0.s")]
    return formula
