"""Prompts of each phase: conversations made of the files in ``prompts/mantis``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.result import Result
from kernelbench.endpoint import Message
from kernelbench.metrics import fast_p, settled
from kernelbench.solvers.log.journal import Note
from kernelbench.solvers.mantis.artefacts import Analysis, Hypothesis, Measurement, Outcome, Summary, milliseconds
from kernelbench.solvers.prompting import profile_text
from kernelbench.solvers.prompting.task_prompt import sizes_of

if TYPE_CHECKING:
    from kernelbench.solvers.mantis.settings import MantisSettings
    from kernelbench.solvers.task import Task

_NO_KERNEL = "There is none yet: PyTorch's own operators do the work."


def analyze(task: Task, settings: MantisSettings, measured: Measurement, found: Analysis) -> list[Message]:
    """Ask what the gap is due to."""
    asked = task.render(
        "mantis/analyze", measurement=measured.to_markdown(), analysis=found.to_markdown(), source=_best_source(task)
    )
    return _conversation(task, settings, [_report(task), asked])


def nominate(
    task: Task,
    settings: MantisSettings,
    measured: Measurement,
    analysis: Analysis | None,
    learned: list[Summary],
    notes: list[Note],
) -> list[Message]:
    """Ask for hypotheses. Without an analysis nothing of the speed of light is shown."""
    lessons = "\n\n".join(f"Iteration {number}:\n{one.to_markdown()}" for number, one in enumerate(learned, 1))
    remembered = "\n".join(f"- {note.text}" for note in notes)
    asked = task.render(
        "mantis/nominate",
        measurement=measured.to_markdown(),
        analysis=analysis.to_markdown() if analysis else "",
        source=_best_source(task),
        learned=task.render("mantis/learned", lessons=lessons) if lessons else "",
        memory=task.render("mantis/memory", notes=remembered) if remembered else "",
        count=settings.nominated,
    )
    return _conversation(task, settings, [asked])


def implement(
    task: Task,
    settings: MantisSettings,
    hypothesis: Hypothesis,
    analysis: Analysis | None,
    base: Result | None,
    latest: Result | None,
) -> list[Message]:
    """Ask for a kernel after a hypothesis: from the best one, or after the latest attempt at this hypothesis."""
    parts = [
        task.render(
            "mantis/implement",
            analysis=analysis.to_markdown() if analysis else "",
            hypothesis=hypothesis.to_markdown(),
        )
    ]
    if latest is not None:
        parts.append(_attempt(task, latest))
    elif base is not None:
        source = task.sources[base.solution["sample"]].strip()
        parts.append(task.render("mantis/base", source=source, time=milliseconds(fast_p.typical_ms(base.timing))))
    return _conversation(task, settings, [*parts, settings.representation.instructions(task)])


def summarize(
    task: Task, settings: MantisSettings, outcomes: list[Outcome], analysis: Analysis | None
) -> list[Message]:
    """Ask what an iteration taught."""
    asked = task.render(
        "mantis/summarize",
        outcomes="\n\n".join(outcome.to_markdown() for outcome in outcomes),
        analysis=analysis.to_markdown() if analysis else "",
    )
    return _conversation(task, settings, [asked])


def turn(task: Task, settings: MantisSettings, latest: Result | None, steered: bool) -> list[Message]:
    """Ask for the next kernel of the flat loop; ``steered`` describes the method in the system prompt."""
    parts = []
    if latest is not None:
        if steered:
            parts.append(task.render("mantis/history", attempts=_history(task)))
        parts.append(_attempt(task, latest))
    method = [task.render("mantis/method"), _report(task)] if steered else []
    return _conversation(task, settings, [*parts, settings.representation.instructions(task)], method)


def _conversation(
    task: Task, settings: MantisSettings, parts: list[str], method: list[str] | None = None
) -> list[Message]:
    """Return a system prompt with the role, rules and ``method``, and a message with the problem and ``parts``."""
    device = task.limits.title if task.limits else task.device["name"]
    rules = [task.render("mantis/guardrails")] if settings.guardrails else []
    system = [task.render("mantis/role", device=device), *rules, *(method or [])]
    kernel = task.settings.starting_kernel
    start = [task.render("start", kind=kernel[0], source=kernel[1].strip())] if kernel and not task.results else []
    problem = task.render("mantis/problem", reference=task.source.strip(), sizes=sizes_of(task))
    return [
        {"role": "system", "content": "\n\n".join(filter(None, system))},
        {"role": "user", "content": "\n\n".join(filter(None, [problem, *start, *parts]))},
    ]


def _report(task: Task) -> str:
    report = task.facts.sol_report(task.conditions)
    return task.render("mantis/report", report=report) if report else ""


def _best_source(task: Task) -> str:
    return task.sources[task.best.solution["sample"]].strip() if task.best else _NO_KERNEL


def _attempt(task: Task, latest: Result) -> str:
    profile = f"\n\n{profile_text.markdown(task.profile(latest))}" if latest.correct else ""
    return task.render("mantis/attempt", feedback=task.feedback(latest, "G+E") + profile)


def _history(task: Task) -> str:
    return "\n".join(
        f"- attempt {result.solution['sample']}: {result.status} {settled.speedup_text(result)}".rstrip()
        for result in task.results
    )
