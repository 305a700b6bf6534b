"""Solve problems on this machine: while a model writes for some, others are built, and the device times one.

Opens the builds and the devices, runs the solvers (``session``), measures each problem's best attempt once more, and
writes the views.
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import replace
from functools import partial
from pathlib import Path

from harness.faults import with_disk_room
from harness.problem.module import ProblemFile, ProblemId
from harness.result import Result
from harness.solution.discover import SolutionError, discover, read_solution, readable
from harness.solution.includes import read_bytes
from harness.solution.private_copy import PrivateCopies, private_copies
from kernelbench import suite
from kernelbench.evaluation import unevaluated
from kernelbench.evaluation.confirmation import confirm_best, fresh
from kernelbench.evaluation.executor import Evaluated, Options, Pair, closed_or_killed
from kernelbench.evaluation.local_executor import BuildQueue, Pipeline
from kernelbench.metrics import workloads
from kernelbench.run import Run
from kernelbench.run_files import sources
from kernelbench.run_files.folder import leads_by_a_link_in
from kernelbench.run_files.unevaluated import withdrawn
from kernelbench.solvers import session
from kernelbench.solvers.backend.interface import Work
from kernelbench.solvers.backend.local import LocalBackend
from kernelbench.solvers.log.journal import SOLUTIONS, Journal
from kernelbench.solvers.plan import Outcome, Plan, SolverError, Watcher
from kernelbench.solvers.problem_facts import SuiteProblem
from kernelbench.views import leaderboard


def solve(
    plan: Plan,
    selector: str,
    options: Options,
    out: Path,
    *,
    resume: bool = False,
    problem_dir: Path | None = None,
    watcher: Watcher | None = None,
) -> Outcome:
    """Run the solver on every selected problem, ``plan.at_once`` of them at a time, and write the leaderboard.

    A solver that fails ends its own problem; the others go on. Raises SelectorError, ProblemError
    or RunError for wrong input, EnvironmentUnfit where this machine cannot do it and WriteError
    where the run cannot be written. Killed at any point, nothing that was answered or evaluated is lost.
    """
    suite.find(selector, problem_dir)  # wrong input is known at once, a judge takes seconds to start
    pipeline = Pipeline(options)
    watcher = watcher or Watcher()
    with closed_or_killed(pipeline):
        outcome = _attempt(pipeline, plan, selector, out, resume, problem_dir, watcher)
    return _finish(outcome, partial(fresh, options), selector, problem_dir, watcher)


def solve_on(
    pipeline: Pipeline,
    plan: Plan,
    selector: str,
    out: Path,
    *,
    resume: bool = False,
    problem_dir: Path | None = None,
    watcher: Watcher | None = None,
) -> Outcome:
    """``solve`` with builds and devices that are open already, and stay so."""
    watcher = watcher or Watcher()
    outcome = _attempt(pipeline, plan, selector, out, resume, problem_dir, watcher)
    return _finish(outcome, lambda builds: contextlib.nullcontext(pipeline), selector, problem_dir, watcher)


def starting_kernels(folder: Path) -> dict[str, tuple[str, str]]:
    """Return kind and source of the kernel to start from, by problem: the one with the lowest sample number.

    Raises SolverError where ``folder`` holds no solutions, or two for the same problem and sample.
    """
    try:
        found = discover(folder)
    except SolutionError as error:
        raise SolverError(f"--start {folder}: {error}") from None
    if found.clashes:
        path, reason = found.clashes[0]
        raise SolverError(f"--start {folder}: {readable(path)} {reason}")
    kernels: dict[str, tuple[str, str]] = {}
    for solution in found.solutions:
        try:
            content = read_bytes(solution.path, in_place=True)
            if hashlib.sha256(content).hexdigest() != solution.sha256:  # it may lead to any file by now
                raise SolverError(f"--start {folder}: {readable(solution.path)} changed meanwhile; start again")
            source = content.decode()
        except OSError as error:
            raise SolverError(f"--start {folder}: cannot read {readable(solution.path)}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise SolverError(f"--start {folder}: {readable(solution.path)} is no text in UTF-8") from None
        kernels.setdefault(str(solution.problem), (solution.kind, source))
    return kernels


def _attempt(pipeline: Pipeline, plan: Plan, selector: str, out: Path, resume: bool, problem_dir, watcher) -> Outcome:
    """Run the solver on every problem; the run stays open."""
    files = suite.find(selector, problem_dir)
    run = _open_run(plan, selector, files, pipeline.options, pipeline.device, out, resume, problem_dir)
    if changed := {result.problem for result in run.of_other_problems(files)} | _withdrawn(run, files):
        run.close()
        raise SolverError(f"{', '.join(sorted(changed))} changed since {out} was begun: choose another --out")
    first = [result for result in run.results if result.confirms is None]  # what the solver was told
    made = len({(result.problem, result.solution["sample"]) for result in first})
    outcome = Outcome(run, pipeline.device, [str(file.id) for file in files], replayed=made)
    watcher.started(outcome, plan.budget * len(files) - made)
    with private_copies() as copies, pipeline.line(at_once=min(plan.at_once, len(files))) as line:
        _run_session(line, plan, pipeline.options, files, outcome, first, watcher, copies)
    return outcome


def _withdrawn(run: Run, files: list[ProblemFile]) -> set[str]:
    """Return the problems that changed during the run: the solver was told results that do not count any more."""
    return {problem for problem, _ in withdrawn(run.unevaluated)} & {str(file.id) for file in files}


def _run_session(
    line: BuildQueue, plan: Plan, options: Options, files: list[ProblemFile], outcome: Outcome, first: list[Result],
    watcher: Watcher, copies: PrivateCopies,
) -> None:  # fmt: skip
    run = outcome.run
    problems = [
        SuiteProblem(
            file, outcome.device, wanted=options.workload, precision=options.precision, clock_mhz=options.clock_mhz,
            hardware=plan.settings.get("hardware", ""),
        )
        for file in files
    ]  # fmt: skip
    backend = LocalBackend(line, {facts.id: facts for facts in problems}, outcome.device, run.path, copies)

    def keep(work: Work, results: list[Result]) -> None:
        file, measured = backend.problems[work.problem].file, next((r.problem_sha256 for r in results), "")
        with_disk_room(lambda: sources.keep(run, backend.solution(work), file, measured))
        for result in results:
            with_disk_room(partial(run.append, result))

    ended = session.run(plan, problems, backend, session.Store(Journal(run.path), first, keep, run.path), watcher)
    outcome.failures, outcome.stopped = ended.failures, ended.stopped


def _finish(outcome: Outcome, opened, selector: str, problem_dir: Path | None, watcher: Watcher) -> Outcome:
    """Measure the best attempt of each problem once more, on the executor that ``opened`` gives; write the views."""
    files = {str(file.id): file for file in suite.find(selector, problem_dir)}
    folder = outcome.run.path / SOLUTIONS

    def pair_of(result: Result) -> Pair | None:
        path = folder / result.solution["name"]
        if sources.leads_out(result.solution["name"]) or leads_by_a_link_in(outcome.run.path, path):
            return None
        try:
            solution = read_solution(path, folder, ProblemId.parse(result.problem))
            solution = replace(solution, sample=result.solution["sample"])  # whatever its comment says
        except (OSError, ValueError, SolutionError):  # a log of others may have a name that no file has
            return None
        file = files.get(result.problem)  # a run that goes on with fewer problems has results of others
        measured = result.solution["sha256"], result.solution.get("helpers", "")
        return None if file is None or (solution.sha256, solution.helpers) != measured else (file, solution)

    def record(item: Evaluated) -> None:
        file, measured = files[item.result.problem], item.result.problem_sha256
        with_disk_room(lambda: sources.keep(outcome.run, item.solution, file, measured))
        with_disk_room(lambda: outcome.run.append(item.result))
        watcher.evaluated(item.result)

    with private_copies() as copies:
        outcome.unconfirmed = confirm_best(
            outcome.run, pair_of, copies, opened, record, watcher.confirming, lambda what, text: None
        )
    for result in outcome.run.of_other_problems(files.values()):
        reason = "the problem changed during the run, and its results do not count: choose another --out"
        outcome.failures.setdefault(result.problem, reason)
    unevaluated.withdraw_of_other_problems(outcome.run, files.values())
    leaderboard.write(outcome.run, outcome.problems)
    outcome.run.close()
    return outcome


def _open_run(
    plan: Plan, selector: str, files: list[ProblemFile], options: Options, device: dict, out: Path, resume: bool,
    problem_dir: Path | None,
) -> Run:  # fmt: skip
    endpoint = plan.endpoint
    config = {
        "solutions": str(out / SOLUTIONS),
        "problem_dir": str(problem_dir) if problem_dir else None,
        "problems": selector,
        "device": device["name"],
        "threads": device.get("threads"),  # of PyTorch on a CPU
        **options.to_config(),
        **workloads.to_config(files, options.workload),
        "solver": plan.solver.name,
        "solver_sha256": plan.solver.sha256,
        "model": endpoint.model if endpoint else None,
        "base_url": endpoint.base_url if endpoint else None,
        "budget": plan.budget,
        "seed": plan.seed,
        "settings": plan.settings
        | {f"model.{key}": value for key, value in (endpoint.fields if endpoint else {}).items()},
        **plan.to_config(),
    }
    return Run.open(out, config, resume)
