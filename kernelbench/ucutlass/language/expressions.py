"""Expressions of `custom('expr')`: Python's arithmetic, comparisons and calls of known functions, and nothing else."""

from __future__ import annotations

import ast
import difflib
import warnings

from kernelbench.ucutlass.ir import FUNCTIONS, Call, Expression, Number, Variable

MAX_CHARACTERS = 8192  # of an expression, before it is parsed
MAX_OPERATIONS = 64  # operators and functions; each is an operation for every element of the output
_MOST = 1e38  # of a number, which becomes a literal of FP32; so it is for arguments of clauses

_BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow"}
_COMPARE = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
_OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Call)
_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"} | {
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="
}  # fmt: skip


class ExpressionError(ValueError):
    """An expression that is none, and what to write instead."""

    def __init__(self, what: str, fix: str):
        super().__init__(what)
        self.fix = fix


def parse_expression(text: str, names: set[str]) -> Expression:
    """The expression of a text over the variables ``names``.

    Raises ExpressionError. The text is parsed, never evaluated.
    """
    if len(text) > MAX_CHARACTERS:
        raise ExpressionError(f"the expression has {len(text)} characters", f"write at most {MAX_CHARACTERS}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # of what is refused below
            tree = ast.parse(text.strip(), mode="eval")
        if sum(isinstance(node, _OPERATIONS) for node in ast.walk(tree)) > MAX_OPERATIONS:
            raise ExpressionError(f"the expression has more than {MAX_OPERATIONS} operations",
                                  "write several custom(...), or a kernel of your own")  # fmt: skip
        return _lower(tree.body, names)
    except ExpressionError:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise ExpressionError(f"{text!r} is no expression", "write arithmetic such as 'x * s + max(x, 0)'") from error


def _lower(node: ast.expr, names: set[str]) -> Expression:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            if abs(value) >= _MOST:
                raise ExpressionError(f"{ast.unparse(node)[:60]} is beyond FP32", f"write a number below {_MOST:g}")
            return Number(float(value))
        case ast.Name(id=name):
            if name not in names:
                like = difflib.get_close_matches(name, names, n=1)
                fix = f"did you mean {like[0]}?" if like else f"use x, or declare it: inputs={{'{name}': 'row'}}"
                raise ExpressionError(f"{name!r} is unknown", fix)
            return Variable(name)
        case ast.BinOp(left, op, right) if type(op) in _BINARY:
            return Call(_BINARY[type(op)], (_lower(left, names), _lower(right, names)))
        case ast.UnaryOp(ast.USub(), operand):
            return Call("neg", (_lower(operand, names),))
        case ast.UnaryOp(ast.UAdd(), operand):
            return _lower(operand, names)
        case ast.Compare(left, [op], [right]) if type(op) in _COMPARE:
            return Call(_COMPARE[type(op)], (_lower(left, names), _lower(right, names)))
        case ast.IfExp(test, body, orelse):
            return Call("where", tuple(_lower(part, names) for part in (test, body, orelse)))
        case ast.Call(ast.Name(id=function), arguments, []):
            return _call(function, arguments, names)
    shown = ast.unparse(node)[:60]
    raise ExpressionError(f"{shown!r} is not allowed in an expression",
                          "use + - * / **, comparisons, numbers, x, inputs, and "
                          + ", ".join(FUNCTIONS))  # fmt: skip


def _call(function: str, arguments: list[ast.expr], names: set[str]) -> Expression:
    if function not in FUNCTIONS:
        like = difflib.get_close_matches(function, FUNCTIONS, n=1)
        fix = f"did you mean {like[0]}?" if like else "use one of " + ", ".join(FUNCTIONS)
        raise ExpressionError(f"there is no function {function!r}", fix)
    if len(arguments) != FUNCTIONS[function]:
        raise ExpressionError(f"{function} takes {FUNCTIONS[function]} arguments, got {len(arguments)}",
                              f"write {function}({', '.join('abc'[:FUNCTIONS[function]])})")  # fmt: skip
    return Call(function, tuple(_lower(argument, names) for argument in arguments))


def text_of(expression: Expression) -> str:
    """One spelling of an expression: parsed again, it gives the same."""
    if isinstance(expression, Number):
        return f"{expression.value:g}" if float(f"{expression.value:g}") == expression.value else repr(expression.value)
    if isinstance(expression, Variable):
        return expression.name
    parts = [text_of(argument) for argument in expression.arguments]
    if expression.function in _INFIX:
        return f"({parts[0]} {_INFIX[expression.function]} {parts[1]})"
    return f"{expression.function}({', '.join(parts)})"
