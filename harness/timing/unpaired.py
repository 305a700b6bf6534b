"""The speedup over a baseline that was timed at another time: nothing but the device is common to the two."""

from __future__ import annotations

import math

import numpy as np

from harness.timing.speedup import SEED, Ratio, bootstrapped, resamples


def ratio_of_runs(
    baseline_ms: list[float], candidate_ms: list[float], between: float, noise: float = math.inf
) -> Ratio:
    """Ratio of the medians of rounds, with the percentile bootstrap interval; either side is drawn by itself.

    Efron and Tibshirani 1993, chapter 13. ``between`` is how far two runs of the same
    thing may differ, relative. Here both sides are such runs, of conditions of their
    own, so the interval is widened by it twice on either side. No sample counts as more than ``noise`` from
    its side's median.
    """
    rng = np.random.default_rng(SEED)  # one for both sides, so that they are drawn apart
    of_baseline, of_candidate = resamples(len(baseline_ms), rng), resamples(len(candidate_ms), rng)
    return bootstrapped(baseline_ms, candidate_ms, of_baseline, of_candidate, 2 * between, noise)
