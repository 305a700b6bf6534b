"""The compiler's first errors, with line numbers of the solution's own source.

An inline extension is compiled from a file that torch generates around the
candidate's string, so its line numbers mean nothing to the author. The text of
the offending line, and its neighbours, place it in the solution.
"""

from __future__ import annotations

import re
from pathlib import Path

MAX_ERRORS = 5

_NVCC = re.compile(r"^(?P<file>[^\s(][^(]*)\((?P<line>\d+)\)\s*: (?:fatal )?error(?: *#\S+)?: (?P<text>.*)$")
_GCC = re.compile(r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$")
_LINKER = re.compile(r"undefined reference to|cannot find -l|multiple definition of|^ptxas (?:fatal|error)|^nvcc fatal")


def compiler_errors(log: str, solution: Path) -> str:
    """A message of at most five errors, one a line, each with the line of the solution where that is known."""
    try:
        source = solution.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        source = []
    errors: list[str] = []
    for line in log.splitlines():
        line = line.strip()
        match = _NVCC.match(line) or _GCC.match(line)
        if match:
            error = _located(match, solution, source)
        elif _LINKER.search(line):
            error = line
        else:
            continue
        if error not in errors:
            errors.append(error)
    if not errors:
        last = [line for line in log.strip().splitlines() if line.strip()][-MAX_ERRORS:]
        return "the build failed:\n" + "\n".join(last)
    more = f"\n(and {len(errors) - MAX_ERRORS} more)" if len(errors) > MAX_ERRORS else ""
    return "the compiler refused the source:\n" + "\n".join(errors[:MAX_ERRORS]) + more


def _located(match: re.Match, solution: Path, source: list[str]) -> str:
    file, number, text = Path(match["file"].strip()), int(match["line"]), match["text"].strip()
    if file.name == solution.name:
        line = number
    else:
        line = _place(file, number, source)
    if line is None:
        return f"{file.name}:{number}: {text}"
    code = source[line - 1].strip() if 0 < line <= len(source) else ""
    return f"{solution.name}:{line}: {text}" + (f"\n    {code}" if code else "")


def _place(generated: Path, number: int, source: list[str]) -> int | None:
    """The line of ``source`` that is line ``number`` of the generated file, judged by it and its neighbours."""
    try:
        lines = [line.strip() for line in generated.read_text(errors="replace").splitlines()]
    except OSError:
        return None
    if not 0 < number <= len(lines) or not lines[number - 1]:
        return None

    def agreement(index: int) -> int:
        return sum(
            0 <= index + k < len(source)
            and 0 <= number - 1 + k < len(lines)
            and source[index + k].strip() == lines[number - 1 + k]
            for k in range(-4, 5)
        )

    places = [index for index, line in enumerate(source) if line.strip() == lines[number - 1]]
    return max(places, key=agreement) + 1 if places else None
