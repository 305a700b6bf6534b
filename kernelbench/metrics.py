"""Figures over results: pure functions, no I/O."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

from harness.result import Result

THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)
SOL_THRESHOLDS = (10.0, 25.0, 50.0, 75.0, 90.0)  # percent


def best_of_each_problem(results: Iterable[Result]) -> dict[str, Result | None]:
    """For each problem its fastest correct result by speedup, or None where none is correct."""
    best: dict[str, Result | None] = {}
    for result in results:
        current = best.setdefault(result.problem, None)
        if result.correct and (current is None or result.speedup > current.speedup):
            best[result.problem] = result
    return best


def fast_p(speedups: Iterable[float | None], p: float) -> float:
    """Share of problems with a correct solution that is more than ``p`` times as fast as the baseline.

    fast_p = |{i : correct_i and speedup_i > p}| / N, after Ouyang et al.,
    "KernelBench: Can LLMs Write Efficient GPU Kernels?" (2025), section 3. The
    inequality is strict. ``None`` stands for a problem without a correct
    solution; it counts in N. An empty suite gives 0.
    """
    values = list(speedups)
    return sum(s is not None and s > p for s in values) / len(values) if values else 0.0


def sol_p(percents: Iterable[float | None], p: float) -> float:
    """Share of problems with a correct solution that reaches more than ``p`` percent of the speed of light.

    The companion of fast_p whose yardstick is the device, not a baseline:
    sol_p = |{i : correct_i and 100 t_SOL,i / t_i > p}| / N. ``None`` stands for a
    problem without a correct solution, or without a bound; it counts in N.
    """
    return fast_p(percents, p)


def percent_of_sol(result: Result | None) -> float | None:
    """None without a result, or where its device has no bound."""
    return (result.sol or {}).get("percent_of_sol") if result else None


def geometric_mean(speedups: Iterable[float]) -> float | None:
    """exp(mean(log s)) of positive speedups; None for none at all."""
    values = list(speedups)
    return math.exp(statistics.fmean(map(math.log, values))) if values else None
