"""Jobs as JSON: problem, solution and artefact between the run's process, the judge and the worker."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.compile.artefact import Artefact
from harness.isolated_call import ApartError, TooMuch
from harness.limits import MAX_INCLUDED_FILES
from harness.problem.module import Problem, ProblemFile, ProblemId
from harness.solution.discover import Solution, why_unread
from harness.solution.visible_files import named_neighbours


def encode_problem(file: ProblemFile | Problem) -> dict[str, Any]:
    """Return a problem's identity and place as JSON."""
    return {"id": str(file.id), "name": file.name, "path": str(file.path)}


def decode_problem(record: dict[str, Any]) -> ProblemFile:
    """Return the problem that ``encode_problem`` wrote."""
    return ProblemFile(ProblemId.parse(record["id"]), record["name"], Path(record["path"]))


def encode_solution(solution: Solution) -> dict[str, Any]:
    """Return a solution as JSON, with no more of its neighbours than it names: a directory has many thousands.

    One that cannot be read here is refused: the judge, who may have the memory, would not know what is a neighbour's.
    So is one that names too many of them for a message. Of one that is refused nothing else is read, nor is it built.
    """
    neighbours: list[Path] = []
    try:
        neighbours = [] if solution.refused else named_neighbours(solution)
    except (TooMuch, ApartError) as error:
        solution = replace(solution, refused=why_unread(error), taken_in=())
    if len(neighbours) > MAX_INCLUDED_FILES:
        refused = f"it names {len(neighbours):,} other solutions, and the limit is {MAX_INCLUDED_FILES}"
        solution, neighbours = replace(solution, refused=refused), []
    texts = {"path": str(solution.path), "problem": str(solution.problem)}
    texts["taken_in"] = [(str(file), digest) for file, digest in solution.taken_in]
    return {**vars(solution), **texts, "neighbours": list(map(str, neighbours))}


def decode_solution(record: dict[str, Any]) -> Solution:
    """Return the solution that ``encode_solution`` wrote."""
    neighbours = frozenset(map(Path, record["neighbours"]))
    taken_in = tuple((Path(file), digest) for file, digest in record["taken_in"])
    path, problem = Path(record["path"]), ProblemId.parse(record["problem"])
    read = {"path": path, "problem": problem, "taken_in": taken_in, "neighbours": neighbours}
    return Solution(**{**record, **read})


def encode_artefact(artefact: Artefact) -> dict[str, Any]:
    """Return an artefact as JSON."""
    return {**vars(artefact), "library": str(artefact.library) if artefact.library else None}


def decode_artefact(record: dict[str, Any]) -> Artefact:
    """Return the artefact that ``encode_artefact`` wrote."""
    library = Path(record["library"]) if record["library"] else None
    tuples = {name: tuple(record[name]) for name in ("flags", "keys")}
    return Artefact(**{**record, "library": library, **tuples})
