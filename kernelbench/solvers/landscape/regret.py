"""Regret on the landscape, where the expected reward of every action is known.

An action is a verified kernel and a strategy; its expected reward is the chance that the author's answer works times
the share of the kernel's time that it then saves. The best action changes, because each success leaves less to gain:
the regret of an iteration is against the best action that there was. Because a reward is relative to the kernel that is
expanded, the best action is often on a slow kernel; the regret of the strategy alone is against the best one on the
kernel that was expanded.
"""

from __future__ import annotations

import math

from kernelbench.solvers.landscape import parameters as p
from kernelbench.solvers.landscape import reading, terrain
from kernelbench.solvers.landscape.author import Mind
from kernelbench.solvers.landscape.simulation import Simulated
from kernelbench.solvers.landscape.terrain import Spec

_TOLD_NOTHING = reading.read([{"role": "user", "content": ""}])


def expected_reward(mind: Mind, spec: Spec, lever: int) -> float:
    """Return the expected reward of asking for a lever on a correct kernel, without an error or a lesson to read."""
    start = spec.before if spec.drag > 1 else spec.left
    works = 1 / (1 + math.exp(-mind.log_odds(lever, _TOLD_NOTHING, 0)))
    after = mind.problem.time_ms(mind.used(start, lever, p.DEPTH))
    before = mind.problem.time_ms(spec.left) * spec.drag
    return works * max(0.0, 1 - after / before)


def regrets(made: Simulated, strategy_alone: bool = False) -> dict[str, list[float]]:
    """Return the regret of each iteration of every problem of a run whose attempts name a strategy."""
    tried = [number for number in made.landscape.problems if number in made.ended.tasks]
    return {number: _of_problem(made, number, strategy_alone) for number in tried}


def _of_problem(made: Simulated, number: str, strategy_alone: bool) -> list[float]:
    land, task = made.landscape, made.ended.tasks[number]
    mind = Mind(p.AUTHORS[land.author], terrain.problem(land.seed, number), land.seed, land.insight, land.error)
    frontier: dict[int, Spec] = {}
    found = []
    for result in task.results:
        sample = result.solution["sample"]
        attempt = made.journal.attempts[number, sample]
        strategy = attempt.tags.get("strategy", "").replace("access_layout", "access & layout")
        if strategy:
            levers = range(len(p.LEVERS))
            parent = frontier[attempt.parent]
            among = [parent] if strategy_alone else frontier.values()
            rewards = [expected_reward(mind, spec, lever) for spec in among for lever in levers]
            found.append(max(rewards) - expected_reward(mind, parent, p.LEVERS.index(strategy)))
        if result.correct:
            frontier[sample] = terrain.spec_in(task.sources[sample])
    return found


def cumulative(series: list[list[float]], longest: int) -> list[float]:
    """Return the mean sum of regrets after each iteration, over problems with at least ``longest`` of them."""
    whole = [own[:longest] for own in series if len(own) >= longest]
    return [math.fsum(math.fsum(own[: t + 1]) for own in whole) / len(whole) for t in range(longest)] if whole else []


def exponent(sums: list[float], begin: int) -> float:
    """Return the slope of log R(t) over log t from iteration ``begin`` on, by least squares; below 1 is sublinear."""
    points = [(math.log(t), math.log(value)) for t, value in enumerate(sums, start=1) if t >= begin]
    mean_x, mean_y = (math.fsum(axis) / len(points) for axis in zip(*points))
    return math.fsum((x - mean_x) * (y - mean_y) for x, y in points) / math.fsum((x - mean_x) ** 2 for x, _ in points)
