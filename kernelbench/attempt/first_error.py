"""The first error of a failed candidate: its line in the solution, and one line of text."""

from __future__ import annotations

import re
from typing import Any

from harness.result import Result, first_line


def first_error(result: Result) -> dict[str, Any] | None:
    """Return what a candidate's author must repair first; None for a correct one.

    ``line`` is that of the solution's own source, from the compiler's first error, a syntax error, or the
    innermost frame of a traceback; None where the message names none. ``message`` is the whole message.
    """
    if result.correct:
        return None
    name = result.solution["name"].rpartition("/")[2]
    line, text = _compiler(result.message, name) or _python(result.message, name) or (None, first_line(result.message))
    return {"text": text or str(result.status), "line": line, "rule": result.rule, "message": result.message}


def _compiler(message: str, name: str) -> tuple[int, str] | None:
    """Find ``relu.cu:12: text`` of the compiler."""
    found = re.search(rf"^{re.escape(name)}:(\d{{1,9}}): .*$", message, re.M)
    return (int(found[1]), found[0]) if found else None


def _python(message: str, name: str) -> tuple[int, str] | None:
    """Find ``(relu.py, line 12)`` of a syntax error, or the last frame of a traceback in this file."""
    syntax = re.search(rf"\({re.escape(name)}, line (\d{{1,9}})\)", message)
    frames = re.findall(rf'File "(?:[^"\n]*/)?{re.escape(name)}", line (\d{{1,9}})', message)
    line = syntax[1] if syntax else frames[-1] if frames else None
    return None if line is None else (int(line), first_line(message))
