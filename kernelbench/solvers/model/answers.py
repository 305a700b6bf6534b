"""The code in what a model answered: fences that are unlabelled, nested, unclosed or missing, prose, thoughts.

Among several pieces the last that is a whole solution counts, because models correct themselves.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from harness.isolated_call import ApartError, TooMuch, apart
from harness.solution.source_facts import why_no_python

_THOUGHT_TAGS = "think|thinking|thought|reasoning|scratchpad"
_THOUGHT = re.compile(rf"<(/?)({_THOUGHT_TAGS})>", re.IGNORECASE)
_END_OF_THOUGHT = re.compile(rf"</(?:{_THOUGHT_TAGS})>", re.IGNORECASE)  # some templates open it in the prompt
_OPEN_THOUGHT = re.compile(rf"^\s*<(?:{_THOUGHT_TAGS})>", re.IGNORECASE)
_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(?P<marks>`{3,}|~{3,}(?!~))(?P<info>[^`\n]*)$", re.MULTILINE)
_FIRST_CODE = {
    "py": re.compile(r"^(?:import |from \w|class |def |@|#|\"\"\"|''')", re.MULTILINE),
    "c": re.compile(r"^(?:#include|#define|//|/\*|extern|template|__global__|using |namespace )", re.MULTILINE),
}
_OPERATION = r"(?:pipeline|\w*gemm|(?=\w*conv[123]d)\w+)\s*\("
_FIRST_CODE["dsl"] = re.compile(rf"^[ \t]*(?:#|//|transpose\s*\(|{_OPERATION})", re.MULTILINE)
_PROGRAM = re.compile(rf"^[ \t]*{_OPERATION}", re.MULTILINE)
_EXTERN = re.compile(r'extern\s+"C"')
_SOLUTION = re.compile(r"\bsolution\s*\(")
_LEFT_OUT = re.compile(
    r"^[ \t]*(?:#|//)[ \t]*(?:\.\.\.|…).*\b(?:existing|rest|remaining|unchanged|same|omitted|previous|as before)\b"
    r"|^[ \t]*(?:#|//).*\b(?:rest of the code|remaining code|(?:code|kernel)s? (?:is|are|remains?) unchanged)\b",
    re.MULTILINE | re.IGNORECASE,
)
_DIFF = re.compile(r"^(?:@@ |--- \S|\+\+\+ \S|diff --git |<{7} |>{7} )", re.MULTILINE)
_MOST_FENCES, _MOST_CLOSINGS = 100, 10  # the last ones of an answer, and those that may close one; chosen
# Characters of all pieces of one answer: 5 s, of 20 that end the process. With four times as many it took 18 s, and an
# answer without code was one that takes too long on a slower machine.
_MOST_PARSED = 2 << 20
_LOOKED_AT = 8  # characters that are looked through for an entry in the time that one is parsed
_TRIALS = 40  # of where unfenced code begins or ends
_ENTRY = {"py": "a class ModelNew", "dsl": "an operation such as gemm()"}


class NoCode(Exception):
    """An answer that holds no solution, and why; written for the model that gave it."""


class _Parsing:
    """Characters that may be parsed for one answer. Time would not do: who asks again must get the same."""

    def __init__(self) -> None:
        self._left = 0

    def renew(self) -> None:
        self._left = _MOST_PARSED
        _problem.cache_clear()  # what was parsed for another answer would be free

    def take(self, characters: int) -> None:
        """Raises NoCode where there are not so many left."""
        self._left -= characters
        if self._left < 0:
            raise NoCode("the answer holds too many pieces that are no whole solution: give one fenced block")


_parsing = _Parsing()


def extract(answer: str, kind: str = "py", finished: bool = True) -> str:
    """The solution of ``kind`` in ``answer``; NoCode where there is none.

    ``finished`` says whether the model came to an end by itself.
    """
    return _found(found_solution, answer, kind, finished)


def extract_functions(names: Sequence[str], answer: str, kind: str = "py", finished: bool = True) -> str:
    """The Python in ``answer`` that defines ``names``, the last of several; NoCode where there is none."""
    return _found(found_functions, list(names), answer, finished)


def _found(search: Callable[..., str], *arguments: Any) -> str:
    """Return what ``search`` finds, in a process and within a time that one answer may take with all its pieces."""
    try:
        code, reason = apart(f"{__name__}:outcome", search.__name__, list(arguments))
    except TooMuch as error:
        raise NoCode(f"to look for code in the answer takes {error}") from None
    except ApartError as error:
        raise NoCode(f"to look for code in the answer failed: {str(error).splitlines()[-1]}") from None
    if reason is not None:
        raise NoCode(reason)
    return code


def outcome(search: str, arguments: list[Any]) -> tuple[str | None, str | None]:
    """Return the code that the function found, or else why there is none; runs in a process that may die of it."""
    try:
        return globals()[search](*arguments), None
    except NoCode as reason:
        return None, str(reason)


def found_solution(answer: str, kind: str, finished: bool) -> str:
    """Do the work of ``extract`` in this process."""
    _parsing.renew()
    text = _spoken(answer.replace("\r\n", "\n").lstrip("\ufeff"))
    pieces = list(_pieces(text, kind))
    whole = [piece for piece in pieces if _is_whole(piece, kind)]
    if whole:
        chosen = whole[-1].strip("\n") + "\n"
        if match := _LEFT_OUT.search(chosen):
            raise NoCode(f"the code leaves parts out ('{match[0].strip()}'); the whole file is needed")
        return chosen
    raise NoCode(_reason(answer, text, [piece for piece in pieces if piece.strip()], kind, finished))


def found_functions(names: list[str], answer: str, finished: bool) -> str:
    """Do the work of ``extract_functions`` in this process."""
    _parsing.renew()
    text = _spoken(answer.replace("\r\n", "\n").lstrip("\ufeff"))
    fences = list(_FENCE.finditer(text))
    ends = [fence.start() for fence in fences[1:]] + [len(text)]
    pieces = [text[fence.end() + 1 : end] for fence, end in zip(fences, ends)] or [text]
    defined = r"^(?:def|class)\s+{0}\b|^{0}\s*="
    wanted = [re.compile(defined.format(re.escape(name)), re.MULTILINE) for name in names]
    whole = [piece for piece in pieces if all(one.search(piece) for one in wanted) and not _problem(piece, "py")]
    if whole:
        return whole[-1].strip("\n") + "\n"
    if not finished:
        raise NoCode("the answer was cut off before its code was complete: it is too long")
    raise NoCode(f"the answer holds no whole Python file that defines {', '.join(names)}")


def _spoken(text: str) -> str:
    """Return text without thoughts, and the content of answer tags where there are some."""
    text = _without_thoughts(text)
    if ends := list(_END_OF_THOUGHT.finditer(text)):
        text = text[ends[-1].end() :]
    if _OPEN_THOUGHT.match(text):
        return ""
    tagged = [match[1] for match in _ANSWER.finditer(text) if match[1].strip()]
    return tagged[-1] if tagged else text


def _without_thoughts(text: str) -> str:
    """Return text without what lies between a thought's tags; in one pass, because an answer may hold many tags."""
    tags = list(_THOUGHT.finditer(text))
    last_end = {tag[2].lower(): tag.start() for tag in tags if tag[1]}
    kept, position, opened = [], 0, ""
    for tag in tags:
        name = tag[2].lower()
        if not opened and not tag[1] and last_end.get(name, -1) > tag.start():
            kept.append(text[position : tag.start()])
            opened = name
        elif tag[1] and name == opened:
            position, opened = tag.end(), ""
    return "".join([*kept, text[position:]])


def _pieces(text: str, kind: str) -> Iterator[str]:
    """Return what may be code, in order: fenced blocks, else what looks like code."""
    fences = list(_FENCE.finditer(text))[-_MOST_FENCES:]
    position = 0
    for index, opening in enumerate(fences):
        if opening.start() < position:
            continue
        block, position = _block(text, opening, fences[index + 1 :], kind)
        yield block
    if not fences:
        yield from _unfenced(text, kind)


def _block(text: str, opening: re.Match, later: list[re.Match], kind: str) -> tuple[str, int]:
    """The block that a fence opens and where it ends: at the first fence that leaves it whole.

    Code may hold fences itself, as docstrings do. Where none leaves it whole, the first
    one that can close it does, and without one the end of the text.
    """
    marks = opening["marks"]
    closings = [
        f for f in later if f["marks"][0] == marks[0] and len(f["marks"]) >= len(marks) and not f["info"].strip()
    ]
    ends = [(text[opening.end() + 1 : closing.start()], closing.end()) for closing in closings[:_MOST_CLOSINGS]]
    unclosed = (text[opening.end() + 1 :], len(text))
    for block in [*ends, unclosed]:
        if _is_whole(block[0], kind):
            return block
    return ends[0] if ends else unclosed


def _unfenced(text: str, kind: str) -> Iterator[str]:
    """The text from a line that looks like code on, less lines at its end until it is whole."""
    if not _defines_entry(text, kind):  # nor does a part of it
        yield text
        return
    first = _FIRST_CODE[kind if kind in _FIRST_CODE else "c"]
    for start in list(first.finditer(text))[:_TRIALS]:
        lines = text[start.start() :].splitlines(keepends=True)
        for dropped in range(min(_TRIALS, len(lines))):
            piece = "".join(lines[: len(lines) - dropped])
            if _is_whole(piece, kind):
                yield piece
                return
    yield text


def _is_whole(code: str, kind: str) -> bool:
    _parsing.take(len(code) // _LOOKED_AT)
    return _defines_entry(code, kind) and _problem(code, kind) is None


def _defines_entry(code: str, kind: str) -> bool:
    if kind == "dsl":
        return _PROGRAM.search(code) is not None
    if kind == "py":
        return re.search(r"^class\s+ModelNew\b|^ModelNew\s*=", code, re.MULTILINE) is not None
    return any(map(_declares_solution, code.split(";")))


def _declares_solution(statement: str) -> bool:
    extern = _EXTERN.search(statement)
    return extern is not None and _SOLUTION.search(statement, extern.end()) is not None


@functools.lru_cache(maxsize=256)  # an answer's code is looked at several times
def _problem(code: str, kind: str) -> str | None:
    """Return why it is no source of its kind; None where it may be."""
    if kind == "py":
        _parsing.take(len(code))
        wrong = why_no_python(code)
        return f"it is not Python: {wrong}" if wrong else None
    if code.count("{") != code.count("}"):
        return "its braces do not match"
    if kind == "dsl" and code.count("(") != code.count(")"):
        return "its parentheses do not match"
    return "there is prose around it" if _FENCE.search(code) else None


def _reason(answer: str, text: str, pieces: list[str], kind: str, finished: bool) -> str:
    entry = _ENTRY.get(kind, 'extern "C" void solution(...)')
    if not finished:
        return "the answer was cut off before its code was complete: it is too long"
    if not answer.strip():
        return "the answer is empty"
    if not text.strip():
        return "the answer holds only thoughts, no code"
    if _DIFF.search(text):
        return f"the answer is a diff; the whole file is needed, with {entry}"
    candidates = [piece for piece in pieces if _defines_entry(piece, kind)]
    if candidates:
        return f"the code is not complete: {_problem(candidates[-1], kind)}"
    return f"the answer holds no code that defines {entry}"
