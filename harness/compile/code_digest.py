"""The digest of a solution's code: equal for two sources between which no program that runs could tell.

That is the content of a library, which is linked without symbols and build number, so that neither comments nor names
of local variables change it, and whose source is hidden from it. One for CUDA holds line numbers, size and date of its
source, so it is the same for the same text. A Python module can read its own source: all of that counts.
"""

from __future__ import annotations

from harness.compile.artefact import Artefact
from harness.solution.discover import Solution
from harness.solution.includes import digest_of


def code_digest(solution: Solution, artefact: Artefact) -> str | None:
    """Return the digest; None where nothing can be said: of what takes in other files, and of prebuilt libraries."""
    if solution.helpers or solution.kind == "so":
        return None
    if artefact.library is None:
        return solution.sha256
    try:
        return digest_of(artefact.library)
    except OSError:
        return None
