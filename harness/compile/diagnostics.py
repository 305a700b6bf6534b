"""The compiler's first errors, with line numbers of the solution's own source.

An inline extension is compiled from a file that torch generates around the
candidate's string, so its line numbers mean nothing to the author. The text of
the offending line, and its neighbours, place it in the solution.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import stat
from collections.abc import Sequence
from pathlib import Path

MAX_ERRORS = 5
# As drivers, shells and nvcc say it. What a source has them print stands behind its name and a line number.
_KILLED = re.compile(
    r"^[^\s:]+: (?:fatal error: Killed signal terminated program|internal compiler error: Killed)|^Killed$"
    r"|^(?:\S*/)?(?:ba|da)?sh: .*\d Killed\b|^nvcc error *: '.*' died due to signal 9\b",
    re.MULTILINE,
)

_MAX_BYTES = 4 << 20  # of a file that is opened for a message
_MAX_CHARACTERS = 500  # of a line that is shown

_NVCC = re.compile(r"^(?P<file>[^\s(][^(]*)\((?P<line>\d{1,9})\)\s*: (?:fatal )?error(?: *#\S+)?: (?P<text>.*)$")
_GCC = re.compile(r"^(?P<file>[^\s:][^:]*):(?P<line>\d{1,9}):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$")
_LINKER = re.compile(r"undefined reference to|cannot find -l|multiple definition of|^ptxas (?:fatal|error)|^nvcc fatal")


def killed_by(code: int, log: str) -> str:
    """The signal by which somebody ended the compiler or a part of it, as its driver tells; '' where nobody did."""
    return "SIGKILL" if code == -signal.SIGKILL or code > 0 and _KILLED.search(log) else ""


def compiler_errors(log: str, solution: Path, generated: Path | None = None) -> str:
    """A message of at most five errors, one a line, each with the line of the solution where that is known.

    The sources that torch generated lie below ``generated``. A ``#line`` of the
    candidate may name any file as the place of an error: no other is opened.
    """
    real = solution.resolve()
    source = _lines(real.parent, [real.name])
    lines = dict.fromkeys(line.strip() for line in log.splitlines())
    matches = ((line, _NVCC.match(line) or _GCC.match(line) or _LINKER.search(line)) for line in lines)
    found = [(line, match) for line, match in matches if match]
    errors: dict[str, None] = {}
    while found and len(errors) < MAX_ERRORS:  # no text is made of the others: they may be thousands
        line, match = found.pop(0)
        errors[_located(match, solution, source, generated) if match.re is not _LINKER else line] = None
    if not errors:
        last = [line for line in log.strip().splitlines() if line.strip()][-MAX_ERRORS:]
        return "the build failed:\n" + "\n".join(last)
    more = f"\n(and {len(found)} more)" if found else ""
    return "the compiler refused the source:\n" + "\n".join(errors) + more


def _located(match: re.Match, solution: Path, source: list[str], generated: Path | None) -> str:
    file, number, text = Path(match["file"].strip()), int(match["line"]), match["text"].strip()
    if file.name == solution.name:
        line = number
    else:
        line = _place(_lines_below(generated, file), number, source)
    if line is None:
        return f"{file.name}:{number}: {text}"
    code = source[line - 1].strip()[:_MAX_CHARACTERS] if 0 < line <= len(source) else ""
    return f"{solution.name}:{line}: {text}" + (f"\n    {code}" if code else "")


def _lines_below(folder: Path | None, file: Path) -> list[str]:
    """The lines of a file below ``folder``; none of any other."""
    parts = file.parts[len(folder.parts) :] if folder and file.is_relative_to(folder) else ()
    return [] if not parts or ".." in parts else [line.strip() for line in _lines(folder, parts)]


def _lines(folder: Path, parts: Sequence[str]) -> list[str]:
    """The lines of a plain file, to which no link below ``folder`` leads; none where it is something else."""
    data = b""
    with contextlib.suppress(OSError, ValueError), contextlib.ExitStack() as opened:
        descriptor = os.open(folder, os.O_DIRECTORY)
        opened.callback(os.close, descriptor)
        for part in parts:
            descriptor = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=descriptor)
            opened.callback(os.close, descriptor)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            data = open(descriptor, "rb", closefd=False).read(_MAX_BYTES)
    return data.decode(errors="replace").splitlines()


def _place(lines: list[str], number: int, source: list[str]) -> int | None:
    """The line of ``source`` that is line ``number`` of a generated file, judged by it and its neighbours."""
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
