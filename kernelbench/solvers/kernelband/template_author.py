"""Templates as the author of kernels: a strategy is a move along the parameters that it stands for. Needs no model."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Generator, Iterator

from harness.result import Result
from kernelbench.solvers.kernelband import features
from kernelbench.solvers.kernelband.settings import Settings
from kernelbench.solvers.task import Candidate, Task
from kernelbench.solvers.templates.plans import Choice, Plan

TEMPLATE = "template"  # as a parameter: another template
# Parameters of ``templates.plans`` that a strategy changes.
MOVES = {
    "tiling": ("tile", "high", "wide", "threads", "team"),
    "vectorization": ("vec", "columns", "lanes"),
    "fusion": (TEMPLATE, "cache"),
    "pipeline": ("unroll", "depth"),
    "reordering": ("parts", "chunks", "grain"),
    "access_layout": ("items", "rows"),
}


class TemplateAuthor:
    """``search.Author`` over the plans that fit a problem."""

    def __init__(self, task: Task, plans: list[Plan]):
        self._task, self._plans = task, plans
        self._rng: random.Random = task.rng
        self._places: dict[str, tuple[int, Choice]] = {}  # by digest of the source: plan and choice
        self._tried: set[str] = set()

    def settings(self, settings: Settings) -> Settings:
        """Return ``settings`` with the strategies that have a parameter here."""
        known = {name for plan in self._plans for name, values in plan.space.items() if len(values) > 1}
        known |= {TEMPLATE} if len(self._plans) > 1 else set()
        targets = {name: resource for name, resource in settings.targets.items() if known & set(MOVES[name])}
        return dataclasses.replace(settings, targets=targets) if targets else settings

    def first(self) -> Generator[Candidate, Result, Result | None]:
        """Yield each plan's default, then what is left, until one is verified."""
        for place in self._all():
            if self._task.budget <= 0:
                return None
            result = yield self._candidate(*place)
            if features.time_of(result) is not None:
                return result
        return None

    def select(self, parent: Result, iteration: int) -> str:
        """Not here: templates have no opinion."""
        raise ValueError("--set select=llm needs a model; templates have none")

    def expand(self, parent: Result, strategy: str) -> Candidate | None:
        """Return the parent with a parameter of the strategy changed; where all is tried, what is left anywhere."""
        index, choice = self._place_of(parent)
        untried = self._untried(self._moves(index, choice, strategy)) or self._untried(self._all())
        return self._candidate(*self._rng.choice(untried)) if untried else None

    def _moves(self, index: int, choice: Choice, strategy: str) -> Iterator[tuple[int, Choice]]:
        plan = self._plans[index]
        for name in MOVES[strategy]:
            if name == TEMPLATE:
                yield from ((other, self._plans[other].default) for other in range(len(self._plans)) if other != index)
            for value in plan.space.get(name, []):
                changed = {**choice, name: value}
                if value != choice[name] and plan.fits(changed):
                    yield index, changed

    def _all(self) -> Iterator[tuple[int, Choice]]:
        """Every choice of every plan, the defaults first."""
        yield from ((index, plan.default) for index, plan in enumerate(self._plans))
        yield from ((index, choice) for index, plan in enumerate(self._plans) for choice in choices(plan))

    def _untried(self, places: Iterator[tuple[int, Choice]]) -> list[tuple[int, Choice]]:
        return [(index, choice) for index, choice in places if body(self._plans[index], choice) not in self._tried]

    def _candidate(self, index: int, choice: Choice) -> Candidate:
        plan = self._plans[index]
        source = plan.source(choice)
        self._tried.add(body(plan, choice))
        self._places[body(plan, choice)] = (index, choice)
        return Candidate(source, plan.kind)

    def _place_of(self, result: Result) -> tuple[int, Choice]:
        return self._places[without_comments(self._task.sources[result.solution["sample"]])]


def choices(plan: Plan) -> Iterator[Choice]:
    """Return every choice of a plan that goes together."""
    for values in itertools.product(*plan.space.values()):
        choice = dict(zip(plan.space, values))
        if plan.fits(choice):
            yield choice


def body(plan: Plan, choice: Choice) -> str:
    """Return the source without the comments that name the choice: parameters without effect make no other kernel."""
    return without_comments(plan.source(choice))


def without_comments(source: str) -> str:
    """Return a template's source without its first two lines."""
    return source.split("\n", 2)[2]
