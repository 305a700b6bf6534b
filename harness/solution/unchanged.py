"""Notice files of a solution that are not those any more that were discovered."""

from __future__ import annotations

from pathlib import Path

from harness.solution.discover import Solution, beginning
from harness.solution.includes import named_digest

CHANGED = "one of its files changed meanwhile: evaluate it again when it is written"

Stamp = tuple[tuple[int, ...], ...]


def stamp(solution: Solution) -> Stamp:
    """Return what writing, replacing or removing one of a solution's files changes."""
    return tuple(map(stamp_of_file, (solution.path, *(file for file, _ in solution.taken_in))))


def stamp_of_file(file: Path) -> tuple[int, ...]:
    """Return what writing, replacing or removing a file changes; an archive can give it any size and time."""
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def is_unchanged(solution: Solution, before: Stamp) -> bool:
    """Return whether its files are those that were discovered, and nobody wrote them since ``before``.

    What it names is not looked for again: a source that takes nearly as long as it may can name more in one of two
    readings, and who comes since then is in no private copy.
    """
    if stamp(solution) != before:
        return False
    folder = solution.path.resolve().parent
    try:
        same = all(named_digest(file, folder) == digest for file, digest in solution.taken_in if digest)
        return same and beginning(solution.path)[0] == solution.sha256
    except OSError:
        return False
