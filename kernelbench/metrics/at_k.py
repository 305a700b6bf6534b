"""Figures over several samples, or attempts, a problem: pure functions, no I/O.

Everywhere ``samples`` holds one sequence for each problem that counts: the results of its
samples in order of sample number. A problem without any sample has an empty one, and counts.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from harness.result import Result
from kernelbench.metrics import fast_p, settled

Samples = Sequence[Sequence[Result]]


def samples_of_each_problem(results: Iterable[Result], problems: Iterable[str]) -> dict[str, list[Result]]:
    """Return the results of each of ``problems``, in order of sample number."""
    samples: dict[str, list[Result]] = {problem: [] for problem in problems}
    for result in sorted(results, key=lambda r: r.solution["sample"]):
        if result.problem in samples:
            samples[result.problem].append(result)
    return samples


def pass_at_k(counts: Iterable[tuple[int, int]], k: int) -> float:
    """Return the chance that at least one of ``k`` samples passes, averaged over problems; 0 of none.

    mean of 1 - C(n - c, k) / C(n, k) over problems with n samples, of which c pass: an
    unbiased estimator. A problem without a sample counts 0.

    Parameters
    ----------
    counts
        (n, c) for each problem.

    Raises
    ------
    ValueError
        For k under 1, and for a problem with some samples, but fewer than ``k``: it has no estimate.

    References
    ----------
    Chen et al., "Evaluating Large Language Models Trained on Code" (2021), section 2.1.
    """
    return fast_p.share(chances_at_k(counts, k))


def chances_at_k(counts: Iterable[tuple[int, int]], k: int) -> np.ndarray:
    """Return the terms of ``pass_at_k``, one for each problem."""
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    return np.array([_chance(n, c, k) for n, c in counts], dtype=float)


def passes(
    samples: Samples, p: float, beats: Callable[[Result, float], bool] = settled.beats
) -> list[tuple[int, int]]:
    """Return (n, c) for each problem: c of its n samples are correct and more than ``p`` times as fast beyond doubt."""
    return [(len(those), sum(beats(result, p) for result in those)) for those in samples]


def attempt_fast_p(samples: Samples, r: float) -> list[tuple[int, float]]:
    """Return Attempt-Fast-p(r) as points (attempt, share of problems with a solution that good by then).

    A solution is good if its settled speedup is at least ``r``; for r = 0, if it is correct.
    Attempts count by their sample number, from the lowest number of the whole run (0 or 1), so
    that an attempt that is missing counts as one that failed. The share never falls, and a
    problem whose attempts have ended keeps its best.

    References
    ----------
    The muCUTLASS paper, section 5.6.
    """
    numbers = sorted({result.solution["sample"] for those in samples for result in those})
    if not numbers:
        return []
    before_first = min(numbers[0], 1) - 1
    first = sorted(
        min(good) for those in samples if (good := [one.solution["sample"] for one in those if _reaches(one, r)])
    )
    return [(number - before_first, bisect.bisect_right(first, number) / len(samples)) for number in numbers]


def _reaches(result: Result, r: float) -> bool:
    if not result.correct or r == 0:
        return result.correct
    speedup = settled.settled_speedup(result)
    return speedup is not None and speedup >= r


def _chance(n: int, c: int, k: int) -> float:
    if not 0 <= c <= n:
        raise ValueError(f"{c} of {n} samples cannot pass")
    if n == 0:
        return 0.0
    if n < k:
        raise ValueError(f"k = {k} needs at least as many samples of every problem; one has {n}")
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)
