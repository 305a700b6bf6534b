"""One run of an experiment on a landscape."""

from __future__ import annotations

import time

from kernelbench.experiment.outcomes import Finished, judged
from kernelbench.experiment.plan import Cell, Experiment
from kernelbench.scheduling.traces import traces
from kernelbench.solvers import script
from kernelbench.solvers.landscape.simulation import Landscape, simulate


def problems_of(experiment: Experiment) -> tuple[str, ...]:
    """Return the problems of each run."""
    return tuple(f"1/{number}" for number in range(1, experiment.landscape.problems + 1))


def run(experiment: Experiment, cell: Cell) -> Finished:
    """Return the run of a cell, made in this process."""
    begin = time.monotonic()
    variant, world = experiment.of(cell), experiment.landscape
    landscape = Landscape(
        cell.seed, problems_of(experiment), variant.author or world.author, world.insight, cell.repeat, world.error
    )
    made = simulate(
        script.Script(script.find(variant.solver)), landscape, budget=experiment.budget_of(variant),
        settings=variant.texts, schedule=variant.schedule or experiment.schedule,
    )  # fmt: skip
    attempts, calls = ([vars(line) for line in log.values()] for log in (made.journal.attempts, made.journal.calls))
    found = traces(made.results, attempts, calls, landscape.problems, judged)
    return Finished(cell, found, round(time.monotonic() - begin, 3))
