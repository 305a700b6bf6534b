"""Notice files of a solution that are not those any more that were discovered."""

from __future__ import annotations

from pathlib import Path

from harness.solution.discover import Solution, SolutionError, read_solution
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

    A source that takes nearly as much to read as it may can be refused in one of two readings. What it names is then
    known from the other, or was not looked at.
    """
    if stamp(solution) != before:
        return False
    try:
        now = read_solution(solution.path, solution.root, solution.problem)
        if now.refused and not solution.refused:
            folder = solution.path.resolve().parent
            same = all(named_digest(file, folder) == digest for file, digest in solution.taken_in)
        else:
            same = solution.refused != "" or now.taken_in == solution.taken_in
    except (OSError, SolutionError):
        return False
    return same and now.sha256 == solution.sha256
