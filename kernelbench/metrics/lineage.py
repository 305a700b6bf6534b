"""Lineage of a search, from its results and its trajectory: strategies, scaling, time and regret. Pure functions.

An attempt is the first measurement of its sample. Its reward is the share of its parent's time that it saved.
Definitions are those of KernelBand (2025): tables 1, 3 and 9, figures 2 to 4, equation 7.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.result import Result
from kernelbench.metrics import fast_p, settled
from kernelbench.metrics.workloads import together

MODEL = "model"


@dataclass(frozen=True)
class Step:
    """One attempt. ``strategy`` is '' where none was named; ``usd`` and ``tokens`` are of the calls that led to it.

    ``reward`` is None without a parent that was timed; ``seconds`` are wall time by stage, of the model's calls too.
    """

    problem: str
    sample: int
    parent: int | None
    strategy: str
    correct: bool
    speedup: float | None  # settled
    rank: float
    reward: float | None
    baselines: dict[str, float]
    usd: float | None
    tokens: int | None
    seconds: dict[str, float]


def steps(results: Iterable[Result], attempts: Iterable[dict[str, Any]]) -> list[Step]:
    """Return the attempts of a run in order of problem and sample.

    Parameters
    ----------
    results
        Of ``results.jsonl``; second measurements are left out.
    attempts
        Lines of ``trajectory.jsonl``.
    """
    measured = {(r.problem, r.solution["sample"]): r for r in together(r for r in results if r.confirms is None)}
    line_of = {(line["problem"], line["sample"]): line for line in attempts}  # one that repeats is no other attempt
    made = sorted(measured.keys() & line_of.keys(), key=lambda key: (_key(key[0]), key[1]))
    return [_step(line_of[key], measured) for key in made]


def _step(line: dict[str, Any], measured: dict[tuple[str, int], Result]) -> Step:
    problem, sample = line["problem"], line["sample"]
    result = measured[problem, sample]
    before, after = (_ms(measured.get((problem, one))) for one in (line.get("parent"), sample))
    reward = None if before is None else 0.0 if after is None else min(1.0, max(0.0, (before - after) / before))
    tokens = (line.get("tokens") or {}).values()
    return Step(
        problem, sample, line.get("parent"), (line.get("tags") or {}).get("strategy") or "", result.correct,
        settled.settled_speedup(result) if result.correct else None, settled.rank(result), reward,
        {name: timing["speedup"] for name, timing in result.baselines.items() if timing.get("speedup")},
        line.get("cost_usd"), None if None in tokens else sum(tokens),
        {MODEL: line.get("seconds") or 0.0, **result.stages_s},
    )  # fmt: skip


def _ms(result: Result | None) -> float | None:
    if result is None or not result.correct or result.unconfirmed:
        return None
    return fast_p.typical_ms(result.timing)


def _key(problem: str) -> tuple[int, ...]:
    return tuple(map(int, problem.split("/")))


def by_problem(found: Sequence[Step]) -> dict[str, list[Step]]:
    """Return the steps of each problem, in order."""
    grouped = defaultdict(list)
    for step in found:
        grouped[step.problem].append(step)
    return grouped


def best_of(found: Sequence[Step]) -> Step | None:
    """Return the correct step with the largest settled speedup; of equals the first."""
    return max((step for step in found if step.correct), key=lambda step: step.rank, default=None)


def ancestors(found: Sequence[Step], last: Step) -> list[Step]:
    """Return the steps from the first kernel to ``last``, of one problem's steps."""
    by_sample = {step.sample: step for step in found}
    chain: list[Step] = []
    passed: set[int] = set()
    step: Step | None = last
    while step is not None and step.sample not in passed:
        chain.append(step)
        passed.add(step.sample)
        step = by_sample.get(step.parent) if step.parent is not None else None
    return chain[::-1]


def strategies(found: Sequence[Step]) -> dict[str, dict[str, float | None]]:
    """Return for each strategy how often it was applied, how often with success, and what became of successes.

    ``frequency`` is a share of all applications. ``success``: correct and faster than the kernel that it was applied
    to. ``best``: share of the successes that the problem's final best kernel descends from.
    """
    applied = [step for step in found if step.strategy and step.reward is not None]
    successes = {(step.problem, step.sample) for step in applied if step.reward > 0}
    leading = {
        (step.problem, step.sample)
        for ours in by_problem(found).values()
        if (best := best_of(ours))
        for step in ancestors(ours, best)
    }
    by_name = defaultdict(list)
    for step in applied:
        by_name[step.strategy].append(step)
    rows = {}
    for name, of_name in sorted(by_name.items()):
        own = [(step.problem, step.sample) for step in of_name]
        succeeded = [key for key in own if key in successes]
        rows[name] = {
            "applied": len(own),
            "frequency": len(own) / len(applied),
            "success": len(succeeded) / len(own),
            "best": sum(key in leading for key in succeeded) / len(succeeded) if succeeded else None,
            "mean_reward": math.fsum(step.reward for step in of_name) / len(own),
        }
    return rows


def table(found: Sequence[Step], problems: Sequence[str]) -> dict[str, Any]:
    """Return correct, Fast@1 and the geometric means over ``problems``, solved or not.

    ``standard`` is over solved problems, with ties as 1; ``fallback`` counts failures and regressions as 1.
    """
    grouped = by_problem(found)
    best = [best_of(grouped.get(problem, [])) for problem in problems]
    speedups = [step.speedup for step in best if step and step.speedup]
    return {
        "problems": len(problems),
        "correct": sum(step is not None for step in best) / len(problems) if problems else None,
        "fast_1": sum(speedup > 1 for speedup in speedups) / len(problems) if problems else None,
        "standard": fast_p.geometric_mean(speedups) if speedups else None,
        "fallback": _fallback(speedups, len(problems)),
        "over": {
            name: fast_p.geometric_mean(known)
            for name in sorted({name for step in best if step for name in step.baselines})
            if (known := [step.baselines[name] for step in best if step and name in step.baselines])
        },
    }


def _fallback(speedups: Sequence[float], problems: int) -> float | None:
    if not problems:
        return None
    return math.exp(math.fsum(math.log(max(1.0, speedup)) for speedup in speedups) / problems)


def over_attempts(found: Sequence[Step], problems: Sequence[str], most: int) -> list[float | None]:
    """Return the fallback mean after each number of attempts, from 1 to ``most``."""
    best: dict[str, Step | None] = dict.fromkeys(problems)
    grouped = {problem: steps for problem, steps in by_problem(found).items() if problem in best}
    logs, total = dict.fromkeys(problems, 0.0), 0.0
    curves: list[float | None] = []
    for attempts in range(most):
        grouped = {problem: steps for problem, steps in grouped.items() if attempts < len(steps)}
        for problem, steps in grouped.items():  # the others are as before: there may be thousands
            step = best[problem] = best_of([step for step in (best[problem], steps[attempts]) if step])
            before, logs[problem] = logs[problem], math.log(max(1.0, step.speedup or 1.0)) if step else 0.0
            total += logs[problem] - before
        curves.append(math.exp(total / len(problems)) if problems else None)
    return curves


def over_usd(found: Sequence[Step], problems: Sequence[str], budgets: Sequence[float]) -> list[float | None]:
    """Return the fallback mean within each budget in USD a problem; None where a cost is not known."""
    grouped = by_problem(found)
    if any(step.usd is None for step in found):
        return [None] * len(budgets)
    means = []
    for budget in budgets:
        best = [best_of(_within(grouped.get(problem, []), budget)) for problem in problems]
        means.append(_fallback([step.speedup for step in best if step and step.speedup], len(problems)))
    return means


def usd(found: Sequence[Step]) -> float:
    """Return what steps cost, added up as for ``over_usd``: Python's own sum rounds otherwise from 3.12 on."""
    return functools.reduce(lambda spent, step: spent + (step.usd or 0.0), found, 0.0)


def _within(found: Sequence[Step], budget: float) -> list[Step]:
    spent = itertools.accumulate(step.usd for step in found)
    return [step for step, _ in zip(found, itertools.takewhile(lambda cost: cost <= budget, spent))]


def time_breakdown(found: Sequence[Step], at_once: int) -> dict[str, dict[str, float]]:
    """Return seconds an attempt by stage: ``serial``, and ``batched``, where ``at_once`` problems ask the model."""
    totals: dict[str, float] = defaultdict(float)
    for step in found:
        for stage, seconds in step.seconds.items():
            totals[stage] += seconds
    serial = {stage: seconds / max(1, len(found)) for stage, seconds in totals.items()}
    return {"serial": serial, "batched": serial | {MODEL: serial.get(MODEL, 0.0) / max(1, at_once)}}


def average_regret(found: Sequence[Step]) -> list[float]:
    """Return (1/T) sum of (best mean reward - reward) for each T, averaged over problems (equation 7).

    The best mean is that of a problem's best strategy in hindsight, because the true one is not known. It is a
    constant, so where gains diminish with each success the average does not go to 0.
    """
    series = []
    for ours in by_problem(found).values():
        applied = [step for step in ours if step.strategy and step.reward is not None]
        if not applied:
            continue
        rewards = defaultdict(list)
        for step in applied:
            rewards[step.strategy].append(step.reward)
        best = max(math.fsum(values) / len(values) for values in rewards.values())
        total, own = 0.0, []
        for number, step in enumerate(applied, start=1):
            total += best - step.reward
            own.append(total / number)
        series.append(own)
    means = []
    while series := [own for own in series if len(own) > len(means)]:  # a log may have one long one and thousands
        means.append(_mean([own[len(means)] for own in series]))
    return means


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
