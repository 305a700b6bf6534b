"""The three forms of table 2: flat (MI), in-prompt and orchestrated. Each makes as many attempts as the budget has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelbench.solvers.mantis import analyze, implement, measure, nominate, prompts, summarize, triage
from kernelbench.solvers.mantis.artefacts import Hypothesis, Summary
from kernelbench.solvers.mantis.settings import FLAT, IN_PROMPT, ORCHESTRATED, MantisSettings

if TYPE_CHECKING:
    from kernelbench.solvers.task import Task


def flat(task: Task, settings: MantisSettings) -> None:
    """MI: generate, compile, test, profile, over and over, from the latest attempt."""
    _loop(task, settings, steered=False)


def in_prompt(task: Task, settings: MantisSettings) -> None:
    """The same loop, whose system prompt describes the method and holds the speed-of-light report."""
    _loop(task, settings, steered=True)


def orchestrated(task: Task, settings: MantisSettings) -> None:
    """Each phase by itself, handing artefacts on; the schedule is asked before each iteration."""
    learned: list[Summary] = []
    for iteration in task.iterations(settings.iterations):
        with task.tagged(iteration=iteration):
            summary = _iteration(task, settings, iteration, learned)
            learned += [summary] if summary else []


FORMS = {FLAT: flat, IN_PROMPT: in_prompt, ORCHESTRATED: orchestrated}


def solve(task: Task) -> None:
    """Run the form that the task's settings name."""
    settings = MantisSettings.of(task)
    FORMS[settings.form](task, settings)


def _loop(task: Task, settings: MantisSettings, steered: bool) -> None:
    latest = None
    with task.tagged(phase="implement"):
        while task.budget:
            asked = prompts.turn(task, settings, latest, steered)
            latest = implement.attempt(task, settings, asked, latest, {})


def _iteration(task: Task, settings: MantisSettings, iteration: int, learned: list[Summary]) -> Summary | None:
    """One outer pass through the phases that are not left out."""
    analysis = None
    with task.tagged(phase="measure"):
        measured = measure.run(task, iteration)
    if settings.has("analyze"):
        with task.tagged(phase="analyze"):
            analysis = analyze.run(task, settings, iteration, measured)
    with task.tagged(phase="nominate"):
        hypotheses = nominate.run(task, settings, iteration, measured, analysis, learned)
    with task.tagged(phase="triage"):
        chosen = triage.run(task, settings, iteration, hypotheses, analysis)
    outcomes = []
    for hypothesis in _filled(chosen, settings, iteration):
        with task.tagged(phase="implement", hypothesis=hypothesis.id):
            outcomes.append(implement.run(task, settings, iteration, hypothesis, analysis))
    if not settings.has("summarize"):
        return None
    with task.tagged(phase="summarize"):
        return summarize.run(task, settings, iteration, outcomes, analysis)


def _filled(chosen: list[Hypothesis], settings: MantisSettings, iteration: int) -> list[Hypothesis]:
    """Return as many hypotheses as an iteration has: where too few were named, free improvement takes the rest."""
    missing = settings.hypotheses - len(chosen)
    return chosen + [nominate.general(iteration, number) for number in range(1, missing + 1)]
