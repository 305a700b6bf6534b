"""When to stop sampling.

Sampling goes on until every series meets the criterion, with a floor in rounds and
a ceiling in rounds and in time. A noisy series therefore takes more samples,
never fewer, and a regular one cannot stop before the floor.

A criterion is a function of a series and its target, and its line in ``CRITERIA``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from harness.timing.paired import Series
from harness.timing.statistics import coefficient_of_variation, relative_standard_error

_BIN = 0.005  # samples closer than this are the same to ``entropy``


def sem(samples_ms: list[float], target: float) -> bool:
    """Relative standard error of the mean, std / (sqrt(n) mean), under the target."""
    return relative_standard_error(samples_ms) < target


def cv(samples_ms: list[float], target: float) -> bool:
    """The classic rule: coefficient of variation, std / mean, under four targets. More samples do not lower it."""
    return coefficient_of_variation(samples_ms) < 4 * target


def entropy(samples_ms: list[float], target: float) -> bool:
    """The distribution is known: its entropy no longer grows with the samples.

    H_n = -sum p log2 p of the first n samples in bins of 0.5 %; a least-squares line
    through the H_n of the later half rises by less than ``target`` bits a sample times
    log2 n. After the entropy criterion of NVBench, which bounds the angle of such a line.
    """
    n = len(samples_ms)
    if n < 4 or min(samples_ms) <= 0:
        return False
    bins = np.round(np.log(samples_ms) / math.log1p(_BIN)).astype(int)
    history = [_entropy(bins[: i + 1]) for i in range(n // 2, n)]
    slope = np.polyfit(range(len(history)), history, 1)[0]
    return abs(float(slope)) < target * math.log2(n)


def _entropy(bins: np.ndarray) -> float:
    shares = np.unique(bins, return_counts=True)[1] / len(bins)
    return float(-(shares * np.log2(shares)).sum())


CRITERIA: dict[str, Callable[[list[float], float], bool]] = {"sem": sem, "cv": cv, "entropy": entropy}


@dataclass
class Convergence:
    """``target`` is that of the criterion."""

    target: float
    max_seconds: float
    criterion: str = "sem"
    min_rounds: int = 10
    max_rounds: int = 200
    _begin: float = field(default_factory=time.monotonic)

    def calls_a_round(self, most: int, call_s: float) -> int:
        """As many as let the least number of rounds end in time, and at least one."""
        return max(1, min(most, int(self.max_seconds / (self.min_rounds * call_s))))

    def reason(self, *series: Series) -> str | None:
        """Why to stop now ('converged', 'max_rounds', 'max_seconds'), or None to go on."""
        rounds = min(len(one.rounds_ms) for one in series)
        if rounds < self.min_rounds and time.monotonic() - self._begin < 3 * self.max_seconds:
            return None
        if all(CRITERIA[self.criterion](one.means_ms, self.target) for one in series):
            return "converged"
        if rounds >= self.max_rounds:
            return "max_rounds"
        if time.monotonic() - self._begin > self.max_seconds:
            return "max_seconds"
        return None
