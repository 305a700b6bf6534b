"""Static findings: lines of source that a reviewer should look at. They decide nothing.

Python is parsed, C++ and CUDA are split into tokens, so comments and strings
are no findings; sources that Python hands to ``load_inline`` are read as C++.
What a source does by way of strings that it builds stays unseen: findings tell
a reviewer where to look, and their absence proves nothing. Files that a
solution includes or passes to ``load`` are not read.

A rule is one entry in ``rules.RULES`` and the place in ``python_source`` or
``cpp_source`` that reports it.
"""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

from harness.integrity.static import cpp_source, python_source
from harness.integrity.static.rules import Finding, worst
from harness.isolated_call import ApartError, TooMuch, apart
from harness.limits import MAX_FINDING_CHARACTERS
from harness.solution.discover import Solution
from harness.solution.includes import read_source

__all__ = ["Finding", "findings"]


def findings(solution: Solution, precision: str = "fp32") -> list[Finding]:
    """Return at most ``MAX_FINDINGS``, the gravest, in the order of lines; nothing for a prebuilt library.

    Sources are read in a process that may be killed; one that takes too much is a finding.
    """
    if solution.kind == "so":
        return []
    name = solution.name
    if solution.refused:
        return [Finding(name, 1, "unreadable", solution.refused[:MAX_FINDING_CHARACTERS])]
    try:
        found = apart("harness.integrity.static:found_in", str(solution.path), name, precision)
    except TooMuch as much:
        return [Finding(name, 1, "unreadable", f"to read it takes {much}")]
    except ApartError as error:
        return [Finding(name, 1, "unreadable", str(error).strip().splitlines()[-1][:MAX_FINDING_CHARACTERS])]
    return [Finding(*finding) for finding in found]


def found_in(path: str, name: str, precision: str) -> list[tuple[Any, ...]]:
    """Return ``findings`` as JSON, for ``harness.isolated_call``."""
    find = python_source.find if path.endswith(".py") else cpp_source.find
    found = find(read_source(Path(path)), name)
    short = {Finding(f.file, f.line, f.rule, f.code[:MAX_FINDING_CHARACTERS]) for f in found}
    return [astuple(f) for f in worst({f for f in short if precision == "fp32" or f.rule != "lower_precision"})]
