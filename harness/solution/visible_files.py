"""The files of a directory of solutions that one solution may see: its own, not its neighbours'."""

from __future__ import annotations

import contextlib
from pathlib import Path

from harness.isolated_call import ApartError, TooMuch, apart
from harness.limits import MAX_INCLUDED_FILES
from harness.solution.discover import PREBUILT_SUFFIX, RUN_FILES, Solution, files_of, is_solution


def own_files(solution: Solution) -> list[Path]:
    """Real paths of the solution's file and of what it includes, imports or names in the directory of solutions.

    A file that is a solution itself is never another solution's: neither what a discovery found, by whatever link or
    name, nor what its own name or comment maps to a problem.
    """
    root, path = solution.root.resolve(), solution.path.resolve()
    try:
        named = {file for file in _all_named(solution) if file != path and _is_shown(file, root)}
        own = [file for file in sorted(named - solution.neighbours) if not is_solution(file)]
    except OSError:
        own = []  # the build says what is wrong
    return [path, *own[:MAX_INCLUDED_FILES]]


def _is_shown(file: Path, root: Path) -> bool:
    """Return whether a file may be a solution's: below ``root``, not hidden, and in no run, which has results."""
    if not file.is_relative_to(root) or any(part.startswith(".") for part in file.relative_to(root).parts):
        return False
    folders = [folder for folder in file.parents if folder.is_relative_to(root)]
    return not any(all((folder / name).exists() for name in RUN_FILES) for folder in folders)


def named_neighbours(solution: Solution) -> list[Path]:
    """Return those of its neighbours that a solution includes, imports or names: the others cannot become its files."""
    if not solution.neighbours:
        return []
    try:
        return sorted(solution.neighbours & _all_named(solution))
    except OSError:
        return []  # nor has it files of its own


def _all_named(solution: Solution) -> set[Path]:
    """Real paths of what it takes in, wherever; raises OSError."""
    path = solution.path.resolve()
    return _libraries_beside(path) if path.suffix == PREBUILT_SUFFIX else {*files_of(solution.path), *_named(path)}


def _libraries_beside(path: Path) -> set[Path]:
    return {file.resolve() for file in path.parent.glob("*.so*") if file.is_file()}


def _named(path: Path) -> set[Path]:
    """Files that strings of a Python source name or include; none where it cannot be read."""
    if path.suffix == ".py":
        with contextlib.suppress(TooMuch, ApartError):
            return set(map(Path, apart("harness.solution.source_facts:named", str(path))))
    return set()
