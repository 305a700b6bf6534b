"""The study of a grid of policies over variants: figures with intervals, best policy, sweeps, Pareto frontier.

A variant is a run, or several runs of one configuration, whose traces are pooled. Pure functions.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kernelbench.metrics import fast_p, scheduling
from kernelbench.metrics.intervals import bootstrap
from kernelbench.metrics.scheduling import FIXED, Course, Policy, Replay, Trace

SWEEP_EPS_AT = 0  # window of the eps sweep, section 6.2.1
SWEEP_WINDOW_AT = 1.0  # eps of the window sweep, section 6.2.1


@dataclass(frozen=True)
class Variant:
    """``price`` is USD per million tokens; without it dollars are those that the calls recorded.

    ``clusters`` are those of ``intervals.bootstrap``, where traces are not independent.
    """

    name: str
    traces: Sequence[Trace]
    price: float | None = None
    clusters: Sequence[int] | None = None

    @functools.cached_property
    def courses(self) -> list[Course]:
        """The traces summed up."""
        return [scheduling.course(trace) for trace in self.traces]


@dataclass(frozen=True)
class Grid:
    """``least`` is the retention of the geometric mean that a best policy has at least."""

    policies: Sequence[Policy]
    unsolved: str = scheduling.SKIP
    least: float = scheduling.LEAST_RETENTION


def study(variants: Sequence[Variant], grid: Grid) -> dict[str, Any]:
    """Return the figures of every variant under every policy.

    ``cost_of`` says what the Pareto frontier is over: dollars where they are known of all variants, else
    tokens, else attempts; normalised to the dearest variant's fixed run.
    """
    fixed = [scheduling.replay(variant.courses, FIXED) for variant in variants]
    cost_of = next(
        name for name in ("usd", "tokens", "attempts")
        if all(_cost(name, replay, replay, variant) is not None for replay, variant in zip(fixed, variants))
    )  # fmt: skip
    dearest = max(_cost(cost_of, replay, replay, variant).sum() for replay, variant in zip(fixed, variants)) or 1.0
    return {
        "cost_of": cost_of,
        "unsolved": grid.unsolved,
        "least_retention": grid.least,
        "variants": [_variant(*each, grid, cost_of, dearest) for each in zip(variants, fixed)],
    }


def _cost(name: str, replay: Replay, fixed: Replay, variant: Variant) -> np.ndarray | None:
    """Return a cost of each problem; None where it is not known, or the fixed run spent none: it may ask no model.

    Attempts are always known, and none where a run has just begun.
    """
    if name == "attempts":
        return replay.attempts
    cost, whole = (_known_cost(name, of, variant) for of in (replay, fixed))
    return None if whole is not None and not whole.any() else cost


def _known_cost(name: str, replay: Replay, variant: Variant) -> np.ndarray | None:
    if name == "usd" and variant.price is not None:
        return None if replay.tokens is None else replay.tokens * variant.price / 1e6
    return getattr(replay, name)


def _variant(variant: Variant, fixed: Replay, grid: Grid, cost_of: str, dearest: float) -> dict[str, Any]:
    rows = [_row(variant, scheduling.replay(variant.courses, policy), fixed, grid.unsolved) for policy in grid.policies]
    own = _row(variant, fixed, fixed, grid.unsolved)
    for row in (own, *rows):
        row["cost"] = row[cost_of] / dearest
    best = scheduling.best_policy(
        [_number(row["gain"]) for row in rows], [_number(row["retention"]) for row in rows], grid.least
    )
    points = [(row["cost"], row["geometric_mean"]) for row in (own, *rows) if row["geometric_mean"] is not None]
    return {
        "name": variant.name,
        "problems": len(variant.traces),
        "without_bound": sum(trace.sol_ms is None for trace in variant.traces),
        "fixed": own,
        "policies": rows,
        "best": None if best is None else rows[best],
        "hull": [list(point) for point in scheduling.upper_hull(points)],
    }


def _row(variant: Variant, replay: Replay, fixed: Replay, unsolved: str) -> dict[str, Any]:
    """Return the figures of one policy; retention, savings and gain with their interval over problems."""
    speedups, fixed_speedups = (scheduling.counted(of.settled, unsolved) for of in (replay, fixed))
    raw, fixed_raw = (scheduling.counted(of.raw, unsolved) for of in (replay, fixed))
    figure = partial(_figure, variant.clusters)
    row: dict[str, Any] = {
        "policy": replay.policy.name,
        "eps": replay.policy.eps,
        "window": replay.policy.window,
        "geometric_mean": _plain(fast_p.geometric_mean(speedups)),
        "median": _plain(fast_p.median(speedups)),
        "retention": figure(scheduling.retention, speedups, fixed_speedups),
        "median_retention": figure(partial(scheduling.retention, mean=fast_p.median), speedups, fixed_speedups),
        "raw_retention": figure(scheduling.retention, raw, fixed_raw),
    }
    for name in ("attempts", "tokens", "usd"):
        cost, whole = (_cost(name, of, fixed, variant) for of in (replay, fixed))
        row[name] = None if cost is None else float(cost.sum())
        known = cost is not None and whole is not None
        row[f"{name}_saved"] = figure(scheduling.savings, cost, whole) if known else None
    of = "attempts" if row["tokens_saved"] is None else "tokens"
    row["gain_over"] = of
    row["gain"] = figure(
        scheduling.efficiency_gain, speedups, fixed_speedups, getattr(replay, of), getattr(fixed, of)
    )
    return row


def _figure(clusters: Sequence[int] | None, statistic, *values: np.ndarray) -> dict[str, float | None]:
    """Return value, low and high; None where the figure is not defined, as over no solved problem."""
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = bootstrap(statistic, *values, clusters=clusters) or (None, None)
        return {"value": _plain(statistic(*values)), "low": low, "high": high}


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _number(figure: dict[str, float | None]) -> float:
    return float("nan") if figure["value"] is None else figure["value"]


def sweep(variant: dict[str, Any], eps: bool) -> list[dict[str, Any]]:
    """Return the rows of the sweep over eps without a window, or over the window at eps = 100 %."""
    rows = variant["policies"]
    if eps:
        return [row for row in rows if row["window"] == SWEEP_EPS_AT and row["eps"] is not None]
    return [row for row in rows if row["eps"] == SWEEP_WINDOW_AT]
