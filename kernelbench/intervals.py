"""How sure a figure is: bootstrap intervals over problems, and intervals of measured speedups."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from harness.result import Result
from kernelbench.metrics import baseline_of

LEVEL = 0.95
_RESAMPLES = 1000
_SEED = 0  # a view of the same log says the same


class Interval(NamedTuple):
    low: float
    high: float


def bootstrap(
    statistic: Callable[..., float | None], *samples: Sequence, level: float = LEVEL, resamples: int = _RESAMPLES
) -> Interval | None:
    """Percentile bootstrap interval of ``statistic(*samples)``: how far it depends on which problems there are.

    Problems are drawn with replacement, as often as there are any; the statistic of
    each draw is taken, and of these the quantiles (1 - level) / 2 and (1 + level) / 2:
    Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13.
    Several ``samples`` of the same problems (two runs) are drawn together, so that
    they stay paired; ValueError where their lengths differ. Draws for which the
    statistic is None are left out; None where that leaves none.
    """
    count = len(samples[0])
    if any(len(sample) != count for sample in samples):
        raise ValueError(f"samples of {', '.join(str(len(s)) for s in samples)} problems cannot be paired")
    if count == 0:
        return None
    draws = np.random.default_rng(_SEED).integers(count, size=(resamples, count)).tolist()
    values = [statistic(*([sample[i] for i in draw] for sample in samples)) for draw in draws]
    values = [value for value in values if value is not None]
    if not values:
        return None
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def speedup_interval(result: Result, baseline: str | None = None, level: float = LEVEL) -> Interval | None:
    """Interval of baseline median over solution median, from the samples of both; None without samples.

    Without ``baseline`` it is the one that the speedup is over, here and below.

    exp(log(speedup) +- z sqrt(v_baseline + v_solution)), the interval of a ratio of
    medians of Price and Bonett (2002).
    """
    variance = log_speedup_variance(result, baseline)
    if variance is None or not result.speedup:
        return None
    return _around(result.speedup, variance, level)


def ratio_interval(result: Result, other: Result, baseline: str | None = None, level: float = LEVEL) -> Interval | None:
    """Interval of speedup over the other's, by the method of ``speedup_interval``; None where either has no samples."""
    variances = [log_speedup_variance(r, baseline) for r in (result, other)]
    if None in variances or not result.speedup or not other.speedup:
        return None
    return _around(result.speedup / other.speedup, sum(variances), level)


def log_speedup_variance(result: Result, baseline: str | None = None) -> float | None:
    """Variance of the logarithm of a measured speedup; None without samples of both.

    From the record's own interval where it has one: over paired rounds, and wide enough
    for what differs between two runs. Else from the samples.

    Of a solution on several workloads by the delta method: each workload's variance by
    the square of its share of the total time, the mean of its shares on either side.
    """
    if parts := getattr(result, "parts", None):
        return _log_variance_of_totals(parts, baseline)
    theirs = _baseline(result, baseline)
    if (theirs or {}).get("interval"):
        low, high = theirs["interval"]
        return (math.log(high / low) / (2 * NormalDist().inv_cdf((1 + LEVEL) / 2))) ** 2
    series = [(timing or {}).get("samples_ms") for timing in (result.timing, theirs)]
    if not all(series):
        return None
    return sum(log_median_variance(samples) for samples in series)


def _log_variance_of_totals(parts: Sequence[Result], baseline: str | None) -> float | None:
    variances = [log_speedup_variance(part, baseline) for part in parts]
    if None in variances:
        return None
    ours = [part.timing["median_ms"] for part in parts]
    theirs = [_baseline(part, baseline)["median_ms"] for part in parts]
    shares = [(own / sum(ours) + other / sum(theirs)) / 2 for own, other in zip(ours, theirs)]
    return sum(share**2 * variance for share, variance in zip(shares, variances))


def _baseline(result: Result, name: str | None) -> dict | None:
    return result.baselines.get(name) if name else (baseline_of(result) or ("", None))[1]


def log_median_variance(samples: Sequence[float]) -> float:
    """Variance of the logarithm of the median of positive ``samples``, without assuming a distribution.

    ((log y_(n-c+1) - log y_(c)) / (2 z))^2 with c = (n + 1)/2 - sqrt(n), rounded, at
    least 1, and z the normal quantile of 1 - P(Binomial(n, 1/2) < c): Price and
    Bonett, "Estimating the Variance of the Sample Median" (2001). Infinite for one sample.
    """
    n = len(samples)
    if n < 2:
        return math.inf
    c = max(1, round((n + 1) / 2 - math.sqrt(n)))
    tail = sum(math.comb(n, i) for i in range(c)) / 2**n
    z = NormalDist().inv_cdf(1 - tail)
    ordered = sorted(samples)
    if not z or ordered[0] <= 0:
        return math.inf
    return (math.log(ordered[n - c] / ordered[c - 1]) / (2 * z)) ** 2


def _around(value: float, log_variance: float, level: float) -> Interval:
    spread = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(log_variance)
    return Interval(value * math.exp(-min(spread, 700)), value * math.exp(min(spread, 700)))
