"""Run the matrix of an experiment: on a device run by run, on a landscape several at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from harness.problem.module import ProblemFile
from kernelbench import suite, working_directory
from kernelbench.experiment import on_device, on_landscape
from kernelbench.experiment.outcomes import Finished
from kernelbench.experiment.plan import LIMITS, MOST_PROBLEMS, Ceilings, Cell, Experiment, ExperimentError
from kernelbench.experiment.store import Store
from kernelbench.run import CONFIG, FullLog, Run, RunError, WriteError
from kernelbench.solvers.landscape.simulation import SolverFailed

_WORTH_WORKERS = 16  # runs; a worker takes 1 s to start, a run of 10 problems about as long


@dataclass
class Progress:
    """End of an experiment: ``unfinished`` runs with the reason, and the ceiling that was reached, or ''."""

    unfinished: dict[Cell, str] = field(default_factory=dict)
    ceiling: str = ""


def run(experiment: Experiment, store: Store, told: Callable[[Finished], None] = lambda one: None) -> Progress:
    """Make the runs that are missing; ``told`` of each that has ended. A run that fails leaves the others alone.

    Raises what ``kb solve`` raises for wrong input and for a machine that cannot do it.
    """
    progress = Progress()
    make = _on_landscape if experiment.landscape else _on_device
    for one in make(experiment, store, progress):
        store.add(one)
        told(one)
    return progress


def _on_device(experiment: Experiment, store: Store, progress: Progress) -> Iterator[Finished]:
    device = _checked(experiment, store) if store.left() else ""
    # of runs that are not finished, which counts too: also of those that the plan has no more
    begun = {folder: on_device.spent_in(folder) for folder in store.begun()}
    for cell in store.left():
        folder = store.run_folder(cell)
        others = [cost for other, cost in begun.items() if other != folder]  # its own the run counts itself
        rest = remaining(experiment.limits, store, others)
        progress.ceiling = _reached(rest)
        if progress.ceiling:
            return
        before_s = begun.get(folder, {}).get("seconds", 0.0)
        begin = time.monotonic()
        try:
            ended = on_device.run(experiment, cell, folder, rest, device)
        except RunError as error:
            if isinstance(error, WriteError) and not isinstance(error, FullLog):
                raise  # the others could not be written either
            progress.unfinished[cell] = str(error)
            begun[folder] = on_device.spent_in(folder)
            continue
        if ended.limited:
            progress.ceiling = ended.limited
            return
        if ended.failures:
            problem, reason = next(iter(ended.failures.items()))
            progress.unfinished[cell] = f"{len(ended.failures)} problem(s), first {problem}: {reason}"
            begun[folder] = on_device.spent_in(folder)
            continue
        begun.pop(folder, None)
        seconds = before_s + time.monotonic() - begin  # of all its lives
        yield Finished(cell, ended.traces, round(seconds, 3))


def _checked(experiment: Experiment, store: Store) -> str:
    """Return the device of the finished runs, '' where none is known.

    Raises ExperimentError where a run would be of too many problems, or of others than the finished ones.
    """
    folder = experiment.evaluation.problem_dir
    files = suite.find(experiment.problems, Path(folder) if folder else None)
    if len(files) > MOST_PROBLEMS:
        raise ExperimentError(f"{experiment.problems} are {len(files):,} problems, and a run has {MOST_PROBLEMS:,}")
    _check_finished(store, [str(file.id) for file in files], f"{experiment.problems} now")
    return _check_finished_runs(store, files)


def _check_finished_runs(store: Store, files: Sequence[ProblemFile]) -> str:
    """Return the device of the finished runs, '' where none is known.

    Raises ExperimentError where one is of an older text of a problem, or of another device than an earlier one, and
    RunError where it is damaged.
    """
    device = ""
    for cell in filter(store.finished.__contains__, store.experiment.cells()):
        if not (store.run_folder(cell) / CONFIG).exists():  # nothing says what it was of
            continue
        run = Run.load(store.run_folder(cell))
        if changed := {result.problem for result in run.of_other_problems(files)}:
            raise ExperimentError(f"{', '.join(sorted(changed))} changed since {cell.name}: choose another --out")
        own = run.config.get("device") or ""
        if device and own not in ("", device):
            raise ExperimentError(f"{cell.name} is of {own}, and an earlier run of {device}: choose another --out")
        device = device or own
    return device


def _check_finished(store: Store, problems: Sequence[str], what: str) -> None:
    """Raise ExperimentError where a finished run is of others than these problems, which are ``what``."""
    if others := [one.cell.name for one in store.finished.values() if [t.problem for t in one.traces] != [*problems]]:
        raise ExperimentError(f"{others[0]} is of other problems than {what}; choose another --out")


def _on_landscape(experiment: Experiment, store: Store, progress: Progress) -> Iterator[Finished]:
    """Yield runs as they end, one worker a core; one at a time where there is a ceiling, or little to do."""
    cells = store.left()
    if cells:
        _check_finished(store, on_landscape.problems_of(experiment), "those of its landscape")
    if experiment.limits != Ceilings() or len(cells) < _WORTH_WORKERS:
        for cell in cells:
            progress.ceiling = _reached(remaining(experiment.limits, store))
            if progress.ceiling:
                return
            yield from _unless_failed(cell, lambda cell=cell: on_landscape.run(experiment, cell), progress)
        return
    here = os.getcwd()  # a plan's paths begin there
    with working_directory.left():  # where its processes start
        pool = ProcessPoolExecutor(os.cpu_count(), get_context("spawn"), initializer=os.chdir, initargs=(here,))
        submitted = {pool.submit(on_landscape.run, experiment, cell): cell for cell in cells}
    with pool:
        try:
            for done in as_completed(submitted):
                yield from _unless_failed(submitted[done], done.result, progress)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _unless_failed(cell: Cell, made: Callable[[], Finished], progress: Progress) -> Iterator[Finished]:
    try:
        one = made()
    except SolverFailed as error:
        progress.unfinished[cell] = str(error)
    else:
        yield one


def costs(runs: Sequence[Finished]) -> dict[str, float | None]:
    """Return ``spent`` as it is shown: None for tokens or USD of which a part is not known."""
    units = [unit for one in runs for trace in one.traces for unit in trace.units]
    unknown = [name for name in ("tokens", "usd") if any(getattr(unit, name) is None for unit in units)]
    return spent(runs) | dict.fromkeys(unknown)


def spent(runs: Iterable[Finished]) -> dict[str, float]:
    """Return what runs have cost, by the names of LIMITS; what is not known counts as 0, as a ceiling needs it."""
    total = dict.fromkeys(LIMITS, 0.0)
    for one in runs:
        total["seconds"] += one.seconds
        for trace in one.traces:
            for unit in trace.units:
                total["attempts"] += len(unit.attempts)
                total["tokens"] += unit.tokens or 0
                total["usd"] += unit.usd or 0
    return total


def remaining(limits: Ceilings, store: Store, others: Iterable[dict[str, float]] = ()) -> Ceilings:
    """Return what is left of the ceilings after the finished runs and these costs of ``others``."""
    known = [spent(store.finished.values()), *others]
    left = {
        name: None if limit is None else limit - sum(cost[name] for cost in known)
        for name, limit in vars(limits).items()
    }
    return Ceilings(**left)


def _reached(rest: Ceilings) -> str:
    return next((f"the experiment's limit of {name} is reached" for name, left in vars(rest).items()
                 if left is not None and left <= 0), "")  # fmt: skip
