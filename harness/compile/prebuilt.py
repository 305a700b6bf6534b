""".so solutions: built by somebody else, taken as they are."""

from __future__ import annotations

from harness.compile.artefact import Artefact, BuildContext
from harness.solution.discover import Solution


def build(solution: Solution, context: BuildContext) -> Artefact:
    """Return a shared library that somebody else built."""
    return Artefact(solution.path, cached=True, note="prebuilt")
