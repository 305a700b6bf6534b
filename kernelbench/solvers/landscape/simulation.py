"""Runs of real strategies on the landscape: the session of `kb solve` in memory, with simulated author and device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.result import Result
from kernelbench.solvers import session
from kernelbench.solvers.landscape import terrain
from kernelbench.solvers.landscape.machine import LandscapeBackend, LandscapeProblem
from kernelbench.solvers.landscape.model import LandscapeModel
from kernelbench.solvers.landscape.parameters import SD_ERROR
from kernelbench.solvers.log.journal import Journal
from kernelbench.solvers.plan import Plan, Solver
from kernelbench.solvers.prompting.prompts import Prompts
from kernelbench.solvers.schedule.limits import Limits


class SolverFailed(RuntimeError):
    """A solver that failed at a problem of a landscape, and why."""


@dataclass(frozen=True)
class Landscape:
    """A landscape and who writes kernels in it.

    ``problems`` are numbers such as ``"1/7"``; ``author`` is one of ``parameters.AUTHORS``; ``insight`` and ``error``
    are those of ``author.Mind``. ``repeat`` tells runs in the same landscape apart: other answers, other noise of
    timing.
    """

    seed: int = 0
    problems: Sequence[str] = tuple(f"1/{number}" for number in range(1, 11))
    author: str = "mini"
    insight: float = 1.0
    repeat: int = 0
    error: float = SD_ERROR


@dataclass(frozen=True)
class Simulated:
    """Remains of a run: its results in order of problem and sample, its journal, and how its solvers ended."""

    results: list[Result]
    journal: Journal
    ended: session.Ended
    landscape: Landscape = field(default_factory=Landscape)


def simulate(
    solver: Solver,
    landscape: Landscape,
    *,
    budget: int = 40,
    settings: dict[str, str] | None = None,
    schedule: str = "breadth",
    limits: Limits | None = None,
) -> Simulated:
    """Run a strategy on every problem of a landscape, one unit of work after the other.

    The same arguments give the same run. ``budget`` are attempts a problem; 40 are those of the muCUTLASS
    paper. Raises SolverFailed: a simulation has no machine to blame.
    """
    model = LandscapeModel(landscape.author, landscape.seed, landscape.insight, landscape.repeat, landscape.error)
    plan = Plan(
        solver, budget, model, _PROMPTS, dict(settings or {}), landscape.seed, at_once=1, schedule=schedule,
        limits=limits or Limits(),
    )  # fmt: skip
    problems = [LandscapeProblem(terrain.problem(landscape.seed, number)) for number in landscape.problems]
    store = session.Store()
    ended = session.run(plan, problems, LandscapeBackend(landscape.seed, landscape.repeat), store)
    if ended.failures:
        problem, reason = next(iter(ended.failures.items()))
        raise SolverFailed(f"the solver failed at {len(ended.failures)} problem(s), first at {problem}: {reason}")
    results = [result for number in landscape.problems for result in _results(ended, number)]
    return Simulated(results, store.journal, ended, landscape)


def _results(ended: session.Ended, problem: str) -> list[Result]:
    return ended.tasks[problem].results if problem in ended.tasks else []


class _InMemory(Prompts):
    """Prompts that are read from the disk once."""

    def __init__(self) -> None:
        super().__init__()
        self._texts: dict[str, str] = {}

    def text(self, name: str) -> str:
        if name not in self._texts:
            self._texts[name] = super().text(name)
        return self._texts[name]


_PROMPTS = _InMemory()
