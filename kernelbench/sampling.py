"""Figures over several samples, or attempts, a problem: pure functions, no I/O.

Everywhere ``samples`` holds one sequence for each problem that counts: the
speedups of its samples in the order in which they were made, ``None`` for one that is
not correct. A problem without any sample has an empty sequence, and counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from harness.result import Result
from kernelbench import metrics

Samples = Sequence[Sequence[float | None]]


def samples_of_each_problem(
    results: Iterable[Result], problems: Iterable[str], unfiltered: bool = False
) -> dict[str, list[float | None]]:
    """Speedups of all samples of each of ``problems``, in order of sample number."""
    samples: dict[str, list[float | None]] = {problem: [] for problem in problems}
    for result in sorted(results, key=lambda r: r.solution["sample"]):
        if result.problem in samples:
            samples[result.problem].append(result.speedup if metrics.counts(result, unfiltered) else None)
    return samples


def pass_at_k(counts: Iterable[tuple[int, int]], k: int) -> float:
    """Chance that at least one of ``k`` samples is right, averaged over problems.

    mean of 1 - C(n - c, k) / C(n, k) over problems with n samples, of which c are
    right: the unbiased estimator of Chen et al., "Evaluating Large Language Models
    Trained on Code" (2021), section 2.1. ``counts`` holds (n, c). A problem without
    a sample counts 0; one with fewer than ``k`` has no estimate: ValueError. No
    problems give 0.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, and is {k}")
    chances = [_chance(n, c, k) for n, c in counts]
    return sum(chances) / len(chances) if chances else 0.0


def fast_p_at_k(samples: Samples, p: float, k: int) -> float:
    """Chance that at least one of ``k`` samples is correct and more than ``p`` times as fast, averaged over problems.

    fast_p@k of Ouyang et al. (2025), section 5.1.1, by the unbiased estimator of
    ``pass_at_k``: c are the samples with speedup > p. With k = 1 and one sample a
    problem it is fast_p.
    """
    return pass_at_k([(len(speedups), sum(s is not None and s > p for s in speedups)) for speedups in samples], k)


def attempt_fast_p(samples: Samples, p: float) -> list[float]:
    """Share of problems whose best of the first a attempts is more than ``p`` times as fast, for a = 1, 2, ...

    Attempt-Fast-p(r) of the muCUTLASS paper, section 5.6; it never falls. A problem
    whose attempts have ended keeps its best. The last value is fast_p of the whole.
    """
    first = [next((a for a, s in enumerate(speedups) if s is not None and s > p), None) for speedups in samples]
    attempts = max(map(len, samples), default=0)
    return [sum(a is not None and a <= attempt for a in first) / len(samples) for attempt in range(attempts)]


def _chance(n: int, c: int, k: int) -> float:
    if not 0 <= c <= n:
        raise ValueError(f"{c} of {n} samples cannot be right")
    if n == 0:
        return 0.0
    if n < k:
        raise ValueError(f"k = {k} needs at least as many samples of every problem; one has {n}")
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)
