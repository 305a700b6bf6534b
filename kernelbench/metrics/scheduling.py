"""Budget scheduling: when a problem gets no further work, and what that would have saved. Pure functions, no I/O.

A trace is what a full run did on one problem: units of work in order, each with its attempts and its
cost. A unit is an attempt of a flat solver or an iteration of an orchestrated one. A policy is asked
after every unit whether the problem stays eligible. Problems do not share a budget here, so that
round robin over eligible problems does on each of them what it would do alone: a trace cut where
the policy stops.

References
----------
The muCUTLASS paper, sections 4.3 (page 8), 5.6 and 5.7 (page 11), 6.2.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from harness.result import Result
from kernelbench.metrics import fast_p, settled
from kernelbench.metrics.intervals import LEVEL, log_speedup_variance

EPSILONS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)  # section 6.2.2, with 0 % added
WINDOWS = (0, 4, 8, 12, 16, 20)  # attempts; section 6.2.2, with the 8 of section 6.2.3
LEAST_RETENTION = 0.95  # section 6.2.3
SKIP, ONE = "skip", "one"
UNSOLVED = (SKIP, ONE)  # an unsolved problem is not in the mean, or counts as 1


@dataclass(frozen=True)
class Attempt:
    """Known facts about one attempt.

    ``speedup`` is settled, None for a failure and for unstable times; ``raw`` the point estimate of a
    correct attempt; ``log_variance`` that of the logarithm of the speedup. ``band`` says how it stands with
    integrity, for those who filter by it; policies do not look at it.
    """

    ms: float | None = None
    speedup: float | None = None
    raw: float | None = None
    log_variance: float = 0.0
    band: str = ""


def attempt_of(result: Result) -> Attempt:
    """Return what a result is known to be. A failure, and a result that was not timed, brings nothing."""
    speedup = settled.raw_speedup(result)
    if not result.correct or not speedup:
        return Attempt()
    variance = log_speedup_variance(result)
    return Attempt(fast_p.typical_ms(result.timing), settled.settled_speedup(result), speedup, variance or 0.0)


def sol_ms_of(results: Sequence[Result]) -> float | None:
    """Return t_SOL under FP16 in ms, from the last result that has it: at the clock that was observed then."""
    found = (result.sol["t_sol_fp16_ms"] for result in reversed(results) if (result.sol or {}).get("t_sol_fp16_ms"))
    return next(found, None)


@dataclass(frozen=True)
class Unit:
    """A unit of work. ``tokens`` and ``usd`` are of all its model calls, None where they are not known."""

    attempts: tuple[Attempt, ...]
    tokens: float | None = 0.0
    usd: float | None = 0.0


@dataclass(frozen=True)
class Trace:
    """The whole work on one problem; ``sol_ms`` is t_SOL under FP16, None where there is no bound."""

    problem: str
    sol_ms: float | None
    units: tuple[Unit, ...]


@dataclass(frozen=True)
class Progress:
    """State of a problem after some attempts.

    ``idle`` counts the attempts since the last one that brought something: a settled speedup that
    lies above the one before it, by an interval of their ratio that lies above 1. ``mark`` is that
    attempt, so that many steps, each within the noise, count once they add up.
    """

    best: Attempt | None = None
    mark: Attempt | None = None
    idle: int = 0

    def after(self, attempt: Attempt) -> Progress:
        """Return the progress after one more attempt."""
        if attempt.speedup is None:
            return dataclasses.replace(self, idle=self.idle + 1)
        best = attempt if self.best is None or attempt.speedup > self.best.speedup else self.best
        if self.mark is None or _settled_above(attempt, self.mark):
            return Progress(best, attempt, 0)
        return Progress(best, self.mark, self.idle + 1)

    @property
    def is_ahead(self) -> bool:
        """Return whether the best attempt is faster than the baseline."""
        return self.best is not None and self.best.speedup > 1.0


def _settled_above(one: Attempt, other: Attempt) -> bool:
    spread = NormalDist().inv_cdf((1 + LEVEL) / 2) * math.sqrt(one.log_variance + other.log_variance)
    return one.speedup > other.speedup * math.exp(min(spread, 700.0))


def progress(attempts: Iterable[Attempt]) -> Progress:
    """Return where a problem stands after ``attempts``."""
    found = Progress()
    for attempt in attempts:
        found = found.after(attempt)
    return found


@dataclass(frozen=True)
class Policy:
    """When a problem gets no further work.

    It is stopped iff it is ahead of the baseline and t_best <= (1 + eps) t_SOL, or ``window``
    attempts in a row brought nothing. ``eps`` None and ``window`` 0 switch a rule off.

    References
    ----------
    The muCUTLASS paper, sections 4.3 (page 8) and 5.7 (page 11).
    """

    eps: float | None = None
    window: int = 0

    def stops(self, found: Progress, sol_ms: float | None) -> bool:
        """Return whether a problem that stands at ``found`` gets no further work."""
        if not found.is_ahead:
            return False
        known = None not in (self.eps, sol_ms, found.best.ms)
        near = known and found.best.ms <= (1 + self.eps) * sol_ms
        return near or 0 < self.window <= found.idle

    @property
    def name(self) -> str:
        """The policy as it is written on the command line."""
        eps = "off" if self.eps is None else f"{self.eps:.0%}"
        return f"eps={eps} w={self.window}"


FIXED = Policy()


def grid(epsilons: Sequence[float | None] = EPSILONS, windows: Sequence[int] = WINDOWS) -> list[Policy]:
    """Return every combination of the two levers."""
    return [Policy(eps, window) for eps, window in itertools.product(epsilons, windows)]


@dataclass(frozen=True)
class Course:
    """A trace summed up after each number of units: lists of one more element than it has units.

    ``settled`` and ``raw`` are the best speedups so far, nan without one; costs are None from where they are not known.
    """

    sol_ms: float | None
    progress: list[Progress]
    settled: list[float]
    raw: list[float]
    attempts: list[int]
    tokens: list[float | None]
    usd: list[float | None]

    def units_done(self, policy: Policy) -> int:
        """Return how many units are worked under a policy: those before it stops the problem."""
        asked = self.progress[:-1]
        return next((done for done, found in enumerate(asked) if policy.stops(found, self.sol_ms)), len(asked))


def course(trace: Trace) -> Course:
    """Return a trace summed up."""
    found = Course(trace.sol_ms, [Progress()], [math.nan], [math.nan], [0], [0.0], [0.0])
    for unit in trace.units:
        standing, settled_best, raw_best = found.progress[-1], found.settled[-1], found.raw[-1]
        for attempt in unit.attempts:
            standing = standing.after(attempt)
            settled_best, raw_best = _higher(settled_best, attempt.speedup), _higher(raw_best, attempt.raw)
        found.progress.append(standing)
        found.settled.append(settled_best)
        found.raw.append(raw_best)
        found.attempts.append(found.attempts[-1] + len(unit.attempts))
        found.tokens.append(_added(found.tokens[-1], unit.tokens))
        found.usd.append(_added(found.usd[-1], unit.usd))
    return found


def _higher(best: float, speedup: float | None) -> float:
    return best if speedup is None or speedup <= best else speedup


def _added(total: float | None, more: float | None) -> float | None:
    return None if total is None or more is None else total + more


@dataclass(frozen=True)
class Replay:
    """Replay of a policy. Arrays of shape (problems,).

    ``settled`` and ``raw`` are the best speedups, nan without one; ``tokens`` and ``usd`` are None
    where they are not known of every unit that was worked.
    """

    policy: Policy
    units: np.ndarray
    settled: np.ndarray
    raw: np.ndarray
    attempts: np.ndarray
    tokens: np.ndarray | None
    usd: np.ndarray | None


def replay(courses: Sequence[Course], policy: Policy) -> Replay:
    """Return what the logs would have been under ``policy``."""
    units = [one.units_done(policy) for one in courses]
    figures = {}
    for name in ("settled", "raw", "attempts", "tokens", "usd"):
        values = [getattr(one, name)[done] for one, done in zip(courses, units)]
        figures[name] = None if None in values else np.array(values, dtype=float)
    return Replay(policy, np.array(units), **figures)


def counted(speedups: np.ndarray, unsolved: str = SKIP) -> np.ndarray:
    """Return the speedups that count: an unsolved problem is skipped (nan), or counts as ``one``."""
    return np.where(np.isnan(speedups), 1.0, speedups) if unsolved == ONE else np.asarray(speedups, dtype=float)


def retention(speedups: np.ndarray, fixed: np.ndarray, weights: np.ndarray | None = None, mean=fast_p.geometric_mean):
    """Return g_policy / g_fixed, the share of the speedup that is left; ``mean`` may be ``fast_p.median``.

    References
    ----------
    The muCUTLASS paper, section 5.6 (page 11).
    """
    return mean(speedups, weights) / mean(fixed, weights)


def savings(cost: np.ndarray, fixed: np.ndarray, weights: np.ndarray | None = None):
    """Return the share of the cost that is saved: 1 - T_policy / T_fixed; 0 where nothing was spent."""
    spent, total = (np.asarray(fast_p.share(of, weights)) for of in (cost, fixed))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, 1 - spent / total, 0.0)[()]


def efficiency_gain(
    speedups: np.ndarray, fixed: np.ndarray, cost: np.ndarray, fixed_cost: np.ndarray, weights: np.ndarray | None = None
):
    """Return (g_policy / g_fixed) (T_fixed / T_policy): speedup for each token, over that of the fixed run.

    It is nan where the policy spends nothing, and the fixed run something.

    References
    ----------
    The muCUTLASS paper, section 5.6 (page 11).
    """
    left = 1 - savings(cost, fixed_cost, weights)
    return retention(speedups, fixed, weights) / np.where(left > 0, left, math.nan)[()]


def best_policy(gains: Sequence[float], retentions: Sequence[float], least: float = LEAST_RETENTION) -> int | None:
    """Return the index of the policy with the highest gain that retains ``least`` of the mean; None without one.

    References
    ----------
    The muCUTLASS paper, section 6.2.3.
    """
    allowed = [i for i, kept in enumerate(retentions) if kept >= least and not math.isnan(gains[i])]
    return max(allowed, key=lambda i: gains[i], default=None)


def upper_hull(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the upper convex hull of (cost, speedup), from the cheapest point to the highest one.

    Beyond the highest point more cost buys nothing, so that the frontier ends there.

    References
    ----------
    The muCUTLASS paper, section 6.2.2; the algorithm is Andrew's monotone chain (1979).
    """
    highest: dict[float, float] = {}
    for x, y in points:
        highest[x] = max(y, highest.get(x, -math.inf))
    hull: list[tuple[float, float]] = []
    for point in sorted(highest.items()):
        if hull and point[1] <= max(y for _, y in hull):
            continue
        while len(hull) > 1 and _turn(hull[-2], hull[-1], point) >= 0:
            hull.pop()
        hull.append(point)
    return hull


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    """Return the cross product of ab and ac: not negative where b lies on or below the line from a to c."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
