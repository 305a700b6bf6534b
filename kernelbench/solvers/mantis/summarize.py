"""S, Summarize: expectation against outcome, distilled into lessons that this and other problems can use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelbench.solvers.mantis import prompts
from kernelbench.solvers.mantis.artefacts import Analysis, Outcome, Summary, keep
from kernelbench.solvers.model.json_answers import Malformed, ask_json

if TYPE_CHECKING:
    from kernelbench.solvers.mantis.settings import MantisSettings
    from kernelbench.solvers.task import Task

_MOST = 5  # lessons of one iteration
_CHARACTERS = 600  # of one lesson: a pattern, not a report


def run(
    task: Task, settings: MantisSettings, iteration: int, outcomes: list[Outcome], analysis: Analysis | None
) -> Summary:
    """Return the summary, and add its lessons to the memory that all problems share."""
    asked = prompts.summarize(task, settings, outcomes, analysis)
    found = ask_json(task, asked, _read, repairs=settings.repairs, after_last=True, **settings.sampling)
    summary = found or Summary()
    if settings.has("memory"):
        operators = sorted({row["name"] for row in task.bounds.operators})
        speedups = [outcome.speedup for outcome in outcomes]
        for lesson in summary.lessons:
            task.memory.add(lesson, iteration=iteration, operators=operators, speedups=speedups)
    keep(task, iteration, "6_summarize", summary)
    return summary


def _read(data: dict[str, Any]) -> Summary:
    lessons = data["lessons"]
    if not isinstance(lessons, list):
        raise Malformed("'lessons' must be a list of sentences")
    return Summary([str(lesson)[:_CHARACTERS] for lesson in lessons[:_MOST]], str(data.get("next", ""))[:_CHARACTERS])
