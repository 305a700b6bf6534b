"""A model as the author of kernels: a prompt for each strategy, one kernel in view."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from harness.result import Result
from kernelbench.solvers.kernelband import features
from kernelbench.solvers.kernelband.settings import Settings
from kernelbench.solvers.kernelband.strategies import TITLES, prompt_name
from kernelbench.solvers.task import Candidate, Task


class ModelAuthor:
    """``search.Author`` over ``task.llm``."""

    def __init__(self, task: Task, settings: Settings):
        self._task, self._settings = task, settings
        self._sampling: dict[str, Any] = {"temperature": settings.temperature, "max_tokens": settings.max_tokens}

    def first(self) -> Generator[Candidate, Result, Result | None]:
        """Yield the kernel to start from, else the model's, until one is verified."""
        task, candidate, result = self._task, self._task.starting_kernel, None
        further: list[str] = []
        while task.budget > 0:
            with task.tagged(phase="implement", iteration=0):
                result = yield candidate or Candidate(self._ask(*further), parent=result)
            if features.time_of(result) is not None:
                return result
            candidate, further = None, [task.render("improve", feedback=task.feedback(result, "G+E"))]
        return None

    def select(self, parent: Result, iteration: int) -> str:
        """Return the strategy that the model names; any, where it names none."""
        task, names = self._task, list(self._settings.targets)
        listed = "\n".join(f"- {TITLES[name]}: {task.render(prompt_name(name))}" for name in names)
        profile = "" if self._settings.profile == "off" else features.described(task.profile(parent))
        text = task.render(
            "kernelband/select", feedback=task.feedback(parent, "G+E"), profile=profile, strategies=listed
        )
        with task.tagged(phase="select", iteration=iteration):
            answer = task.llm.ask(text, **self._sampling).text
        return named_in(answer) or task.rng.choice(names)

    def expand(self, parent: Result, strategy: str) -> Candidate:
        """Return the model's answer to a prompt with one kernel and one strategy."""
        task = self._task
        asked = task.render(
            "kernelband/expand",
            feedback=task.feedback(parent, "G+E"),
            title=TITLES[strategy],
            strategy=task.render(prompt_name(strategy)),
        )
        return Candidate(self._ask(asked))

    def _ask(self, *further: str):
        return self._task.llm.ask(self._task.prompt(*further), self._task.kinds[0], **self._sampling)


def named_in(answer: str) -> str | None:
    """Return the strategy that an answer names last; None where it names none."""
    lowered = answer.lower().replace(" and ", " & ").replace("access_layout", "access & layout")
    places = {name: lowered.rfind(title) for name, title in TITLES.items()}
    best = max(places, key=places.get)
    return best if places[best] >= 0 else None
