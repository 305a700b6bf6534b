"""The speedup over a baseline that was timed at another time: nothing but the device is common to the two."""

from __future__ import annotations

import numpy as np

from harness.timing.paired import LEVEL, Ratio

_RESAMPLES = 1000
_SEED = 0  # the same samples give the same interval


def ratio_of_runs(baseline_ms: list[float], candidate_ms: list[float], between: float) -> Ratio:
    """Ratio of the medians of rounds, with the percentile bootstrap interval; either side is drawn by itself.

    Efron and Tibshirani 1993, chapter 13. ``between`` is how far two runs of the same
    thing may differ, relative. Here both sides are such runs, of conditions of their
    own, so the interval is widened by it twice on either side.
    """
    rng = np.random.default_rng(_SEED)
    theirs, ours = (
        np.median(side[rng.integers(len(side), size=(_RESAMPLES, len(side)))], axis=1)
        for side in (np.array(baseline_ms), np.array(candidate_ms))
    )
    low, high = np.quantile(theirs / ours, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    speedup = float(np.median(baseline_ms) / np.median(candidate_ms))
    return Ratio(speedup, min(speedup, float(low)) * (1 - 2 * between), max(speedup, float(high)) * (1 + 2 * between))
