"""The digest of a solution's code: equal for two sources between which no program that runs could tell.

That is the content of a library, which is linked without symbols and build number, so that neither comments nor names
of local variables change it. Its process has a copy of it, and knows neither its source nor its place in the cache. One
for CUDA holds line numbers, size and date of its source, so it is the same for the same text.
"""

from __future__ import annotations

from harness.compile.artefact import Artefact
from harness.solution.discover import Solution
from harness.solution.includes import digest_of


def code_digest(solution: Solution, artefact: Artefact) -> str | None:
    """Return the digest; None of what takes in other files, of prebuilt libraries, and of Python, which has a name."""
    if solution.helpers or solution.kind == "so" or artefact.library is None:
        return None
    try:
        return digest_of(artefact.library)
    except OSError:
        return None
