"""The files of a directory of solutions that one solution may see: its own, not its neighbours'."""

from __future__ import annotations

import contextlib
from pathlib import Path

from harness.isolated_call import ApartError, TooMuch, apart
from harness.limits import MAX_HEADER_BYTES, MAX_INCLUDED_FILES, MAX_LIBRARY_BYTES
from harness.solution.discover import PREBUILT_SUFFIX, Solution, is_solution
from harness.solution.helper_files import libraries_beside
from harness.solution.includes import read_source
from harness.solution.naming import RUN_FILES, is_run

# Names in a run's folder: ``kernelbench.run`` and others write them.
KEPT_BY_RUNS = RUN_FILES | {
    "sources", "references", "trajectory.jsonl", "calls.jsonl", "reviews.jsonl", "unevaluated.jsonl",
    "leaderboard.json", "leaderboard.md", "report.html", "workspaces", "artefacts", "trials",
}  # fmt: skip


_COMPILED_HEADER = ".gch"  # a file, or a folder of several


def own_files(solution: Solution) -> list[Path]:
    """Real paths of the solution's file and of what it includes, imports or names in the directory of solutions.

    A file that is a solution itself is never another solution's: neither what a discovery found, by whatever link or
    name, nor what its own name or comment maps to a problem. Nor is one that came later, whose digest nobody has.
    """
    path, found = solution.path.resolve(), {file for file, _ in solution.taken_in}
    try:
        own = [f for f in sorted(_all_named(solution) & found) if f != path and is_own(f, solution)]
    except (OSError, TooMuch, ApartError):
        own = []  # the build says what is wrong
    return [path, *own[:MAX_INCLUDED_FILES]]


def own_texts(solution: Solution) -> list[str]:
    """Return the texts of its own files, and of the modules that it imports by names from the directory of solutions.

    Raises OSError where its own source cannot be read.
    """
    if solution.path.suffix == PREBUILT_SUFFIX:
        return []
    path, *files = own_files(solution)
    if path.suffix == ".py":
        with contextlib.suppress(TooMuch, ApartError, OSError):
            imported = apart("harness.solution.source_facts:imported", str(path), str(solution.root))
            files += [file for file in map(Path, imported) if is_own(file, solution)]
    texts = [read_source(path)]
    for file in dict.fromkeys(files[:MAX_INCLUDED_FILES]):
        with contextlib.suppress(OSError):
            texts.append(read_source(file, MAX_HEADER_BYTES))
    return texts


def is_own(file: Path, solution: Solution) -> bool:
    """Return whether a file may be one of a solution's: it may see it, and it is none of its neighbours."""
    return file not in solution.neighbours and may_see(file, solution.root.resolve())


def may_see(file: Path, root: Path) -> bool:
    """Return whether a solution below ``root`` may see a file, as far as the file itself tells.

    It lies below ``root``, is not hidden, is no code that Python keeps of a module, which may be a solution, is in no
    run, which has results, is no solution itself and not too large to take its digest. Nor is it a compiled header,
    which GCC takes in place of the text that everybody reads, and trusts. Where ``root`` is a run by its
    files, which any solution's author may have put there, it is what a run keeps that is not seen. Raises OSError.
    """
    if not file.is_relative_to(root):
        return False
    parts = file.relative_to(root).parts
    if any(part.startswith(".") or part == "__pycache__" or part.endswith(_COMPILED_HEADER) for part in parts):
        return False
    if file.stat().st_size > MAX_LIBRARY_BYTES:
        return False
    folders = [folder for folder in file.parents if folder.is_relative_to(root)]
    runs = [folder for folder in folders if is_run(folder)]
    if runs not in ([], [root]) or runs and _is_kept_by_runs(parts[0]):
        return False
    return not is_solution(file)


def _is_kept_by_runs(name: str) -> bool:
    return name in KEPT_BY_RUNS or name.endswith(".jsonl")  # logs of solvers, as memory.jsonl and facts.jsonl


def named_neighbours(solution: Solution) -> list[Path]:
    """Return those of its neighbours that a solution includes, imports or names: the others cannot become its files.

    Raises TooMuch or ApartError where it cannot be read.
    """
    if not solution.neighbours:
        return []
    try:
        return sorted(solution.neighbours & _all_named(solution))
    except OSError:
        return []  # nor has it files of its own


def _all_named(solution: Solution) -> set[Path]:
    """Real paths of what it takes in, wherever; raises OSError, and TooMuch or ApartError where it cannot be read."""
    path = solution.path.resolve()
    if path.suffix == PREBUILT_SUFFIX:
        return libraries_beside(path)
    files = apart("harness.solution.source_facts:files", str(solution.path), str(solution.root))
    if path.suffix == ".py":
        files += apart("harness.solution.source_facts:named", str(path))
    return set(map(Path, files))
