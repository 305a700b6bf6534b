"""Statistics of timing samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def summarise(rounds_ms: list[list[float]]) -> dict[str, Any]:
    """Median, mean, standard deviation, CV, relative standard error, extremes, quartiles, and every call's time.

    A sample is the mean of a round's calls: a candidate that does the work of a round
    in one of its calls gains nothing, and what one slow call costs is kept from the
    figure by the median over rounds.
    """
    means = [sum(times) / len(times) for times in rounds_ms]
    samples = np.asarray(means, dtype=np.float64)
    q1, median, q3 = np.percentile(samples, [25, 50, 75])
    mean = float(samples.mean())
    std = float(samples.std(ddof=1)) if len(samples) > 1 else 0.0
    sem = relative_standard_error(means)
    return {
        "median_ms": float(median),
        "mean_ms": mean,
        "std_ms": std,
        "cv": coefficient_of_variation(means),
        "sem": sem if math.isfinite(sem) else None,  # of one round nobody knows it
        "min_ms": float(samples.min()),
        "max_ms": float(samples.max()),
        "q1_ms": float(q1),
        "q3_ms": float(q3),
        "rounds": len(rounds_ms),
        "samples": sum(map(len, rounds_ms)),
        "samples_ms": [round(float(time), 6) for times in rounds_ms for time in times],
    }


def round_means_ms(timing: dict[str, Any]) -> list[float]:
    """The samples of a recorded timing: the mean of each round's calls, in order."""
    times, calls = timing["samples_ms"], timing.get("calls_a_round", 1)
    rounds = [times[begin : begin + calls] for begin in range(0, len(times), calls)]
    return [sum(round_) / len(round_) for round_ in rounds]


def trimmed_mean(values: list[float], share: float = 0.1) -> float:
    """The mean without ``share`` of the values at either end.

    Where values gather at a few places, as times of single launches do, their median jumps from one to
    the next between two runs of the same.
    """
    cut = int(len(values) * share)
    return float(np.mean(sorted(values)[cut : len(values) - cut]))


def coefficient_of_variation(samples_ms: list[float]) -> float:
    """Standard deviation over mean; 0 for one sample, infinite where the mean is not positive."""
    return coefficients_of_variation(samples_ms)[-1]


def coefficients_of_variation(samples_ms: list[float]) -> list[float]:
    """The coefficient of variation of the first n samples, for each n."""
    samples = np.asarray(samples_ms, dtype=np.float64)
    counts = np.arange(1, len(samples) + 1)
    means = np.cumsum(samples) / counts
    moved = samples - samples[0]  # keeps the digits of a variance that is small beside the mean
    squares = np.cumsum(moved**2) - np.cumsum(moved) ** 2 / counts
    std = np.sqrt(np.maximum(squares, 0.0) / np.maximum(counts - 1, 1))
    return [float(s / m) if m > 0 else math.inf for s, m in zip(std, means)]


def relative_standard_error(samples_ms: list[float]) -> float:
    """Standard error of the mean over the mean: std / (sqrt(n) * mean); infinite under two samples."""
    if len(samples_ms) < 2:
        return math.inf
    return coefficient_of_variation(samples_ms) / math.sqrt(len(samples_ms))
