"""The loop of KernelBand over a task (algorithm 1). Its state is made of results, profiles and ``task.rng`` alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from typing import Protocol

from harness.result import Result
from kernelbench.solvers.kernelband import bandit, clusters, features
from kernelbench.solvers.kernelband.bandit import Outcome, State
from kernelbench.solvers.kernelband.settings import Settings
from kernelbench.solvers.task import Candidate, Task


class Author(Protocol):
    """Maker of kernels: a model, or a space of templates."""

    def first(self) -> Generator[Candidate, Result, Result | None]:
        """Yield candidates until one is verified, and return its result; None without one."""

    def select(self, parent: Result, iteration: int) -> str:
        """Name a strategy for a kernel."""

    def expand(self, parent: Result, strategy: str) -> Candidate | None:
        """Return a kernel made from another by a strategy; None where the strategy has nothing left to change."""


def search(task: Task, settings: Settings, author: Author) -> Generator[Candidate, Result, None]:
    """Yield candidates and take their results: a first kernel, then one strategy on one kernel an iteration."""
    state = State()
    first = yield from author.first()
    if first is None:
        return
    _add(task, state, first, None, settings)
    results = {first.solution["sample"]: first}
    for iteration in task.iterations():
        _recluster(task, state, results, iteration, settings)
        cluster, strategy, parent = _choose(task, state, results, iteration, settings, author)
        tags = {"phase": "implement", "iteration": iteration, "strategy": strategy, "cluster": cluster,
                "era": state.era}  # fmt: skip
        with task.tagged(**tags):
            candidate = author.expand(results[parent], strategy)
            if candidate is None:
                return
            result = yield dataclasses.replace(candidate, parent=results[parent], tags=tags)
        _record(task, state, result, Outcome(iteration, parent, strategy, 0.0, False, state.era), settings)
        results[result.solution["sample"]] = result


def _recluster(task: Task, state: State, results: dict[int, Result], iteration: int, settings: Settings) -> None:
    """Make clusters and profile their centres where it is time to."""
    if not bandit.due(state, iteration, settings):
        return
    clusters.recluster(state, settings)
    if settings.profile != "off":
        for sample in state.centres:
            _profile(task, state, results[sample])


def _profile(task: Task, state: State, result: Result) -> None:
    sample = result.solution["sample"]
    if sample not in state.signatures:
        state.signatures[sample] = features.signature_of(task.profile(result))


def _choose(
    task: Task, state: State, results: dict[int, Result], iteration: int, settings: Settings, author: Author
) -> tuple[int, str, int]:
    """Return cluster, strategy and the sample to expand."""
    if settings.select == "llm":
        parent = min(state.kernels.values(), key=lambda kernel: (kernel.ms, kernel.sample)).sample
        cluster = next(index for index, members in enumerate(state.clusters) if parent in members)
        return cluster, author.select(results[parent], iteration), parent
    cluster, strategy = bandit.choose_arm(state, iteration, settings, task.rng)
    return cluster, strategy, bandit.choose_kernel(state, cluster, strategy, settings, task.rng)


def _record(task: Task, state: State, result: Result, outcome: Outcome, settings: Settings) -> None:
    """Enter what an iteration brought; a verified kernel becomes one that may be expanded."""
    ms = features.time_of(result)
    if ms is not None:
        gained = bandit.reward(state.kernels[outcome.kernel].ms, ms)
        outcome = dataclasses.replace(outcome, reward=gained, verified=True)
    state.outcomes.append(outcome)
    if ms is not None:
        _add(task, state, result, outcome.kernel, settings)


def _add(task: Task, state: State, result: Result, parent: int | None, settings: Settings) -> None:
    kernel = features.kernel_of(task, result)
    state.kernels[kernel.sample] = kernel
    clusters.join(state, kernel.sample, parent, settings)
    if settings.profile == "all":
        _profile(task, state, result)
