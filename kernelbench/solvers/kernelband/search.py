"""The loop of KernelBand over a task (algorithm 1). Its state is made of results, profiles and ``task.rng`` alone."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from harness.result import Result
from kernelbench.solvers.kernelband import bandit, clusters, features
from kernelbench.solvers.kernelband.bandit import Outcome, State
from kernelbench.solvers.kernelband.settings import Settings
from kernelbench.solvers.kernelband.strategies import STRATEGIES, TITLES, prompt_name
from kernelbench.solvers.task import Candidate, Task


def search(task: Task) -> Generator[Candidate, Result, None]:
    """Yield candidates and take their results: a first kernel, then one strategy on one kernel an iteration."""
    settings = Settings.of(task.options)
    state = State()
    first = yield from _first(task, settings)
    if first is None:
        return
    _add(task, state, first, None, settings)
    results = {first.solution["sample"]: first}
    for iteration in task.iterations():
        _recluster(task, state, results, iteration, settings)
        cluster, strategy, parent = _choose(task, state, results, iteration, settings)
        tags = {"phase": "implement", "iteration": iteration, "strategy": strategy, "cluster": cluster,
                "era": state.era}  # fmt: skip
        with task.tagged(**tags):
            answer = task.llm.ask(
                task.prompt(_expansion(task, results[parent], strategy)), task.kinds[0], **_sampling(settings)
            )
            result = yield Candidate(answer, parent=results[parent], tags=tags)
        _record(task, state, result, Outcome(iteration, parent, strategy, 0.0, False, state.era), settings)
        results[result.solution["sample"]] = result


def _first(task: Task, settings: Settings) -> Generator[Candidate, Result, Result | None]:
    """Return the result of the first verified kernel: the one to start from, else the model's; None without one."""
    candidate = task.starting_kernel
    further: list[str] = []
    result: Result | None = None
    while task.budget > 0:
        with task.tagged(phase="implement", iteration=0):
            if candidate is None:
                answer = task.llm.ask(task.prompt(*further), task.kinds[0], **_sampling(settings))
                candidate = Candidate(answer, parent=result)
            result = yield candidate
        if features.time_of(result) is not None:
            return result
        candidate, further = None, [task.render("improve", feedback=task.feedback(result, "G+E"))]
    return None


def _sampling(settings: Settings) -> dict[str, Any]:
    return {"temperature": settings.temperature, "max_tokens": settings.max_tokens}


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
    task: Task, state: State, results: dict[int, Result], iteration: int, settings: Settings
) -> tuple[int, str, int]:
    """Return cluster, strategy and the sample to expand."""
    if settings.select == "llm":
        parent = min(state.kernels.values(), key=lambda kernel: (kernel.ms, kernel.sample)).sample
        cluster = next(index for index, members in enumerate(state.clusters) if parent in members)
        return cluster, _asked(task, results[parent], iteration, settings), parent
    cluster, strategy = bandit.choose_arm(state, iteration, settings, task.rng)
    return cluster, strategy, bandit.choose_kernel(state, cluster, strategy, settings, task.rng)


def _asked(task: Task, result: Result, iteration: int, settings: Settings) -> str:
    """Return the strategy that the model names for its fastest kernel; any, where it names none."""
    listed = "\n".join(f"- {TITLES[name]}: {task.render(prompt_name(name))}" for name in STRATEGIES)
    profile = "" if settings.profile == "off" else features.described(task.profile(result))
    text = task.render("kernelband/select", feedback=task.feedback(result, "G+E"), profile=profile, strategies=listed)
    with task.tagged(phase="select", iteration=iteration):
        answer = task.llm.ask(text, **_sampling(settings)).text
    return named_in(answer) or task.rng.choice(STRATEGIES)


def named_in(answer: str) -> str | None:
    """Return the strategy that an answer names last; None where it names none."""
    lowered = answer.lower().replace(" and ", " & ").replace("access_layout", "access & layout")
    places = {name: lowered.rfind(title) for name, title in TITLES.items()}
    best = max(places, key=places.get)
    return best if places[best] >= 0 else None


def _expansion(task: Task, parent: Result, strategy: str) -> str:
    """Return the part of the prompt that shows a kernel and asks for one strategy."""
    return task.render(
        "kernelband/expand",
        feedback=task.feedback(parent, "G+E"),
        title=TITLES[strategy],
        strategy=task.render(prompt_name(strategy)),
    )


def _record(task: Task, state: State, result: Result, outcome: Outcome, settings: Settings) -> None:
    """Enter what an iteration brought; a verified kernel becomes one that may be expanded."""
    ms = features.time_of(result)
    if ms is not None:
        gained = bandit.reward(state.kernels[outcome.kernel].ms, ms)
        outcome = Outcome(outcome.iteration, outcome.kernel, outcome.strategy, gained, True, outcome.era)
    state.outcomes.append(outcome)
    if ms is not None:
        _add(task, state, result, outcome.kernel, settings)


def _add(task: Task, state: State, result: Result, parent: int | None, settings: Settings) -> None:
    kernel = features.kernel_of(task, result)
    state.kernels[kernel.sample] = kernel
    clusters.join(state, kernel.sample, parent, settings)
    if settings.profile == "all":
        _profile(task, state, result)

