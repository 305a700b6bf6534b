"""The best solution of each problem, as arrays that the figures of ``metrics`` are taken of.

Several samples of a problem are several draws of the same noise, and the best of them is
chosen by it: of N solutions that change nothing the fastest looks fast. So a best solution
is measured once more (``kernelbench.metrics.winners``) and that measurement counts. Where that was
not done, as in logs of other tools, its interval is widened to hold for all N at once; where several
were measured once more until one was the best, for those.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from harness.result import Result
from kernelbench.metrics import fast_p, settled
from kernelbench.metrics.intervals import LEVEL, RESAMPLES, Interval, bootstrap, log_sides, log_speedup_variance

_NAN = float("nan")
_LARGEST_LOG = 700.0  # of what a double holds
_MOST_RIVALS = 1000  # of one problem, that are drawn again and again


@dataclass(frozen=True)
class Best:
    """A problem's best solution among ``of`` that were timed, of which so many were timed ``again``."""

    result: Result
    of: int
    baseline: str | None = None
    again: int = 1

    @functools.cached_property
    def verdict(self) -> str | None:
        """The verdict of the result, by the interval that allows for the choice; None without a speedup."""
        found = settled.verdict(self.result, self.baseline)
        if found not in (settled.FASTER, settled.SLOWER) or self.interval is None:
            return found
        return found if self.interval.low > 1 or self.interval.high < 1 else settled.TIE

    @functools.cached_property
    def interval(self) -> Interval | None:
        """The 95 % interval of the speedup; for all at once of which the best was chosen by this measurement."""
        found = settled.interval(self.result, self.baseline)
        speedup = settled.raw_speedup(self.result, self.baseline)
        if found is None or not speedup:
            return found
        middle = math.log(speedup)
        ends = (math.log(end) if end > 0 else -_LARGEST_LOG for end in found)
        logs = (middle + (end - middle) * self._widening for end in ends)
        return Interval(*(math.exp(min(log, _LARGEST_LOG)) for log in logs))

    @property
    def log_sides(self) -> tuple[float, float] | None:
        """Return how far the interval reaches down and up on a scale of logarithms; None without samples."""
        sides = log_sides(self.result, self.baseline)
        return None if sides is None else (sides[0] * self._widening, sides[1] * self._widening)

    @property
    def _widening(self) -> float:
        # where the first choice was not confirmed, another one was measured again, and so on until one was
        chosen_of = self.again if settled.confirmed(self.result) else self.of
        return _quantile(chosen_of) / _quantile(1) if chosen_of > 1 else 1.0

    @property
    def settled(self) -> float:
        """The speedup that counts; nan where it is unstable, or was not measured."""
        if self.verdict in (None, settled.UNSTABLE):
            return _NAN
        return 1.0 if self.verdict == settled.TIE else settled.raw_speedup(self.result, self.baseline)

    @property
    def low(self) -> float:
        """Lower end of the interval; nan where the speedup is unstable, or was not measured."""
        if self.verdict in (None, settled.UNSTABLE) or self.interval is None:
            return _NAN
        return self.interval.low

    @property
    def log_sd(self) -> float:
        """Standard deviation of the log of a settled speedup from timing noise; 0 for a tie, which counts as 1."""
        if self.verdict not in (settled.FASTER, settled.SLOWER):
            return 0.0
        return (log_speedup_variance(self.result, self.baseline) or 0.0) ** 0.5


def best_of_each_problem(
    results: Iterable[Result], unfiltered: bool = False, baseline: str | None = None
) -> dict[str, Best | None]:
    """Return for each problem its best solution by settled speedup, or None where none is correct.

    Unstable ones come after all that have a settled speedup, and correct ones without any
    speedup last; of equals the first. With ``unfiltered`` a rejected result that was timed
    counts as a correct one: what the figures would be if no integrity rule stood.
    """
    return {
        problem: max(candidates, key=_order, default=None)
        for problem, candidates in _candidates(results, unfiltered, baseline).items()
    }


@dataclass(frozen=True)
class Scores:
    """The best solution of each problem. Arrays of shape (problems,), or (RESAMPLES, problems) once ``drawn``.

    ``settled``, ``raw`` and ``low`` (the end of the interval) are nan where there is none. The
    raw speedup is the highest point estimate of the problem's solutions, as KernelBench takes it.
    """

    problems: list[str]
    solved: np.ndarray
    settled: np.ndarray
    low: np.ndarray
    raw: np.ndarray
    baseline_ms: np.ndarray  # behind the settled speedup
    percent_of_sol: np.ndarray
    known: np.ndarray  # False where it is solved and has no settled speedup
    drawn_settled: np.ndarray  # (RESAMPLES, problems): settled, with the noise of timing and of the choice
    drawn_low: np.ndarray

    def at(self, problems: Sequence[str]) -> Scores:
        """Return the scores of some of the problems."""
        index = {problem: i for i, problem in enumerate(self.problems)}
        chosen = [index[problem] for problem in problems]
        arrays = {name: value[..., chosen] for name, value in vars(self).items() if name != "problems"}
        return Scores(problems=list(problems), **arrays)

    def beats(self, p: float) -> np.ndarray:
        """Return for which problems the interval of a correct solution lies above ``p``; for 0, which are solved."""
        return self.solved if p == 0 else self.low > p

    def drawn_beats(self, p: float) -> np.ndarray:
        """Return ``beats`` for each draw of the noise."""
        return np.broadcast_to(self.solved, self.drawn_low.shape) if p == 0 else self.drawn_low > p

    def raw_beats(self, p: float) -> np.ndarray:
        """Return for which problems the point estimate of a correct solution is more than ``p``: KernelBench's rule."""
        return self.solved if p == 0 else self.raw > p

    @property
    def solution_ms(self) -> np.ndarray:
        """The settled time of the solutions: a tie takes as long as its baseline."""
        return self.baseline_ms / self.settled


def scores(
    results: Iterable[Result], problems: Sequence[str], unfiltered: bool = False, baseline: str | None = None
) -> Scores:
    """Return the scores of the best solution of each of ``problems``, over the baseline that is named."""
    found = _candidates(results, unfiltered, baseline)
    candidates = [found.get(problem, []) for problem in problems]
    best = [max(those, key=_order, default=None) for those in candidates]
    value = lambda of: np.array([of(one) if one else _NAN for one in best], dtype=float)  # noqa: E731
    solved = np.array([one is not None for one in best], dtype=bool)
    settled_speedups, low = value(lambda b: b.settled), value(lambda b: b.low)
    drawn_settled, drawn_low = _drawn(candidates, best, settled_speedups, low)
    return Scores(
        problems=list(problems),
        solved=solved,
        settled=settled_speedups,
        low=low,
        raw=np.array([_highest_raw(those) for those in candidates], dtype=float),
        baseline_ms=value(_baseline_ms),
        percent_of_sol=value(lambda b: fast_p.percent_of_sol(b.result) or _NAN),
        known=~(solved & np.isnan(settled_speedups)),
        drawn_settled=drawn_settled,
        drawn_low=drawn_low,
    )


def figure(statistic: Callable, *values: np.ndarray, drawn: Sequence[np.ndarray] = ()) -> dict[str, float | None]:
    """Return a figure of ``metrics`` as value, low and high: its bootstrap interval over problems.

    ``drawn`` are the values with the noise of timing, draw by draw, where they have any. None
    stands where the figure is not defined.
    """
    value = statistic(*values)
    low, high = bootstrap(statistic, *(drawn or values)) or (None, None)
    return {"value": None if np.isnan(value) else value, "low": low, "high": high}


def _candidates(results: Iterable[Result], unfiltered: bool, baseline: str | None) -> dict[str, list[Best]]:
    """Return the solutions of every problem that has a result."""
    found: dict[str, list[Result]] = {}
    for result in results:
        those = found.setdefault(result.problem, [])
        if fast_p.counts(result, unfiltered):
            those.append(result)
    candidates = {}
    for problem, those in found.items():
        timed = sum(settled.raw_speedup(one, baseline) is not None for one in those)
        again = sum(map(settled.confirmed, those))
        candidates[problem] = [Best(result, timed, baseline, again) for result in those]
    return candidates


def _order(best: Best) -> float:
    """Settled speedups in their order, then what is unstable, then what has no speedup."""
    return settled.rank(best.result, best.baseline) if np.isnan(best.settled) else best.settled


def _highest_raw(those: list[Best]) -> float:
    """Return the highest point estimate of a problem's solutions; nan where none has one."""
    found = [settled.raw_speedup(one.result, one.baseline) for one in those]
    return max((speedup for speedup in found if speedup is not None), default=_NAN)


def _baseline_ms(best: Best) -> float:
    """Return the median of the baseline behind the speedup, in ms: the solution's times the speedup."""
    ours, speedup = fast_p.typical_ms(best.result.timing), settled.raw_speedup(best.result, best.baseline)
    return ours * speedup if ours and speedup else _NAN


def _drawn(
    candidates: list[list[Best]], best: list[Best | None], speedups: np.ndarray, low: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return settled speedups and lower ends, each of shape (RESAMPLES, problems), with the noise of timing.

    In each draw the best of several solutions is chosen by one reading of the noise and counts
    by another, as if it had been confirmed.
    """
    rng = np.random.default_rng(1)
    drawn, drawn_low = (np.tile(values, (RESAMPLES, 1)) for values in (speedups, low))
    for i, (those, first) in enumerate(zip(candidates, best)):
        if first is None or np.isnan(speedups[i]):
            continue
        rivals = [one for one in those if one is first or _may_win(one, first)]
        if len(rivals) > _MOST_RIVALS:
            rivals = sorted(rivals, key=_order, reverse=True)[:_MOST_RIVALS]
        values, lows, sds = (np.array([getattr(r, name) for r in rivals]) for name in ("settled", "low", "log_sd"))
        if not sds.any():
            continue
        noise = np.exp(sds * rng.standard_normal((2, RESAMPLES, len(rivals))))
        chosen = np.argmax(values * noise[0], axis=1)
        counted = np.take_along_axis(noise[1], chosen[:, None], 1)[:, 0]
        drawn[:, i], drawn_low[:, i] = values[chosen] * counted, lows[chosen] * counted
    return drawn, drawn_low


def _may_win(one: Best, first: Best) -> bool:
    """Return whether a settled solution could be the best in another measurement."""
    return not np.isnan(one.settled) and one.settled * np.exp(4 * (one.log_sd + first.log_sd)) >= first.settled


@functools.lru_cache(maxsize=256)
def _quantile(of: int) -> float:
    """Return the normal quantile of a two-sided interval that holds for ``of`` at once (Bonferroni)."""
    return NormalDist().inv_cdf(1 - (1 - LEVEL) / (2 * of))
