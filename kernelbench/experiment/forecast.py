"""The cost of what is left of an experiment, before it is spent."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from kernelbench import suite
from kernelbench.experiment.plan import Experiment
from kernelbench.experiment.running import costs
from kernelbench.experiment.store import Store

MEASURED, GUESSED, UNKNOWN = "measured", "estimate", "unknown"


@dataclass(frozen=True)
class Forecast:
    """Remaining work of one variant. Costs are for the most attempts that there can be; None where nothing says.

    ``source`` is ``measured`` (the variant's finished runs), ``estimate`` (the file's) or ``unknown``.
    """

    variant: str
    runs: int
    problems: int
    attempts: int
    tokens: float | None
    usd: float | None
    seconds: float | None
    source: str


def forecast(experiment: Experiment, store: Store | None) -> list[Forecast]:
    """Return a forecast of each variant; ``store`` is None before the first run.

    Raises SelectorError and ProblemError where the problems cannot be found.
    """
    problems = experiment.landscape.problems if experiment.landscape else len(_problems(experiment))
    left = Counter(cell.variant for cell in (store.left() if store else experiment.cells()))
    finished = defaultdict(list)
    for one in store.finished.values() if store else ():
        finished[one.cell.variant].append(one)
    found = []
    for variant in experiment.variant:
        runs = left[variant.name]
        attempts = runs * problems * experiment.budget_of(variant)
        done = costs(finished[variant.name])
        if attempted := done.pop("attempts"):
            each = {name: None if value is None else value / attempted for name, value in done.items()}
            source = MEASURED
        else:
            each = vars(experiment.estimate)
            source = UNKNOWN if all(value is None for value in each.values()) else GUESSED
        most = {name: None if value is None else value * attempts for name, value in each.items()}
        found.append(Forecast(variant.name, runs, problems, attempts, **most, source=source))
    return found


def _problems(experiment: Experiment) -> list:
    """Return the problems, and run nothing of a folder that the plan of somebody else may name."""
    from pathlib import Path

    folder = experiment.evaluation.problem_dir
    return suite.ids(experiment.problems, Path(folder) if folder else None)
