"""Intervals: bootstrap over problems, and of measured speedups."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from harness.result import Result
from kernelbench.metrics.fast_p import baseline_of, typical_ms

LEVEL = 0.95
_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
RESAMPLES = 1000
_EXACT = 1000  # samples
_MOST_SPREAD = 1e100  # of a mean, by which nothing is known of it
_SEED = 0  # a view of the same log says the same


class Interval(NamedTuple):
    low: float
    high: float


def bootstrap(
    statistic: Callable[..., np.ndarray],
    *samples: Sequence | np.ndarray,
    level: float = LEVEL,
    clusters: Sequence[int] | np.ndarray | None = None,
) -> Interval | None:
    """Return the percentile bootstrap interval of a figure: how far it depends on which problems there are.

    Problems are drawn with replacement, as often as there are any; the figure of each draw is
    taken, and of these the quantiles (1 - level) / 2 and (1 + level) / 2.

    Parameters
    ----------
    statistic
        A figure of ``metrics``: called once with ``samples`` as arrays and ``weights`` of shape
        (RESAMPLES, problems), how often each problem was drawn; returns a value for each draw.
    samples
        Arrays over the same problems, of shape (problems,), or (RESAMPLES, problems) where the
        values differ from draw to draw as well. They are drawn together and so stay paired.
    clusters
        Number, from 0 on, of what each problem belongs to: then whole clusters are drawn. For values
        that are not independent, such as a problem's in several runs, or several problems of one run.

    Returns
    -------
    Interval or None
        None where no draw has a value. Draws without one are left out.

    Raises
    ------
    ValueError
        Where the samples are not of the same number of problems.

    References
    ----------
    Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13.
    """
    arrays = [np.asarray(sample) for sample in samples]
    count = arrays[0].shape[-1]
    if any(array.shape[-1] != count for array in arrays):
        raise ValueError(f"samples of {', '.join(str(a.shape[-1]) for a in arrays)} problems cannot be paired")
    if count == 0:
        return None
    weights = _drawn_counts(count)
    if clusters is not None:
        weights = _drawn_counts(int(np.max(clusters)) + 1)[:, np.asarray(clusters)]
    values = np.asarray(statistic(*arrays, weights=weights), dtype=float)
    values = values[~np.isnan(values)]
    if not len(values):
        return None
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


@functools.lru_cache(maxsize=8)
def _drawn_counts(problems: int) -> np.ndarray:
    """Return how often each problem is drawn, shape (RESAMPLES, problems); the same for runs that are compared."""
    rng = np.random.default_rng(_SEED)
    return rng.multinomial(problems, np.full(problems, 1 / problems), size=RESAMPLES).astype(float)


def speedup_interval(result: Result, baseline: str | None = None, level: float = LEVEL) -> Interval | None:
    """Interval of baseline median over solution median, from the samples of both; None without samples.

    Without ``baseline`` it is the one that the speedup is over, here and below.

    exp(log(speedup) +- z sqrt(v_baseline + v_solution)), the interval of a ratio of
    medians of Price and Bonett (2002). Where the record has its own, its sides are kept apart.
    """
    sides = log_sides(result, baseline)
    speedup = (result.baselines.get(baseline) or {}).get("speedup") if baseline else result.speedup
    if sides is None or not speedup:
        return None
    return _between(speedup, *sides, level)


def ratio_interval(result: Result, other: Result, baseline: str | None = None, level: float = LEVEL) -> Interval | None:
    """Interval of speedup over the other's, by the method of ``speedup_interval``; None where either has no samples.

    By the sides of either that decide each end: whose calls stall now and then may be far slower, and no faster.
    """
    ours, theirs = (log_sides(r, baseline) for r in (result, other))
    if None in (ours, theirs) or not result.speedup or not other.speedup:
        return None
    return around_ratio(result.speedup / other.speedup, ours, theirs, level)


def around_ratio(
    ratio: float, ours: tuple[float, float], theirs: tuple[float, float], level: float = LEVEL
) -> Interval:
    """Return the interval of a ratio of two speedups, whose logarithms' 95 % intervals reach so far down and up."""
    return _between(ratio, math.hypot(ours[0], theirs[1]), math.hypot(ours[1], theirs[0]), level)


def log_sides(result: Result, baseline: str | None = None) -> tuple[float, float] | None:
    """Return how far the 95 % interval of the logarithm of a speedup reaches down and up; None without samples.

    Of several workloads each side on its own, by the shares of ``log_speedup_variance``.
    """
    if parts := getattr(result, "parts", None):
        baseline = baseline or result.over
        sides = [log_sides(part, baseline) for part in parts]
        if None in sides:
            return None
        shares = _shares_of_time(parts, baseline)
        return tuple(math.hypot(*(share * side for share, side in zip(shares, of))) for of in zip(*sides))
    low, high = (_baseline(result, baseline) or {}).get("interval") or (0.0, 0.0)
    speedup = (_baseline(result, baseline) or {}).get("speedup") or result.speedup
    if speedup and 0 < low <= speedup <= high:
        return math.log(speedup / low), math.log(high / speedup)
    variance = log_speedup_variance(result, baseline)
    return None if variance is None else (_Z * math.sqrt(variance),) * 2


def _between(value: float, down: float, up: float, level: float) -> Interval:
    """Return the interval of a ratio that reaches so far at ``LEVEL`` on a scale of logarithms."""
    by = NormalDist().inv_cdf((1 + level) / 2) / _Z
    return Interval(value * math.exp(-min(by * down, 700)), value * math.exp(min(by * up, 700)))


def log_speedup_variance(result: Result, baseline: str | None = None) -> float | None:
    """Variance of the logarithm of a measured speedup; None without samples of both.

    From the record's own interval where it has one: over paired rounds, and wide enough
    for what differs between two runs. Else from the samples, else from ``log_mean_variance``.

    Of a solution on several workloads by the delta method: each workload's variance by
    the square of its share of the total time, the mean of its shares on either side.
    """
    if parts := getattr(result, "parts", None):
        return _log_variance_of_totals(parts, baseline or result.over)
    theirs = _baseline(result, baseline)
    if (theirs or {}).get("interval"):
        low, high = theirs["interval"]
        if not 0 < low <= high:  # of a record from before intervals were kept positive: it tells nothing
            return math.inf
        return (math.log(high / low) / (2 * _Z)) ** 2
    timings = [timing or {} for timing in (result.timing, theirs)]
    series = [timing.get("samples_ms") for timing in timings]
    if all(series):
        return sum(log_median_variance(samples) for samples in series)
    variances = [log_mean_variance(timing) for timing in timings]
    return None if None in variances else sum(variances)


def _log_variance_of_totals(parts: Sequence[Result], baseline: str | None) -> float | None:
    variances = [log_speedup_variance(part, baseline) for part in parts]
    if None in variances:
        return None
    return sum(share**2 * variance for share, variance in zip(_shares_of_time(parts, baseline), variances))


def _shares_of_time(parts: Sequence[Result], baseline: str | None) -> list[float]:
    ours = [typical_ms(part.timing) for part in parts]
    theirs = [typical_ms(_baseline(part, baseline)) for part in parts]
    our_total, their_total = sum(ours), sum(theirs)
    return [(own / our_total + other / their_total) / 2 for own, other in zip(ours, theirs)]


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
    z = NormalDist().inv_cdf(1 - _fewer_than(c, n))
    ordered = sorted(samples)
    if not z or ordered[0] <= 0:
        return math.inf
    return (math.log(ordered[n - c] / ordered[c - 1]) / (2 * z)) ** 2


@functools.lru_cache(maxsize=256)
def _fewer_than(c: int, n: int) -> float:
    """Return P(Binomial(n, 1/2) < c); beyond a thousand, where exact numbers have as many bits, that of a normal."""
    if n > _EXACT:
        return NormalDist(n / 2, math.sqrt(n) / 2).cdf(c - 0.5)
    return sum(math.comb(n, i) for i in range(c)) / 2**n


def log_mean_variance(timing: dict) -> float | None:
    """Return the variance of the logarithm of a mean, from statistics without samples, as KernelBench keeps them.

    (std / mean)^2 / n by the delta method: the square of the mean's relative standard error.
    Trials count as independent, and what differs between two runs is not in it: the interval
    of a ratio of two such means is the least that there is.

    Parameters
    ----------
    timing
        With ``mean_ms``, ``std_ms`` and ``samples``, the number of trials.

    Returns
    -------
    float or None
        None where one of them is missing, the mean is not positive, or one trial shows no spread.
    """
    mean, std, trials = (timing.get(key) for key in ("mean_ms", "std_ms", "samples"))
    if None in (mean, std, trials) or mean <= 0 or std < 0 or trials < 2:
        return None
    return min(std / mean, _MOST_SPREAD) ** 2 / trials
