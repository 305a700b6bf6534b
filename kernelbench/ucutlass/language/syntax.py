"""Source text -> calls with their arguments and places. Lark is imported when a text is parsed.

After a syntax error the parser goes on, so that one run reports several.
"""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelbench.ucutlass.ir import Position
from kernelbench.ucutlass.language.findings import Finding, LibraryMissing

MAX_CHARACTERS = 1 << 16  # of a source; programs have some hundred
_MAX_ERRORS = 20  # syntax errors that are reported of one source
_MAX_DROPPED = 500  # tokens and characters: looking for the end of a comment at each could take time without end


@dataclass(frozen=True)
class Value:
    """One value as written; ``kind`` is the terminal's name, of inputs ``INPUTS``, of a dotted name ``PATH``."""

    kind: str
    text: Any
    at: Position


@dataclass(frozen=True)
class Argument:
    name: str | None  # None where it is positional
    value: Value
    at: Position


@dataclass(frozen=True)
class CallNode:
    word: str
    arguments: tuple[Argument, ...]
    at: Position


@dataclass(frozen=True)
class KernelNode:
    operation: CallNode
    clauses: tuple[tuple[str, CallNode], ...]  # ("configuration" or "epilogue", call)


@dataclass(frozen=True)
class ProgramNode:
    stages: tuple[KernelNode, ...]
    pipeline: Position | None  # of the word; None where there is one kernel
    binding: CallNode | None


def parse(source: str) -> tuple[ProgramNode | None, list[Finding]]:
    """The calls of a source, and its syntax errors. None where the rest makes no tree."""
    if len(source) > MAX_CHARACTERS:
        return None, [_syntax(f"the source has {len(source)} characters", "a program has some hundred",
                              f"write at most {MAX_CHARACTERS}", Position(1, 1))]  # fmt: skip
    recovery = _Recovery(source)
    import_lark()
    from lark.exceptions import UnexpectedInput

    try:
        tree = _parser().parse(source, on_error=recovery)
    except UnexpectedInput as error:
        recovery.record(error)
        return None, recovery.findings
    return _program(tree), recovery.findings


def import_lark() -> Any:
    """The package lark; raises LibraryMissing with what to install."""
    try:
        import lark
    except ImportError as error:
        raise LibraryMissing("lark") from error
    return lark


@functools.cache
def _parser() -> Any:
    grammar = Path(__file__).with_name("grammar.lark").read_text()
    return import_lark().Lark(grammar, parser="lalr", lexer="contextual", propagate_positions=True)


def _syntax(what: str, why: str, fix: str, at: Position) -> Finding:
    return Finding("syntax", what, why, fix, at)


class _Recovery:
    """Recovery of the parser after an error: insert what is missing, or drop the token, and go on."""

    def __init__(self, source: str):
        self._end = _end(source)
        self.findings: list[Finding] = []
        self._dropped = None  # end of the token that was dropped last
        self._count = 0

    def __call__(self, error: Any) -> bool:
        self._count += 1
        if len(self.findings) >= _MAX_ERRORS or self._count > _MAX_DROPPED:
            return False
        token = getattr(error, "token", None)
        start = error.pos_in_stream if token is None or token.type == "$END" else token.start_pos
        follows = self._dropped is not None and start is not None and start - self._dropped <= 1
        missing = self._missing(error.interactive_parser, token) if token is not None else None
        if not follows:
            self.record(error, missing)
        if token is None:
            self._dropped = start + 1
            return True
        if missing:
            self._insert(error.interactive_parser, missing, token)
            return True
        self._dropped = token.end_pos
        return token.type != "$END"

    @staticmethod
    def _missing(state: Any, token: Any) -> str | None:
        """The token without which this one may not follow. What was parsed so far is neither copied nor changed."""
        from lark import Token

        trial = state.copy(deepcopy_values=False)
        trial.parser_state.parse_conf = copy.copy(trial.parser_state.parse_conf)
        trial.parser_state.parse_conf.callbacks = {}
        accepted = trial.accepts()
        for missing in ("RPAR", "COMMA"):
            if missing in accepted:
                after = trial.copy(deepcopy_values=False)
                after.feed_token(Token.new_borrow_pos(missing, _INSERTED[missing], token))
                if token.type in after.accepts():
                    return missing
        return None

    @staticmethod
    def _insert(state: Any, missing: str, token: Any) -> None:
        from lark import Token

        state.feed_token(Token.new_borrow_pos(missing, _INSERTED[missing], token))
        if token.type != "$END":  # the parser gives itself the end
            state.feed_token(token)

    def record(self, error: Any, missing: str | None = None) -> None:
        """Add the finding of one error."""
        token = getattr(error, "token", None)
        at_end = token is not None and token.type == "$END"
        at = self._end if at_end else Position(error.line, error.column)
        expected = sorted(_SHOWN.get(name, name) for name in (error.interactive_parser.accepts()
                          if getattr(error, "interactive_parser", None) else ()))  # fmt: skip
        found = "the end of the source" if at_end else repr(str(token) if token is not None else error.char)
        self.findings.append(
            _syntax(
                f"unexpected {found}",
                f"here may stand: {', '.join(expected) or 'nothing'}",
                f"insert '{_INSERTED[missing]}' before it" if missing else _SHAPE,
                at,
            )
        )


_INSERTED = {"RPAR": ")", "COMMA": ","}
_SHAPE = "a program is operation() .with_...(name=value, ...) >> epilogue(), then bind(...) if needed"
_SHOWN = {
    "LPAR": "'('", "RPAR": "')'", "COMMA": "','", "DOT": "'.'", "EQUAL": "'='", "LBRACE": "'{'", "RBRACE": "'}'",
    "COLON": "':'", "$END": "the end", "NAME": "a name", "INTEGER": "an integer", "FLOAT": "a number",
    "STRING": "a quoted string", "PIPELINE": "pipeline(", "BIND": "bind(", "__ANON_0": "'>>'",
}  # fmt: skip


def _end(source: str) -> Position:
    """The place after the last character that is no white space."""
    lines = source.rstrip().split("\n")
    return Position(len(lines), len(lines[-1]) + 1)


def _position(token: Any) -> Position:
    return Position(token.line, token.column)


def _program(tree: Any) -> ProgramNode:
    body, *rest = tree.children
    binding = None
    if rest:
        word, *arguments = rest[0].children
        binding = CallNode("bind", _arguments(arguments), _position(word))
    if body.data == "pipeline":
        word, *stages = body.children
        return ProgramNode(tuple(map(_kernel, stages)), _position(word), binding)
    return ProgramNode((_kernel(body),), None, binding)


def _kernel(tree: Any) -> KernelNode:
    operation, *clauses = tree.children
    return KernelNode(_call(operation), tuple((clause.data, _call(clause.children[0])) for clause in clauses))


def _call(tree: Any) -> CallNode:
    word, *arguments = tree.children
    return CallNode(str(word), _arguments(arguments), _position(word))


def _arguments(trees: list[Any]) -> tuple[Argument, ...]:
    return tuple(map(_argument, trees[0].children)) if trees else ()


def _argument(tree: Any) -> Argument:
    if tree.data == "keyword":
        name, value = tree.children
        return Argument(str(name), _value(value), _position(name))
    value = _value(tree.children[0])
    return Argument(None, value, value.at)


def _value(tree: Any) -> Value:
    (child,) = tree.children
    if getattr(child, "data", None) == "path":
        return Value("PATH", ".".join(map(str, child.children)), _position(child.children[0]))
    if getattr(child, "data", None) == "inputs":
        written = [pair.children for pair in child.children if pair]  # without any there is None
        pairs = tuple((str(key)[1:-1], str(value)[1:-1]) for key, value in written)
        return Value("INPUTS", pairs, Position(tree.meta.line, tree.meta.column))
    text = str(child)
    return Value(child.type, text[1:-1] if child.type == "STRING" else text, _position(child))
