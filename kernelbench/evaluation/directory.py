"""``kb eval`` as a function: a directory of solutions in, a run directory with results out."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import errno
import itertools
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from harness.compile.cost import compiles
from harness.faults import with_disk_room
from harness.problem.module import ProblemFile
from harness.result import Result
from harness.solution.discover import Solution, read_file
from harness.solution.private_copy import Changed, PrivateCopies, private_copies
from harness.solution.unchanged import CHANGED, is_unchanged, stamp
from kernelbench import suite
from kernelbench.evaluation import unevaluated
from kernelbench.evaluation.chosen import (
    Case,
    Chosen,
    Selection,
    cases_of,
    choose,
    compared_with,
    counted,
    fitting_of,
    id_of,
)
from kernelbench.evaluation.confirmation import OTHER_PROBLEM, confirm_best, fresh
from kernelbench.evaluation.executor import (
    Evaluated,
    Executor,
    Options,
    Pair,
    Skipped,
    Status,
    closed_or_killed,
    open_executor,
)
from kernelbench.evaluation.stored_baselines import BaselineKey, StoredBaselines
from kernelbench.metrics import workloads
from kernelbench.run import Run, RunError
from kernelbench.run_files import sources
from kernelbench.run_files.folder import linked
from kernelbench.views import leaderboard

_CHANGED = "one of its files changed during the run: continue with --resume when it is written"


@dataclass
class Outcome:
    """Result of evaluating a directory."""

    run: Run
    device: dict
    devices: int  # how many of it
    problems: list[str]  # ids that count in fast_p
    resumed: int = 0  # results that were in the log already
    skipped: list[Skipped] = field(default_factory=list)
    unconfirmed: list[Skipped] = field(default_factory=list)  # best solutions that could not be measured again
    unmapped: list[tuple[Path, str]] = field(default_factory=list)
    unknown: int = 0  # of the unmapped, that name a problem which there is not
    unselected: int = 0  # solutions of problems outside the selection
    workloads: list[str] = field(default_factory=list)  # that anything was to be evaluated on
    root: Path = Path()  # the directory of solutions
    found: frozenset[tuple[str, str]] = frozenset()  # problem and name of each selected solution in it


class Watcher:
    """Told what happens; the command line shows it. The default shows nothing."""

    def started(self, outcome: Outcome, todo: int) -> None: ...

    def confirming(self, todo: int) -> None:
        """Announce that the best samples of so many problems are measured once more."""

    def status(self, what: str, text: str) -> None: ...

    def ended(self, item: Evaluated | Skipped) -> None: ...


def evaluate_directory(
    selection: Selection,
    options: Options,
    *,
    out: Path | None = None,
    resume: bool = False,
    again: Collection[tuple[str, str, str | None]] = (),
    watcher: Watcher | None = None,
) -> Outcome:
    """Evaluate what is missing and write the leaderboard.

    Parameters
    ----------
    again
        Cases (problem, name of the solution, workload) to evaluate although they have a result.

    Raises SolutionError, SelectorError, ProblemError, BaselineError or RunError for
    wrong input, before anything runs, and EnvironmentUnfit where this machine cannot
    do it. Interrupted at any point, the log holds every result but the one in
    flight.
    """
    with private_copies() as copies:
        return _evaluate(selection, options, copies, out, resume, again, watcher or Watcher())


def _evaluate(
    selection: Selection, options: Options, copies: PrivateCopies, out: Path | None, resume: bool,
    again: Collection[tuple[str, str, str | None]], watcher: Watcher,
) -> Outcome:  # fmt: skip
    chosen = choose(selection)
    comparisons = StoredBaselines(options.baselines)
    executor = open_executor(options, builds=any(compiles(solution) for _, solution in chosen.pairs))
    with closed_or_killed(executor):
        unfit, fitting = fitting_of(chosen.pairs, executor.device["type"])
        lacking, asked = cases_of(fitting, options.workload, executor.device["type"])
        problems = counted(selection.selector, chosen.files, asked)
        present = BaselineKey.here(executor.device, executor.torch_version, options.precision)
        uncompared, cases = compared_with(comparisons, asked, present)
        run = _open_run(selection, chosen.root, options, executor.device, asked, out, resume)
        unevaluated.withdraw_of_other_problems(run, chosen.files.values())
        unevaluated.withdraw_of_other_workloads(run, {(str(s.problem), s.name, name) for _, s, name in asked})
        todo = _todo(run, cases, again)
        outcome = _begun(run, executor, problems, chosen, cases, len(cases) - len(todo))
        unevaluated.keep_unmapped(run, chosen.unmapped)
        unevaluated.withdraw_rewritten(run, chosen)
        record = partial(_record, outcome, comparisons, chosen, copies, watcher)
        aside, ready, later = _copied(todo, copies)
        refused = unfit + lacking + uncompared
        watcher.started(outcome, len(refused) + len(todo))
        aside = refused + aside
        while aside or ready:
            with contextlib.closing(_evaluated(executor, ready, watcher.status)) as items:
                for item in itertools.chain(aside, items):
                    record(item)
            copies.release()
            aside, ready, later = _copied(later, copies)
    pairs = {(str(s.problem), s.name, s.sha256): (file, s) for file, s in fitting}

    def pair_of(result: Result) -> Pair | None:
        pair = pairs.get((result.problem, result.solution["name"], result.solution["sha256"]))
        return None if pair is None or not is_unchanged(pair[1], chosen.stamps[pair[1]]) else pair

    outcome.unconfirmed = confirm_best(
        run, pair_of, copies, partial(fresh, options), record, watcher.confirming, watcher.status
    )
    # a gate takes results for what is there: one whose file changed after its record was written has none now
    told, of_others = {one.solution for one in outcome.skipped}, _of_other_problems(run, chosen)
    for solution in dict.fromkeys(solution for _, solution in fitting if solution not in told):
        if not is_unchanged(solution, chosen.stamps[solution]):
            record(Skipped(solution, _CHANGED, changed=True))
        elif (str(solution.problem), solution.name) in of_others:
            record(Skipped(solution, OTHER_PROBLEM, changed=True))
    unevaluated.withdraw_of_other_problems(run, chosen.files.values())
    leaderboard.write(run, outcome.problems)
    run.close()
    return outcome


def _of_other_problems(run: Run, chosen: Chosen) -> set[tuple[str, str]]:
    """Return problem and name of solutions with a result of a text that their problem has no more."""
    return {(r.problem, r.solution["name"]) for r in run.of_other_problems(chosen.files.values())}


def _begun(
    run: Run, executor: Executor, problems: list[str], chosen: Chosen, cases: list[Case], resumed: int
) -> Outcome:
    """Return the outcome before anything is evaluated."""
    return Outcome(
        run=run,
        device=executor.device,
        devices=executor.devices,
        problems=problems,
        resumed=resumed,
        unmapped=chosen.unmapped,
        unknown=chosen.unknown,
        unselected=chosen.unselected,
        workloads=list(dict.fromkeys(name for _, _, name in cases)),
        root=chosen.root,
        found=frozenset((str(s.problem), s.name) for _, s in chosen.pairs),
    )


def _todo(run: Run, cases: list[Case], again: Collection[tuple[str, str, str | None]]) -> list[Case]:
    """Return the cases without a result in the run, and those to evaluate ``again``."""
    missing = set(run.missing([(solution, name) for _, solution, name in cases]))
    return [
        (file, s, name) for file, s, name in cases if (s, name) in missing or (str(s.problem), s.name, name) in again
    ]


def _copied(
    cases: list[Case], copies: PrivateCopies, changed: str = _CHANGED
) -> tuple[list[Skipped], list[Case], list[Case]]:
    """Put aside what cannot be copied as it was discovered; return the cases with copies, and those for later.

    What others' copies leave no room for waits until these are evaluated and their copies gone.
    """
    aside: dict[Solution, Skipped] = {}
    without_room: dict[Solution, Skipped] = {}
    ready = []
    for file, solution, name in cases:
        if solution in aside or solution in without_room:
            continue
        try:
            ready.append((file, copies.of(solution), name))
        except Changed:
            aside[solution] = Skipped(solution, changed, changed=True)
        except OSError as error:
            found = without_room if error.errno in (errno.ENOSPC, errno.EDQUOT) else aside
            found[solution] = Skipped(solution, f"its files cannot be copied: {error.strerror}")
    if ready:
        return [*aside.values()], ready, [case for case in cases if case[1] in without_room]
    return [*aside.values(), *without_room.values()], [], []


def _record(
    outcome: Outcome, comparisons: StoredBaselines, chosen: Chosen, copies: PrivateCopies, watcher: Watcher,
    item: Evaluated | Skipped,
) -> None:  # fmt: skip
    """Write down what became of one candidate; a result of a file that was written meanwhile is none.

    To read it once more would take a core beside the next, which is timed: that is done when all have ended.
    """
    copy, item = item.solution, dataclasses.replace(item, solution=copies.original(item.solution))
    file = chosen.files[item.solution.problem]
    if isinstance(item, Evaluated) and stamp(item.solution) != chosen.stamps[item.solution]:
        item = Skipped(item.solution, _CHANGED, workload=item.result.workload["name"], changed=True)
    if isinstance(item, Evaluated):
        comparisons.into(item.result, file)
        with_disk_room(lambda: sources.keep(outcome.run, copy, file, item.result.problem_sha256))
        with_disk_room(lambda: outcome.run.append(item.result))
    else:
        outcome.skipped.append(item)
        with_disk_room(lambda: unevaluated.keep_skipped(outcome.run, item, file))
        with_disk_room(lambda: unevaluated.withdraw_changed(outcome.run, item))
    watcher.ended(item)


def evaluate_one(
    path: Path, options: Options, *, problem: str | None = None, problem_dir: Path | None = None,
    status: Status = lambda what, text: None,
) -> tuple[ProblemFile, Evaluated | Skipped]:  # fmt: skip
    """Evaluate one file, without a run; ``problem`` overrides what its name and comment say.

    Raises what ``evaluate_directory`` raises.
    """
    solution = read_file(path, problem=id_of(problem, problem_dir), names=suite.names(problem_dir))
    before = stamp(solution)
    (file,) = suite.find(str(solution.problem), problem_dir)
    comparisons = StoredBaselines(options.baselines)
    executor = open_executor(options, builds=compiles(solution))
    with closed_or_killed(executor), private_copies() as copies:
        device = executor.device
        unfit, todo = fitting_of([(file, solution)], device["type"])
        workload = file.workload_name(options.workload, device["type"])
        present = BaselineKey.here(device, executor.torch_version, options.precision)
        comparisons.refused([(file, workload) for file, _ in todo], present)
        aside, ready, _ = _copied([(file, solution, workload) for file, _ in todo], copies, CHANGED)
        (item,) = unfit or aside or executor.evaluate([(file, copy) for file, copy, _ in ready], status, workload)
    item = dataclasses.replace(item, solution=solution)
    if isinstance(item, Evaluated) and not is_unchanged(solution, before):
        item = Skipped(solution, CHANGED, workload=item.result.workload["name"], changed=True)
    if isinstance(item, Evaluated):
        comparisons.into(item.result, file)
    return file, item


def _evaluated(executor: Executor, cases: list[Case], status: Status) -> Iterator[Evaluated | Skipped]:
    """One workload after the other: what was built for the first is in the cache for the next."""
    for name in dict.fromkeys(name for _, _, name in cases):
        pairs = [(file, solution) for file, solution, other in cases if other == name]
        with contextlib.closing(executor.evaluate(pairs, status, name)) as items:
            for item in items:
                yield dataclasses.replace(item, workload=name) if isinstance(item, Skipped) else item


def _open_run(
    selection: Selection, root: Path, options: Options, device: dict, cases: list[Case], out: Path | None, resume: bool
) -> Run:
    problem_dir = selection.problem_dir
    out = out or _new_folder(f"{selection.solutions.resolve().stem}-{datetime.datetime.now():%Y%m%d-%H%M%S}")
    config = {
        "solutions": os.path.normpath(root),
        "problem_dir": os.path.normpath(problem_dir) if problem_dir else None,
        "problems": selection.selector,
        "device": device["name"],
        "threads": device.get("threads"),  # of PyTorch on a CPU
        **options.to_config(),
        **workloads.to_config({file.id: file for file, _, _ in cases}.values(), options.workload),
    }
    return Run.open(out, config, resume)


def _new_folder(name: str) -> Path:
    """``runs/name``, or with a number behind it where somebody else was quicker. RunError where ``runs`` is a link."""
    if link := linked(Path("runs")):
        raise RunError(f"{link}; name the folder with -o")
    for number in itertools.count(1):
        path = Path("runs") / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError:
            pass  # opening the run there says why
        return path
