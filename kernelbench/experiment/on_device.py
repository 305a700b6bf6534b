"""One run of an experiment on a device: what `kb solve` does with the same options, in a run directory of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernelbench.endpoint import Endpoint
from kernelbench.evaluation.executor import Options
from kernelbench.evaluation.stored_baselines import Stored
from kernelbench.evaluation.stored_baselines import parse as parse_baselines
from kernelbench.experiment.outcomes import judged
from kernelbench.experiment.plan import LIMITS, Ceilings, Cell, Experiment, ExperimentError, Model, Variant
from kernelbench.metrics.scheduling import Trace
from kernelbench.metrics.workloads import together
from kernelbench.review import labels
from kernelbench.run import CONFIG, Run, RunError
from kernelbench.run_files.sources import trajectory_of
from kernelbench.scheduling.traces import calls_of, traces
from kernelbench.solvers import script
from kernelbench.solvers.log.journal import Journal
from kernelbench.solvers.orchestrator import solve
from kernelbench.solvers.plan import Outcome, Plan, Solver, Watcher
from kernelbench.solvers.program import Program
from kernelbench.solvers.prompting.prompts import Prompts
from kernelbench.solvers.schedule.limits import Limits


@dataclass(frozen=True)
class Ended:
    """``limited`` is the ceiling that stopped problems, or ''; ``failures`` are problems whose solver failed."""

    traces: list[Trace]
    failures: dict[str, str]
    limited: str


class _SameDevice(Watcher):
    """Raises ExperimentError before anything is asked for a run on another device than ``name``, if that is known."""

    def __init__(self, name: str):
        self._name = name

    def started(self, outcome: Outcome, todo: int) -> None:
        here = outcome.device["name"]
        if self._name not in ("", here):
            message = f"its finished runs are of {self._name}, and this is {here}: continue it there"
            raise ExperimentError(f"{message}, or choose another --out")


def run(experiment: Experiment, cell: Cell, folder: Path, rest: Ceilings, device: str = "") -> Ended:
    """Make the run of a cell, or continue it, within what is left of the ceilings.

    Figures pair it with runs on ``device``. Raises ExperimentError on another one.
    """
    variant, conditions = experiment.of(cell), experiment.evaluation
    endpoint = _endpoint(variant.model or experiment.model, conditions.at_once)
    plan = Plan(
        solver_of(variant), experiment.budget_of(variant), endpoint,
        Prompts(Path(variant.prompts) if variant.prompts else None), variant.texts, cell.seed, conditions.at_once,
        schedule=variant.schedule or experiment.schedule, limits=Limits(**vars(rest)),
    )  # fmt: skip
    outcome = solve(
        plan, experiment.problems, options_of(experiment), folder, resume=True,
        problem_dir=Path(conditions.problem_dir) if conditions.problem_dir else None, watcher=_SameDevice(device),
    )  # fmt: skip
    limited = next((why for why in outcome.stopped.values() if "limit" in why), "")
    return Ended(of_folder(folder, outcome.problems), outcome.failures, limited)


def spent_in(folder: Path) -> dict[str, float]:
    """Return what a run directory has cost so far, by the names of LIMITS; what is not known counts as 0.

    So does one that is not there, or that can neither be read nor continued.
    """
    try:
        journal = Journal(folder if (folder / CONFIG).exists() else None)  # which begins its logs
    except RunError:
        return dict.fromkeys(LIMITS, 0.0)
    calls = journal.spent()
    return {
        "attempts": float(len(journal.attempts)),
        "tokens": float(sum(count or 0 for call in calls for count in call.tokens.values())),
        "usd": sum(call.cost_usd or 0.0 for call in calls),
        "seconds": journal.seconds_before,
    }


def solver_of(variant: Variant) -> Solver:
    """Return the solver of a variant. Raises SolverError where there is no such one."""
    if variant.solver_command is not None:
        return Program(variant.solver_command)
    return script.Script(script.find(variant.solver))


def options_of(experiment: Experiment) -> Options:
    """Return how solutions are evaluated. Raises BaselineError and ExperimentError."""
    given = experiment.evaluation
    if given.workload and "," in given.workload:
        raise ExperimentError("an experiment is of one workload: its figures are of one time a problem")
    baselines = parse_baselines(given.baseline)
    if any(isinstance(baseline, Stored) for baseline in baselines):
        raise ExperimentError("a solver is told a speedup as it is measured: give it baselines timed in turn")
    return Options(
        given.device, given.workload, given.precision, timeout_s=given.timeout, build_timeout_s=given.build_timeout,
        baselines=baselines, track=given.track, clock_mhz=given.clock,
        **({"jobs": given.jobs} if given.jobs else {}),
    )  # fmt: skip


def of_folder(folder: Path, problems: list[str]) -> list[Trace]:
    """Return the traces of a run directory, with the labels that reviews have given by now.

    Labels are of the measurements that count, the first: who fails in the second would have none.
    """
    made = Run.load(folder)
    first = made.measured_first()
    band_of = labels.band_of(labels.of_run(made, together(first)))
    return traces(
        first, trajectory_of(made), calls_of(made), problems,
        lambda result: judged(result, band_of),
    )  # fmt: skip


def _endpoint(model: Model | None, at_once: int) -> Endpoint | None:
    if model is None:
        return None
    return Endpoint(
        model.name, model.base_url, key_variable=model.key_variable, prices=tuple(model.price) if model.price else None,
        fields=model.fields, stream=model.stream, at_once=at_once,
    )  # fmt: skip
