"""Figures over results with one value a problem: pure functions, no I/O.

Everywhere ``speedups`` holds one value for each problem that counts, the best of
its correct solutions, and ``None`` where there is none. Figures over several
samples a problem are in ``sampling``, intervals for all of them in ``intervals``.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from harness.result import Result, Status

THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)
SOL_THRESHOLDS = (10.0, 25.0, 50.0, 75.0, 90.0)  # percent


def best_of_each_problem(results: Iterable[Result], unfiltered: bool = False) -> dict[str, Result | None]:
    """For each problem its fastest correct result by speedup, or None where none is correct.

    With ``unfiltered`` a rejected result counts as a correct one if it was timed:
    what the figures would be if no integrity rule stood.
    """
    best: dict[str, Result | None] = {}
    for result in results:
        current = best.setdefault(result.problem, None)
        if counts(result, unfiltered) and (current is None or _speed(result) > _speed(current)):
            best[result.problem] = result
    return best


def speedups(results: Iterable[Result], problems: Iterable[str], unfiltered: bool = False) -> list[float | None]:
    """The best speedup of each of ``problems``, None where there is no solution."""
    best = best_of_each_problem(results, unfiltered)
    return [result.speedup if (result := best.get(problem)) else None for problem in problems]


def runtimes_ms(results: Iterable[Result], problems: Iterable[str]) -> list[tuple[float, float]]:
    """(baseline, solution) of those of ``problems`` that have a timed solution, for ``ratio_of_total_runtimes``.

    The baseline's time is the one behind the speedup, whichever baseline that is.
    """
    best = best_of_each_problem(results)
    solved = [result for problem in problems if (result := best.get(problem)) and result.speedup]
    return [(ours * result.speedup, ours) for result in solved if (ours := typical_ms(result.timing))]


def counts(result: Result, unfiltered: bool = False) -> bool:
    """Whether a result is a solution: correct, or with ``unfiltered`` timed and rejected."""
    return result.correct or (unfiltered and result.status is Status.REJECTED and result.speedup is not None)


def _speed(result: Result) -> float:
    """For ordering: correct results of other tools may have no speedup, and come last."""
    return -1.0 if result.speedup is None else result.speedup


def typical_ms(timing: dict[str, Any] | None) -> float | None:
    """The median of a timing; the mean of one from a tool that records no median; None without one."""
    return (timing or {}).get("median_ms", (timing or {}).get("mean_ms"))


def baseline_of(result: Result) -> tuple[str, dict[str, Any]] | None:
    """Name and timing of what the speedup is over: the first baseline that ran; None without one."""
    return next(((name, timing) for name, timing in result.baselines.items() if timing and "error" not in timing), None)


def is_unstable(result: Result) -> bool:
    """Whether the times behind its speedup did not settle: another run may give another speedup."""
    found = baseline_of(result)
    return found is not None and found[1].get("verdict") == "unstable"


def fast_p(speedups: Iterable[float | None], p: float) -> float:
    """Share of problems with a correct solution that is more than ``p`` times as fast as the baseline.

    fast_p = |{i : correct_i and speedup_i > p}| / N, after Ouyang et al.,
    "KernelBench: Can LLMs Write Efficient GPU Kernels?" (2025), section 3. The
    inequality is strict. ``None`` stands for a problem without a correct
    solution; it counts in N. An empty suite gives 0.
    """
    values = list(speedups)
    return sum(s is not None and s > p for s in values) / len(values) if values else 0.0


def fast_p_curve(speedups: Iterable[float | None]) -> list[tuple[float, float]]:
    """The whole of fast_p as steps: (p, fast_p), p rising from 0 over every speedup that occurs.

    Between two points fast_p has the value of the left one, since its inequality is
    strict; from the last on it is 0. Without problems there is the point (0, 0) only.
    """
    values = list(speedups)
    return [(p, fast_p(values, p)) for p in sorted({0.0, *(s for s in values if s is not None)})]


def signed_area(speedups: Iterable[float | None], others: Iterable[float | None]) -> float:
    """Area between two Fast-p curves, positive where the first one lies higher and further to the right.

    integral over r >= 0 of (F_A(r) - F_B(r)) dr, after the metrics of the muCUTLASS
    paper, section 5.6. A Fast-p curve is a complementary distribution function, so
    this is also the difference of the arithmetic means, a problem without a
    solution as 0.
    """
    return _area(fast_p_curve(speedups)) - _area(fast_p_curve(others))


def _area(curve: list[tuple[float, float]]) -> float:
    return sum(share * (end - begin) for (begin, share), (end, _) in pairwise(curve))


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


def standard(speedups: Iterable[float | None]) -> list[float]:
    """The speedups of solved problems only: how good are the solutions that there are.

    Standard mode of KernelBand (2025), section 4.1; regressions are included.
    """
    return [s for s in speedups if s is not None]


def fallback(speedups: Iterable[float | None]) -> list[float]:
    """What a user gets who falls back to the baseline: failures and regressions count 1.0.

    max(s, 1), or 1 without a solution: fallback mode of KernelBand (2025), section 4.1.
    """
    return [1.0 if s is None else max(s, 1.0) for s in speedups]


def geometric_mean(speedups: Iterable[float]) -> float | None:
    """exp(mean(log s)) of positive speedups, in ``standard`` or ``fallback`` mode; None for none at all."""
    values = list(speedups)
    return math.exp(statistics.fmean(map(math.log, values))) if values else None


def median(speedups: Iterable[float]) -> float | None:
    """The middle speedup, in ``standard`` or ``fallback`` mode; the mean of two middle ones; None for none at all."""
    values = list(speedups)
    return statistics.median(values) if values else None


def ratio_of_total_runtimes(runtimes_ms: Sequence[tuple[float, float | None]]) -> float | None:
    """Speedup of one solution over all workloads of its problem, or of a suite over its problems.

    sum(baseline_w) / sum(solution_w) over (baseline, solution) of each workload w:
    KernelBand (2025), appendix H; long workloads weigh more. ``None`` for the
    solution, which failed there, makes the whole None, as does no workload at all.
    """
    if not runtimes_ms or any(ours is None for _, ours in runtimes_ms):
        return None
    return sum(baseline for baseline, _ in runtimes_ms) / sum(ours for _, ours in runtimes_ms)
