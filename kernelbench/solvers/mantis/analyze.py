"""A, Analyze: the gap to the speed of light under TF32, and what the model says it is due to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelbench.solvers.mantis import prompts
from kernelbench.solvers.mantis.artefacts import Analysis, Bottleneck, Measurement, keep
from kernelbench.solvers.model.json_answers import ask_json

if TYPE_CHECKING:
    from kernelbench.solvers.mantis.settings import MantisSettings
    from kernelbench.solvers.task import Task

_MOST = 5  # bottlenecks: more are no diagnosis


def run(task: Task, settings: MantisSettings, iteration: int, measured: Measurement) -> Analysis:
    """Return the analysis; without its attribution where the model gives none that can be read."""
    found = gap(task, measured)
    asked = prompts.analyze(task, settings, measured, found)
    read = ask_json(task, asked, lambda data: _read(data, found), repairs=settings.repairs, **settings.sampling)
    analysis = read or found
    keep(task, iteration, "2_analyze", analysis)
    return analysis


def gap(task: Task, measured: Measurement) -> Analysis:
    """Return g = t_best / t_SOL, t_best being PyTorch's time before there is a correct kernel (page 7, section 4.2)."""
    t_sol_ms = task.bounds.t_sol_ms
    time_ms = measured.best_ms if measured.best_ms is not None else measured.baseline_ms
    return Analysis(time_ms / t_sol_ms if t_sol_ms and time_ms is not None else None, t_sol_ms)


def _read(data: dict[str, Any], found: Analysis) -> Analysis:
    bottlenecks = [Bottleneck(str(one["name"]), str(one["evidence"])) for one in data["bottlenecks"][:_MOST]]
    return Analysis(found.gap, found.t_sol_ms, bottlenecks, str(data.get("summary", "")))
