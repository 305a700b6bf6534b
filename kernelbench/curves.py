"""Runs as curves over the same problems: Fast-p, Attempt-Fast-p, the area between two. Pure functions of the logs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from kernelbench import metrics, sampling
from kernelbench.intervals import bootstrap
from kernelbench.run import Run

ATTEMPT_THRESHOLDS = (0.0, 1.0, 1.5, 2.0)


def of_run(run: Run, problems: Sequence[str]) -> dict[str, Any]:
    """``fast_p``: points [p, share]; ``attempt_fast_p``: for each threshold the share after 1, 2, ... attempts."""
    results = run.solutions()
    samples = list(sampling.samples_of_each_problem(results, problems).values())
    return {
        "fast_p": [list(point) for point in metrics.fast_p_curve(metrics.speedups(results, problems))],
        "attempt_fast_p": {f"{p:g}": sampling.attempt_fast_p(samples, p) for p in ATTEMPT_THRESHOLDS},
    }


def area(run: Run, other: Run, problems: Sequence[str]) -> dict[str, float | None]:
    """Signed area between the Fast-p curves of ``run`` and ``other``, with its interval over problems."""
    speedups = [metrics.speedups(one.solutions(), problems) for one in (run, other)]
    low, high = bootstrap(_difference_of_means, *speedups) or (None, None)
    return {"value": metrics.signed_area(*speedups), "low": low, "high": high}


def _difference_of_means(speedups: Sequence[float | None], others: Sequence[float | None]) -> float:
    """What the signed area equals, without the curves: a thousand draws need it quick."""
    return statistics.fmean(s or 0.0 for s in speedups) - statistics.fmean(s or 0.0 for s in others)
