"""I, Implement: generate, compile, test, profile; each pass is an attempt, and each hypothesis has so many."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.result import Result
from kernelbench.endpoint import Message
from kernelbench.metrics import fast_p
from kernelbench.solvers.mantis import prompts
from kernelbench.solvers.mantis.artefacts import Analysis, Hypothesis, Outcome, keep
from kernelbench.solvers.model.llm import Answer
from kernelbench.solvers.model.tools import Tool

if TYPE_CHECKING:
    from kernelbench.solvers.mantis.settings import MantisSettings
    from kernelbench.solvers.task import Task

_SOURCE = {"type": "object", "properties": {"source": {"type": "string"}}, "required": ["source"]}


def run(
    task: Task, settings: MantisSettings, iteration: int, hypothesis: Hypothesis, analysis: Analysis | None
) -> Outcome:
    """Make the attempts of one hypothesis, the first from the best kernel, each further one from the one before."""
    base = task.best
    before_ms = fast_p.typical_ms(base.timing) if base else task.baseline["median_ms"]
    results: list[Result] = []
    for number in range(1, min(settings.attempts, task.budget) + 1):
        latest = results[-1] if results else None
        asked = prompts.implement(task, settings, hypothesis, analysis, base, latest)
        results.append(attempt(task, settings, asked, latest or base, {"attempt": number}))
    times = [fast_p.typical_ms(result.timing) for result in results if result.correct]
    best_ms = min((ms for ms in times if ms is not None), default=None)
    samples = [result.solution["sample"] for result in results]
    outcome = Outcome(hypothesis, samples, [str(result.status) for result in results], before_ms, best_ms)
    keep(task, iteration, f"5_implement_{hypothesis.id.replace('.', '_')}", outcome)
    return outcome


def attempt(
    task: Task, settings: MantisSettings, asked: list[Message], parent: Result | None, tags: dict[str, int]
) -> Result:
    """Ask for a kernel and evaluate it. An answer without code costs a further turn, and in the end an attempt."""
    answer = _with_code(task, settings, asked)
    candidate = settings.representation.candidate(task, answer)
    return task.evaluate(replace(candidate, parent=parent, tags={**candidate.tags, **tags}))


def _with_code(task: Task, settings: MantisSettings, asked: list[Message]) -> Answer:
    for turn in range(settings.repairs + 1):
        answer = task.llm.ask(
            asked, settings.representation.kind, tools=_tools(task, settings), **settings.sampling
        )
        missing = answer.no_code
        if not missing or turn == settings.repairs:
            break
        task.say(f"malformed answer (asking again): {missing}")
        said = {"role": "assistant", "content": answer.text}
        asked = [*asked, said, {"role": "user", "content": f"{missing}\n\n{task.render('mantis/no_code')}"}]
    return answer


def _tools(task: Task, settings: MantisSettings) -> list[Tool]:
    """Return tools that build and check a kernel without an attempt, where they are switched on."""
    free = list(settings.representation.tools)
    if not settings.trials:
        return free
    kind = settings.representation.kind

    def build(source: str) -> str:
        trial = task.build(source, kind)
        return f"{trial.status} {trial.message}".strip()

    def check(source: str) -> str:
        trial = task.check(source, kind)
        return f"{trial.status} {trial.message}".strip()

    return [
        *free,
        Tool("build", "Compiles a whole source file and says whether that works.", build, _SOURCE),
        Tool("check", "Compiles a whole source file and compares its outputs with PyTorch's.", check, _SOURCE),
    ]
