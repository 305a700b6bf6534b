"""What a solution's source shows to a reader who knows the tricks: findings, never a verdict.

Python is parsed, C++ and CUDA are split into tokens, so comments and strings
are no findings; sources that Python hands to ``load_inline`` are read as C++.
What a source does by way of strings that it builds stays unseen: findings tell
a reviewer where to look, and their absence proves nothing. Files that a
solution includes or passes to ``load`` are not read.

A rule is one entry in ``rules.RULES`` and the place in ``python_source`` or
``cpp_source`` that reports it.
"""

from __future__ import annotations

from harness.integrity.static import cpp_source, python_source
from harness.integrity.static.rules import Finding
from harness.solution import Solution

__all__ = ["Finding", "findings"]


def findings(solution: Solution, precision: str = "fp32") -> list[Finding]:
    """In the order of lines; nothing for a prebuilt library, or for Python that does not parse."""
    if solution.kind == "so":
        return []
    source = solution.path.read_text(errors="replace")
    find = python_source.find if solution.kind == "py" else cpp_source.find
    found = find(source, solution.name)
    if precision != "fp32":
        found = [finding for finding in found if finding.rule != "lower_precision"]
    return sorted(set(found), key=lambda finding: (finding.line, finding.rule))
