"""Statistics of timing samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def summarise(samples_ms: list[float]) -> dict[str, Any]:
    """Median, mean, standard deviation, CV, relative standard error, extremes, quartiles, and the samples."""
    samples = np.asarray(samples_ms, dtype=np.float64)
    q1, median, q3 = np.percentile(samples, [25, 50, 75])
    mean = float(samples.mean())
    std = float(samples.std(ddof=1)) if len(samples) > 1 else 0.0
    return {
        "median_ms": float(median),
        "mean_ms": mean,
        "std_ms": std,
        "cv": std / mean if mean else 0.0,
        "sem": relative_standard_error(samples_ms),
        "min_ms": float(samples.min()),
        "max_ms": float(samples.max()),
        "q1_ms": float(q1),
        "q3_ms": float(q3),
        "samples": len(samples_ms),
        "samples_ms": [round(float(s), 6) for s in samples],
    }


def relative_standard_error(samples_ms: list[float]) -> float:
    """Standard error of the mean over the mean: std / (sqrt(n) * mean); infinite under two samples."""
    if len(samples_ms) < 2:
        return math.inf
    samples = np.asarray(samples_ms, dtype=np.float64)
    mean = samples.mean()
    return float(samples.std(ddof=1) / (math.sqrt(len(samples)) * mean)) if mean > 0 else math.inf
