"""Floating-point operations per second of a result: pure functions over records.

``gflops`` of a record is the figure to quote: the operations over the median time. The mean of
the rates of all samples stands beside it, as the Tensara leaderboard defines it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from harness.result import Result
from harness.timing.statistics import round_means_ms, trimmed_mean
from kernelbench.metrics import fast_p


def gflops_mean(result: Result) -> float | None:
    """Return the mean rate in GFLOP/s after Tensara: operations over time for each sample, and their mean.

    1/W sum_w 1/N_w sum_i flops_w / t_wi over W workloads and the N_w samples of each. A sample is
    the mean of a round's calls, as everywhere here: a candidate that does the work of a round in
    one of its calls would raise the mean of single calls without limit. Nor do the fastest and the
    slowest quarter of samples count: only their median is held against the judge's clock, and a
    single time near zero would raise the mean as much. It grows with the noise.

    Returns
    -------
    float or None
        None where a workload has no count of operations or no samples, or these are not stable.

    References
    ----------
    Tensara's description of how it benchmarks: the mean over samples, then the mean over test cases.
    """
    rates = [_mean_rate(part) for part in getattr(result, "parts", None) or [result]]
    return None if None in rates else statistics.fmean(rates)


def gflops_of_totals(parts: Sequence[Result]) -> float | None:
    """Return the operations of all workloads over the sum of their median times, in GFLOP/s; None if one is missing."""
    flops = [None if part.unconfirmed else part.workload.get("flops") for part in parts]
    times_ms = [fast_p.typical_ms(part.timing) for part in parts]
    return None if None in (*flops, *times_ms) else sum(flops) / sum(times_ms) / 1e6


def _mean_rate(part: Result) -> float | None:
    flops, timing = part.workload.get("flops"), part.timing
    if flops is None or part.unconfirmed or not timing or not timing.get("samples_ms"):
        return None
    if timing.get("stability", "stable") != "stable":
        return None
    return trimmed_mean([flops / ms / 1e6 for ms in round_means_ms(timing)], share=0.25)
