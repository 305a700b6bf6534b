"""Choose what a run evaluates: solutions of selected problems, each on its workloads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.problem.module import ProblemError, ProblemFile, ProblemId
from harness.solution.discover import Solution, SolutionError, discover, readable
from harness.solution.unchanged import Stamp, stamp
from kernelbench import suite
from kernelbench.evaluation.executor import Pair, Skipped
from kernelbench.evaluation.stored_baselines import BaselineKey, StoredBaselines
from kernelbench.metrics.workloads import workloads_of

Case = tuple[ProblemFile, Solution, str]  # with the name of a workload


@dataclass(frozen=True)
class Selection:
    """Selection of a directory's solutions.

    Attributes
    ----------
    solutions
        A directory of solutions, or one file.
    selector
        Problems that count, as in ``level1``; without it those that have a solution.
    problem_dir
        Another folder of problems than the suite's.
    problem
        The problem that one file solves, whatever its name and comment say.
    prebuilt
        Whether ``.so`` files are accepted.
    """

    solutions: Path
    selector: str | None = None
    problem_dir: Path | None = None
    problem: str | None = None
    prebuilt: bool = False


@dataclass(frozen=True)
class Chosen:
    """Solutions of selected problems, and what else the directory holds."""

    files: dict[ProblemId, ProblemFile]  # selected
    pairs: list[Pair]
    stamps: dict[Solution, Stamp]  # of their files, as they were found
    root: Path
    unmapped: list[tuple[Path, str]]
    unknown: int
    unselected: int
    solutions: tuple[Solution, ...]  # all in the directory that solve a problem which there is, selected or not
    alone: bool  # nothing but one file of the directory was read


def choose(selection: Selection) -> Chosen:
    """Find the solutions to evaluate; raises SolutionError where there is none."""
    problem_dir = selection.problem_dir
    files = {file.id: file for file in suite.find(selection.selector or "all", problem_dir)}
    everything = {file.id for file in suite.find("all", problem_dir)}
    found = discover(
        selection.solutions, selection.prebuilt, id_of(selection.problem, problem_dir), suite.names(problem_dir)
    )
    pairs = [(files[s.problem], s) for s in found.solutions if s.problem in files]
    unknown = [s for s in found.solutions if s.problem not in everything]
    unmapped = [*found.unmapped, *((found.root / s.name, f"there is no problem {s.problem}") for s in unknown)]
    unselected = len(found.solutions) - len(pairs) - len(unknown)
    if not pairs:
        raise SolutionError(_nothing(selection.solutions, unmapped, unselected))
    stamps = {solution: stamp(solution) for _, solution in pairs}
    solutions = tuple(s for s in found.solutions if s.problem in everything)
    alone = found.root != selection.solutions
    return Chosen(files, pairs, stamps, found.root, unmapped, len(unknown), unselected, solutions, alone)


def fitting_of(pairs: list[Pair], device_type: str) -> tuple[list[Skipped], list[Pair]]:
    """Put aside what is for another kind of device."""
    skipped, fitting = [], []
    for file, solution in pairs:
        if lacking := solution.lacks(device_type):
            skipped.append(Skipped(solution, lacking, elsewhere=True))
        else:
            fitting.append((file, solution))
    return skipped, fitting


def cases_of(pairs: list[Pair], wanted: str | None, device_type: str) -> tuple[list[Skipped], list[Case]]:
    """Give these solutions on each of their workloads, and put aside those whose problem lacks one.

    Raises ProblemError where all do.
    """
    names: dict[ProblemId, list[str]] = {}
    lacking: dict[ProblemId, ProblemError] = {}
    for file in {file.id: file for file, _ in pairs}.values():
        try:
            names[file.id] = workloads_of(file, wanted, device_type)
        except ProblemError as error:
            lacking[file.id] = error
    if lacking and not names:
        raise next(iter(lacking.values()))
    aside = [Skipped(solution, str(lacking[file.id])) for file, solution in pairs if file.id in lacking]
    return aside, [(file, solution, name) for file, solution in pairs for name in names.get(file.id, ())]


def compared_with(
    comparisons: StoredBaselines, cases: list[Case], present: BaselineKey
) -> tuple[list[Skipped], list[Case]]:
    """Put aside what no stored baseline that holds can be compared with. Raises BaselineError where that is all."""
    refused = comparisons.refused([(file, name) for file, _, name in cases], present)
    aside, ready = [], []
    for file, solution, name in cases:
        if reason := refused.get((file.id, name)):
            aside.append(Skipped(solution, f"{reason}; `kb baseline` measures it", workload=name))
        else:
            ready.append((file, solution, name))
    return aside, ready


def id_of(problem: str | None, problem_dir: Path | None) -> ProblemId | None:
    """Return the problem that a user names; None where he names none. Raises SelectorError."""
    return suite.find(problem, problem_dir)[0].id if problem else None


def _nothing(solutions: Path, unmapped: list[tuple[Path, str]], unselected: int) -> str:
    """Explain why nothing in a directory of solutions is to be evaluated."""
    reasons = [f"  {readable(path)}: {reason}" for path, reason in unmapped]
    reasons += [f"  {unselected} solution(s) of other problems than the selected ones"] if unselected else []
    return "\n".join([f"nothing to evaluate in {solutions}:", *reasons])


def counted(selector: str | None, files: dict[ProblemId, ProblemFile], cases: list[Case]) -> list[str]:
    """Every selected problem; without a selection those of ``cases``, which can be evaluated here."""
    if selector:
        return [str(problem_id) for problem_id in files]
    return sorted({str(file.id) for file, _, _ in cases})
