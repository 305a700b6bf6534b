"""Calls -> typed representation: knows the words, their arguments and nothing of what CUTLASS can do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.ir import Position
from kernelbench.ucutlass.language import vocabulary
from kernelbench.ucutlass.language.expressions import ExpressionError, parse_expression
from kernelbench.ucutlass.language.findings import Finding
from kernelbench.ucutlass.language.syntax import Argument, CallNode, KernelNode, ProgramNode, Value
from kernelbench.ucutlass.language.vocabulary import Form, Kind, Parameter

_INPUT = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}", re.ASCII)
_NEAR = 0.85  # similarity from which one word alone is meant
_SHOWN = 6  # words of a list that a signature shows
_MAX_DIGITS = 9  # of an integer; no extent, tile or count has more
_EXPLICIT = "every choice is explicit and named, so a typing error must not become another kernel"


class Lowering:
    """Builds a program from its calls and collects findings; what is wrong is left out of the program."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def program(self, node: ProgramNode, source: str) -> ir.Program | None:
        """The program; None where no kernel is left of it."""
        stages = [stage for stage in map(self._stage, node.stages) if stage is not None]
        if node.pipeline is None and stages and isinstance(stages[0], ir.Transpose):
            self._find("transpose-in-pipeline", "transpose(...) stands alone", "it is a stage, and computes no result",
                       "write pipeline(transpose(...), OPERATION...)", stages[0].at)  # fmt: skip
            return None
        if len(stages) < len(node.stages):
            return None
        body = stages[0] if node.pipeline is None else ir.Pipeline(tuple(stages), at=node.pipeline)
        return ir.Program(body, self._bindings(node.binding), source)

    def _find(self, rule: str, what: str, why: str, fix: str, at: Position | None) -> None:
        self.findings.append(Finding(rule, what, why, fix, at))

    # --- stages ---------------------------------------------------------------------------------------------------

    def _stage(self, node: KernelNode) -> ir.Stage | None:
        call = node.operation
        if call.word == "transpose":
            for _, clause in node.clauses:
                self._find("transpose-plain", f"{clause.word}(...) follows transpose(...)",
                           "a transpose has no configuration and no epilogue", "remove it, or move it to a kernel",
                           clause.at)  # fmt: skip
            return self._built(vocabulary.TRANSPOSE, call)
        operation = self._built(self._known(vocabulary.OPERATIONS, call, "operation", ("transpose",)), call)
        clauses = self._configurations(operation, node)
        epilogue = self._epilogue(node)
        if operation is None:
            return None
        positions = {field: at for field, (_, at) in clauses.items()}
        values = {field: value for field, (value, _) in clauses.items() if value is not None}
        return ir.Kernel(operation, epilogue=epilogue, positions=positions, at=call.at, **values)

    def _configurations(self, operation: ir.Operation | None, node: KernelNode) -> dict[str, tuple[Any, Position]]:
        clauses: dict[str, tuple[Any, Position]] = {}
        after_epilogue = False
        for kind, call in node.clauses:
            if kind == "epilogue":
                after_epilogue = True
                continue
            if after_epilogue:
                self._find("order", f".{call.word}(...) follows the epilogue",
                           "the configuration ends at the first >>", f"move .{call.word}(...) before the first >>",
                           call.at)  # fmt: skip
            form = self._known(vocabulary.CONFIGURATIONS, call, "configuration")
            if form is vocabulary.GEMM_LAYOUT and self._is_conv_layout(operation, call):
                form = vocabulary.CONV_LAYOUT
            value = self._built(form, call)
            if form and form.field in clauses:
                self._find("clause-once", f".{call.word}(...) is given twice", "two values for one choice contradict",
                           "remove one of them", call.at)  # fmt: skip
            elif form:
                clauses[form.field] = (value, call.at)  # of a wrong clause the place alone: it is not missing
        return clauses

    @staticmethod
    def _is_conv_layout(operation: ir.Operation | None, call: CallNode) -> bool:
        """Return whether to read it with a convolution's names; with no operation its own names decide."""
        if operation is None:
            return any(argument.name in ("input", "filter", "output") for argument in call.arguments)
        return isinstance(operation, ir.Conv)

    def _epilogue(self, node: KernelNode) -> tuple[ir.EpilogueOp, ...]:
        calls = [call for kind, call in node.clauses if kind == "epilogue"]
        ops = [self._built(self._known(vocabulary.EPILOGUES, call, "epilogue"), call) for call in calls]
        return tuple(op for op in ops if op is not None)

    # --- calls and arguments --------------------------------------------------------------------------------------

    def _known(self, table: dict[str, Form], call: CallNode, what: str, further: tuple[str, ...] = ()) -> Form | None:
        if call.word in table:
            return table[call.word]
        self._find("unknown-word", f"{call.word!r} is no {what}", _EXPLICIT,
                   nearest(call.word, [*table, *further]), call.at)  # fmt: skip
        return None

    def _built(self, form: Form | None, call: CallNode) -> Any:
        """The value of a call; None where its arguments are wrong."""
        if form is None:
            return None
        given = self._matched(form, call)
        values = {}
        for parameter in form.parameters:
            if parameter.name in given:
                values[parameter.name] = self._value(parameter, given[parameter.name].value, call)
            elif parameter.required:
                self._find("missing-argument", f"{call.word}(...) lacks {parameter.name}", _EXPLICIT,
                           f"write {signature(form)}", call.at)  # fmt: skip
                return None
        if len(given) < len(call.arguments) or any(value is None for value in values.values()):
            return None
        if form.word == "custom":
            return self._custom(call, given, values)
        return form.build(**values, at=call.at)

    def _matched(self, form: Form, call: CallNode) -> dict[str, Argument]:
        """The arguments by parameter; those that match none are found."""
        positional = iter([parameter for parameter in form.parameters if not parameter.keyword])
        keywords = [parameter.name for parameter in form.parameters if parameter.keyword]
        given: dict[str, Argument] = {}
        for argument in call.arguments:
            name = argument.name
            if name is None:
                parameter = next(positional, None)
                if parameter is None:
                    self._find("argument-name", f"{call.word}(...) has too many arguments without a name",
                               _EXPLICIT, f"write {signature(form)}", argument.at)  # fmt: skip
                    break
                name = parameter.name
            elif name not in keywords:
                self._find("unknown-argument", f"{call.word}(...) has no argument {name!r}", _EXPLICIT,
                           f"write {signature(form)}", argument.at)  # fmt: skip
                continue
            if name in given:
                self._find("argument-once", f"{call.word}(...) is given {name} twice",
                           "two values for one choice contradict", "remove one of them", argument.at)  # fmt: skip
                continue
            given[name] = argument
        return given

    def _value(self, parameter: Parameter, value: Value, call: CallNode) -> Any:
        allowed = parameter.values
        if isinstance(allowed, dict):
            if value.kind in ("NAME", "STRING") and value.text in allowed:
                return allowed[value.text]
            self._wrong(parameter, value, call, nearest(str(value.text), list(allowed)))
            return None
        if allowed is Kind.INTEGER and value.kind == "INTEGER" and len(value.text) <= _MAX_DIGITS:
            if int(value.text) >= parameter.least:
                return int(value.text)
        elif allowed is Kind.NUMBER and value.kind in ("INTEGER", "FLOAT") and abs(float(value.text)) < 1e38:
            return float(value.text)
        elif (allowed is Kind.NAME and value.kind == "NAME") or (allowed is Kind.STRING and value.kind == "STRING"):
            return value.text
        elif allowed is Kind.INPUTS and value.kind == "INPUTS":
            return value.text
        limits = f" from {parameter.least} to {10**_MAX_DIGITS - 1}" if allowed is Kind.INTEGER else ""
        self._wrong(parameter, value, call, f"write {allowed.value}{limits}")
        return None

    def _wrong(self, parameter: Parameter, value: Value, call: CallNode, fix: str) -> None:
        self._find("argument-value", f"{parameter.name} of {call.word}(...) is {str(value.text)[:40]!r}",
                   f"it must be {parameter.describes}", fix, value.at)  # fmt: skip

    # --- custom epilogues -----------------------------------------------------------------------------------------

    def _custom(self, call: CallNode, given: dict[str, Argument], values: dict[str, Any]) -> ir.Custom | None:
        inputs = []
        for name, extent in values.get("inputs") or ():
            at = given["inputs"].value.at
            if extent not in vocabulary.EXTENTS:
                self._find("custom-inputs", f"the input {name!r} is {extent!r}", "its shape decides how it is read",
                           nearest(extent, list(vocabulary.EXTENTS)), at)  # fmt: skip
            elif not _INPUT.fullmatch(name) or name in {"x", *ir.FUNCTIONS, *(one.name for one in inputs)}:
                self._find("custom-inputs", f"an input has the name {name!r}",
                           "x is the value so far, and names of functions and of other inputs are taken",
                           "name each input once, with letters, digits and _", at)  # fmt: skip
            else:
                inputs.append(ir.CustomInput(name, vocabulary.EXTENTS[extent]))
        if len(inputs) < len(values.get("inputs") or ()):
            return None
        try:
            expression = parse_expression(values["expression"], {"x", *(one.name for one in inputs)})
        except ExpressionError as error:
            self._find("custom-expression", str(error), "an expression is checked before it becomes C++",
                       error.fix, given["expression"].value.at)  # fmt: skip
            return None
        return ir.Custom(expression, tuple(inputs), values["expression"], at=call.at)

    # --- bind -----------------------------------------------------------------------------------------------------

    def _bindings(self, call: CallNode | None) -> tuple[ir.Bound, ...]:
        bound: dict[str, ir.Bound] = {}
        for argument in call.arguments if call else ():
            value = argument.value
            if argument.name is None or value.kind in ("STRING", "INPUTS"):
                self._find("bind-form", "bind(...) holds something else than OPERAND=TENSOR",
                           "an operand without a name binds to nothing",
                           "write bind(A=x, B=weight, bias=bias, D=output)", argument.at)  # fmt: skip
            elif value.kind in ("INTEGER", "FLOAT") and not _fits(value):
                self._find("bind-form", f"{argument.name} of bind(...) is {value.text[:40]!r}",
                           "no operand is so large", f"write up to {_MAX_DIGITS} digits", value.at)  # fmt: skip
            elif argument.name in bound:
                self._find("argument-once", f"bind(...) is given {argument.name} twice",
                           "two values for one choice contradict", "remove one of them", argument.at)  # fmt: skip
            else:
                bound[argument.name] = ir.Bound(argument.name, _bound_value(value), at=argument.at)
        return tuple(bound.values())


def _fits(value: Value) -> bool:
    return len(value.text) <= _MAX_DIGITS if value.kind == "INTEGER" else abs(float(value.text)) < 1e38


def _bound_value(value: Value) -> str | int | float:
    if value.kind == "INTEGER":
        return int(value.text)
    return float(value.text) if value.kind == "FLOAT" else value.text


def nearest(word: str, known: Iterable[str]) -> str:
    """Advice: the words that are most like this one, or all of them."""
    known = list(known)
    like = difflib.get_close_matches(word, known, n=1, cutoff=_NEAR) or difflib.get_close_matches(word, known)
    return f"did you mean {' or '.join(like)}?" if like else f"write one of {', '.join(known)}"


def signature(form: Form) -> str:
    """A call with its arguments, as in ``gelu()`` or ``clip(min=a number, max=a number)``."""
    shown = []
    for parameter in form.parameters:
        words = parameter.values if isinstance(parameter.values, dict) else {}
        brief = " | ".join([*list(words)[:_SHOWN], "..."]) if len(words) > _SHOWN + 1 else parameter.describes
        text = f"{parameter.name}={brief}" if parameter.keyword else brief
        shown.append(text if parameter.required else f"[{text}]")
    return f"{form.word}({', '.join(shown)})"
