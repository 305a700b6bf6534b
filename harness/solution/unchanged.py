"""Whether the files of a solution are still those that were discovered."""

from __future__ import annotations

from pathlib import Path

from harness.limits import MAX_SOURCE_BYTES
from harness.solution.discover import PREBUILT_SUFFIX, Solution
from harness.solution.includes import digest_of, named_digest

Stamp = tuple[tuple[int, ...], ...]


def stamp(solution: Solution) -> Stamp:
    """Return what writing, replacing or removing one of a solution's files changes."""
    return tuple(map(_stamp, (solution.path, *(file for file, _ in solution.taken_in))))


def _stamp(file: Path) -> tuple[int, ...]:
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def is_unchanged(solution: Solution, before: Stamp) -> bool:
    """Return whether its files have the content that was discovered, and nobody wrote them since ``before``."""
    folder = solution.path.resolve().parent
    try:
        if stamp(solution) != before or any(named_digest(file, folder) != one for file, one in solution.taken_in):
            return False
        too_large = solution.kind != PREBUILT_SUFFIX[1:] and solution.path.stat().st_size > MAX_SOURCE_BYTES
        return too_large or digest_of(solution.path) == solution.sha256  # of one too large it is another digest
    except OSError:
        return False
