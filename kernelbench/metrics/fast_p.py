"""Figures over a suite with one value a problem: pure functions of arrays, no I/O.

``speedups`` holds one value for each problem that counts: a number, or None (nan) where there
is none. ``weights`` says how often each problem counts, once by default. Both may have an axis
of draws in front, as the bootstrap of ``intervals`` gives them; the figure then has that axis.
Which speedup a problem has is for ``scores`` to say, what it may claim for ``settled``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.result import Result, Status

THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)
SOL_THRESHOLDS = (10.0, 25.0, 50.0, 75.0, 90.0)  # percent

Values = Sequence[float | None] | np.ndarray
Figure = Any  # a float, or an array of them with one for each draw; nan where it is not defined


def share(hits: Sequence[bool] | np.ndarray, weights: np.ndarray | None = None) -> Figure:
    """Return the share of problems that are hits; 0 of none."""
    hits = np.asarray(hits, dtype=float)
    if hits.shape[-1] == 0:
        return 0.0
    weights = np.ones(hits.shape[-1]) if weights is None else weights
    return _plain((hits * weights).sum(-1) / weights.sum(-1))


def fast_p(speedups: Values, p: float, weights: np.ndarray | None = None) -> Figure:
    """Return the share of problems with a correct solution that is more than ``p`` times as fast as the baseline.

    fast_p = |{i : correct_i and speedup_i > p}| / N; the inequality is strict, and a problem
    without a correct solution counts in N.

    References
    ----------
    Ouyang et al., "KernelBench: Can LLMs Write Efficient GPU Kernels?" (2025), section 3.
    """
    return share(_array(speedups) > p, weights)


def fast_p_curve(speedups: Values) -> list[tuple[float, float]]:
    """Return the Fast-p curve as the points (r, share beyond r), r rising from 0 over every speedup that occurs.

    Fast-p(r) is the share at r or beyond: it keeps the value of one point up to and with the
    next r, and falls right behind it. Without problems there is the point (0, 0) only.
    """
    values = _array(speedups)
    known = np.sort(values[~np.isnan(values)])
    steps = sorted({0.0, *known.tolist()})
    beyond = len(known) - np.searchsorted(known, steps, side="right")
    return [(r, float(count) / max(1, len(values))) for r, count in zip(steps, beyond)]


def signed_area(speedups: Values, others: Values, weights: np.ndarray | None = None) -> Figure:
    """Return the area between two Fast-p curves, positive where the first lies higher and further to the right.

    integral over r >= 0 of (F_A(r) - F_B(r)) dr. A Fast-p curve is a complementary
    distribution function, so this is the difference of the arithmetic means, in which a
    problem without a solution counts 0.

    References
    ----------
    The muCUTLASS paper, section 5.6.
    """
    difference = np.nan_to_num(_array(speedups)) - np.nan_to_num(_array(others))
    return share(difference, weights)


def sol_p(percents: Values, p: float, weights: np.ndarray | None = None) -> Figure:
    """Return the share of problems with a correct solution that reaches more than ``p`` percent of the speed of light.

    The companion of fast_p whose yardstick is the device instead of a baseline:
    sol_p = |{i : correct_i and 100 t_SOL,i / t_i > p}| / N.
    """
    return fast_p(percents, p, weights)


def fallback(speedups: Values) -> np.ndarray:
    """Return what a user gets who falls back to the baseline: max(s, 1), and 1 without a solution.

    References
    ----------
    KernelBand (2025), section 4.1: fallback mode. Standard mode is the figure over ``speedups`` as they are.
    """
    return np.fmax(_array(speedups), 1.0)


def geometric_mean(speedups: Values, weights: np.ndarray | None = None) -> Figure:
    """Return exp(mean(log s)) over the problems that have a speedup; nan if none has."""
    values = _array(speedups)
    weights = _weights_of(values, weights)
    logs = np.log(np.where(np.isnan(values), 1.0, values))
    with np.errstate(invalid="ignore", divide="ignore"):
        return _plain(np.exp((logs * weights).sum(-1) / weights.sum(-1)))


def median(speedups: Values, weights: np.ndarray | None = None) -> Figure:
    """Return the middle speedup of the problems that have one, the mean of two middle ones; nan if none has."""
    values = _array(speedups)
    weights = _weights_of(values, weights)
    if not values.shape[-1]:
        return float("nan")
    order = np.argsort(values, axis=-1)  # nan last; once for all draws where these have the same values
    if values.ndim == 1:
        values, counts = np.broadcast_to(values[order], weights.shape), weights[..., order]
    else:
        values, counts = (np.take_along_axis(a, order, -1) for a in np.broadcast_arrays(values, weights))
    reached = counts.cumsum(-1)
    total = reached[..., -1:]
    low, high = (((reached <= at).sum(-1, keepdims=True)) for at in ((total - 1) // 2, total // 2))
    last = values.shape[-1] - 1
    middle = [np.take_along_axis(values, np.minimum(at, last), -1)[..., 0] for at in (low, high)]
    return _plain(np.where(total[..., 0] > 0, (middle[0] + middle[1]) / 2, np.nan))


def ratio_of_total_runtimes(baseline_ms: Values, solution_ms: Values, weights: np.ndarray | None = None) -> Figure:
    """Return sum(baseline) / sum(solution) over the problems, or workloads, that have both; nan if none has.

    References
    ----------
    KernelBand (2025), appendix H; long workloads weigh more than short ones.
    """
    theirs, ours = _array(baseline_ms), _array(solution_ms)
    weights = _weights_of(theirs + ours, weights)
    with np.errstate(invalid="ignore", divide="ignore"):
        return _plain((np.nan_to_num(theirs) * weights).sum(-1) / (np.nan_to_num(ours) * weights).sum(-1))


def _array(values: Values) -> np.ndarray:
    """Return the values as floats, nan for None."""
    return np.asarray(values, dtype=float)


def _weights_of(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the weights of the values that there are; 0 for nan."""
    return np.where(np.isnan(values), 0.0, 1.0 if weights is None else weights)


def _plain(figure: np.ndarray) -> Figure:
    """Return a float where there is no axis of draws."""
    return float(figure) if np.ndim(figure) == 0 else figure


# -- what a record says ------------------------------------------------------------------------------------------------


def counts(result: Result, unfiltered: bool = False) -> bool:
    """Return whether a result is a solution: correct, or with ``unfiltered`` rejected after it was timed."""
    return result.correct or (unfiltered and result.status is Status.REJECTED and result.speedup is not None)


def typical_ms(timing: dict[str, Any] | None) -> float | None:
    """Return the median of a timing; the mean of one from a tool that records no median; None without one."""
    return (timing or {}).get("median_ms", (timing or {}).get("mean_ms"))


def baseline_of(result: Result) -> tuple[str, dict[str, Any]] | None:
    """Return name and timing of what the speedup is over: the first baseline that ran; None without one."""
    return next(((name, timing) for name, timing in result.baselines.items() if timing and "error" not in timing), None)


def percent_of_sol(result: Result | None) -> float | None:
    """Return None without a result, or where its device has no bound."""
    return (result.sol or {}).get("percent_of_sol") if result else None
