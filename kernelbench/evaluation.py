"""``kb eval`` as a function: a directory of solutions in, a run directory with results out."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness.build.cost import compiles
from harness.problem import ProblemFile
from harness.solution import Solution, SolutionError, discover, read_solution, readable
from kernelbench import leaderboard, sources, suite
from kernelbench.baselines import Comparisons, Present
from kernelbench.execution import Evaluated, Executor, Options, Pair, Skipped, Status, closed_or_killed, open_executor
from kernelbench.run import Run
from kernelbench.shapes import workloads_of


@dataclass
class Outcome:
    """What became of everything that the directory held."""

    run: Run
    device: dict
    devices: int  # how many of it
    problems: list[str]  # ids that count in fast_p
    resumed: int = 0  # results that were in the log already
    skipped: list[Skipped] = field(default_factory=list)
    unmapped: list[tuple[Path, str]] = field(default_factory=list)
    unknown: int = 0  # of the unmapped, that name a problem which there is not
    unselected: int = 0  # solutions of problems outside the selection
    workloads: list[str] = field(default_factory=list)  # that anything was to be evaluated on


class Watcher:
    """Told what happens; the command line shows it. The default shows nothing."""

    def started(self, outcome: Outcome, todo: int) -> None: ...

    def status(self, what: str, text: str) -> None: ...

    def ended(self, item: Evaluated | Skipped) -> None: ...


def evaluate_directory(
    solutions: Path,
    options: Options,
    *,
    selector: str | None = None,
    problem_dir: Path | None = None,
    out: Path | None = None,
    resume: bool = False,
    prebuilt: bool = False,
    watcher: Watcher | None = None,
) -> Outcome:
    """Evaluate what is missing and write the leaderboard.

    Raises SolutionError, SelectorError, ProblemError, BaselineError or RunError for
    wrong input, before anything runs, and EnvironmentUnfit where this machine cannot
    do it. Interrupted at any point, the log holds every result but the one in
    flight.
    """
    watcher = watcher or Watcher()
    files = {file.id: file for file in suite.find(selector or "all", problem_dir)}
    everything = {file.id for file in suite.find("all", problem_dir)}
    found = discover(solutions, prebuilt)
    pairs = [(files[s.problem], s) for s in found.solutions if s.problem in files]
    unknown = [(s.path, f"there is no problem {s.problem}") for s in found.solutions if s.problem not in everything]
    unmapped = [*found.unmapped, *unknown]
    unselected = len(found.solutions) - len(pairs) - len(unknown)
    if not pairs:
        raise SolutionError(_nothing(solutions, unmapped, unselected))

    comparisons = Comparisons(options.baselines)
    executor = open_executor(options, builds=any(compiles(solution) for _, solution in pairs))
    with closed_or_killed(executor):
        unfit, fitting = _fitting(pairs, executor.device["type"])
        cases = _cases(fitting, options.workload, executor.device["type"])
        present = Present(executor.device["name"], executor.torch_version, options.precision)
        comparisons.check([(file, name) for file, _, name in cases], present)
        outcome = Outcome(
            run=_open_run(solutions, options, executor.device, selector, problem_dir, out, resume),
            device=executor.device,
            devices=executor.devices,
            problems=_counted(selector, files, pairs, executor.device["type"]),
            unmapped=unmapped,
            unknown=len(unknown),
            unselected=unselected,
        )
        missing = set(outcome.run.missing([(solution, name) for _, solution, name in cases]))
        outcome.resumed = len(cases) - len(missing)
        outcome.workloads = list(dict.fromkeys(name for _, _, name in cases))
        todo = [case for case in cases if case[1:] in missing]
        watcher.started(outcome, len(unfit) + len(todo))
        with contextlib.closing(_evaluated(executor, todo, watcher.status)) as items:
            for item in itertools.chain(unfit, items):
                if isinstance(item, Evaluated):
                    comparisons.into(item.result, files[item.solution.problem])
                    sources.keep(outcome.run, item.solution, files[item.solution.problem])
                    outcome.run.append(item.result)
                else:
                    outcome.skipped.append(item)
                watcher.ended(item)
    leaderboard.write(outcome.run, outcome.problems)
    outcome.run.close()
    return outcome


def evaluate_one(
    path: Path, options: Options, *, problem: str | None = None, problem_dir: Path | None = None,
    status: Status = lambda what, text: None,
) -> tuple[ProblemFile, Evaluated | Skipped]:  # fmt: skip
    """Evaluate one file, without a run; ``problem`` overrides what its name and comment say.

    Raises what ``evaluate_directory`` raises.
    """
    given = suite.find(problem, problem_dir)[0].id if problem else None
    try:
        solution = read_solution(path, problem=given)
    except OSError as error:
        raise SolutionError(f"{path} cannot be read: {error.strerror}") from error
    (file,) = suite.find(str(solution.problem), problem_dir)
    comparisons = Comparisons(options.baselines)
    executor = open_executor(options, builds=compiles(solution))
    with closed_or_killed(executor):
        device = executor.device
        unfit, todo = _fitting([(file, solution)], device["type"])
        workload = file.workload_name(options.workload, device["type"])
        present = Present(device["name"], executor.torch_version, options.precision)
        comparisons.check([(file, workload) for file, _ in todo], present)
        (item,) = unfit or executor.evaluate(todo, status, workload)
    if isinstance(item, Evaluated):
        comparisons.into(item.result, file)
    return file, item


def _fitting(pairs: list[Pair], device_type: str) -> tuple[list[Skipped], list[Pair]]:
    """Put aside what is for another kind of device."""
    skipped, fitting = [], []
    for file, solution in pairs:
        if lacking := solution.lacks(device_type):
            skipped.append(Skipped(solution, lacking, elsewhere=True))
        else:
            fitting.append((file, solution))
    return skipped, fitting


def _cases(pairs: list[Pair], wanted: str | None, device_type: str) -> list[tuple[ProblemFile, Solution, str]]:
    """These solutions on each of their workloads. Raises ProblemError where a problem lacks one."""
    names = {file.id: workloads_of(file, wanted, device_type) for file, _ in pairs}
    return [(file, solution, name) for file, solution in pairs for name in names[file.id]]


def _evaluated(executor: Executor, cases: list[tuple[ProblemFile, Solution, str]], status: Status) -> Iterator:
    """One workload after the other: what was built for the first is in the cache for the next."""
    for name in dict.fromkeys(name for _, _, name in cases):
        pairs = [(file, solution) for file, solution, other in cases if other == name]
        with contextlib.closing(executor.evaluate(pairs, status, name)) as items:
            yield from items


def _open_run(solutions, options, device, selector, problem_dir, out, resume) -> Run:
    out = out or _new_folder(f"{solutions.resolve().name}-{datetime.datetime.now():%Y%m%d-%H%M%S}")
    config = {
        "solutions": os.path.normpath(solutions),
        "problem_dir": os.path.normpath(problem_dir) if problem_dir else None,
        "problems": selector,
        "device": device["name"],
        **options.to_config(),
    }
    return Run.open(out, config, resume)


def _new_folder(name: str) -> Path:
    """``runs/name``, or with a number behind it where somebody else was quicker."""
    for number in itertools.count(1):
        path = Path("runs") / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError:
            pass  # whoever makes the run there says why
        return path


def _nothing(solutions: Path, unmapped: list[tuple[Path, str]], unselected: int) -> str:
    """Why nothing in a directory of solutions is to be evaluated."""
    reasons = [f"  {readable(path)}: {reason}" for path, reason in unmapped]
    reasons += [f"  {unselected} solution(s) of other problems than the selected ones"] if unselected else []
    return "\n".join([f"nothing to evaluate in {solutions}:", *reasons])


def _counted(selector, files: dict, pairs: list[Pair], device_type: str) -> list[str]:
    """Every selected problem; without a selection those that have a solution which can run here."""
    if selector:
        return [str(problem_id) for problem_id in files]
    return sorted({str(file.id) for file, solution in pairs if solution.runs_on(device_type)})
