"""Stability: whether a series of samples has one time to report at all."""

from __future__ import annotations

import numpy as np

# By the method of timing: the interquartile range over the median, above which a series is not stable. Nor does an
# interval reach farther from a median: two of ten rounds that a candidate tells as nothing reached any tie.
NOISE = {"cuda_events": 0.10, "perf_counter_ns": 0.35}

# Of 250 references on an H100 (results/h100/references) these call nine unstable: recurrent networks, whose times are
# the host's.
_SHIFT = 0.05  # least change that counts as a drift, relative
_TREND = 0.5  # least rank correlation of time and order that counts as a drift
_APART = 0.10  # least distance of two modes, relative
_MINORITY = 0.1  # least share of the smaller mode
_LEAST = 6  # samples, for a drift or two modes
_CLEAN = 4.0  # least separation of two modes


def stability(samples_ms: list[float], noise: float) -> str:
    """'stable', or why not: 'drifting', 'bimodal' or 'noisy'.

    Drifting: Spearman's rank correlation of the samples with their order is over 0.5,
    and the medians of the first and the last third differ by over 5 %. Bimodal:
    split where the variance between the parts is largest (Otsu 1979), the medians of
    the parts differ by over 10 %, the smaller has a tenth of the samples, and Ashman's
    D = sqrt(2) |m1 - m2| / sqrt(s1^2 + s2^2) is over 4 (Ashman, Bird and Zepf 1994).
    Noisy: the interquartile range over the median is more than ``noise``. Of fewer than six samples, as of
    calls that take seconds, only this is asked.
    """
    samples = np.asarray(samples_ms, dtype=np.float64)
    median = float(np.median(samples))
    if len(samples) >= _LEAST and _drifts(samples, median):
        return "drifting"
    if len(samples) >= _LEAST and _is_bimodal(np.sort(samples), median):
        return "bimodal"
    q1, q3 = np.percentile(samples, [25, 75])
    return "noisy" if q3 - q1 > noise * median else "stable"


def _drifts(samples: np.ndarray, median: float) -> bool:
    third = len(samples) // 3
    shift = abs(np.median(samples[-third:]) - np.median(samples[:third]))
    if shift <= _SHIFT * median:
        return False
    ranks = np.argsort(np.argsort(samples))
    return abs(np.corrcoef(ranks, np.arange(len(samples)))[0, 1]) > _TREND


def _is_bimodal(ordered: np.ndarray, median: float) -> bool:
    n = len(ordered)
    smallest = max(2, int(np.ceil(_MINORITY * n)))
    splits = np.arange(smallest, n - smallest + 1)
    if not len(splits):
        return False
    sums = np.cumsum(ordered)
    low_mean = sums[splits - 1] / splits
    high_mean = (sums[-1] - sums[splits - 1]) / (n - splits)
    split = int(splits[np.argmax(splits * (n - splits) * (high_mean - low_mean) ** 2)])
    low, high = ordered[:split], ordered[split:]
    if np.median(high) - np.median(low) <= _APART * median:
        return False
    return np.sqrt(2) * (high.mean() - low.mean()) > _CLEAN * np.hypot(low.std(), high.std())
