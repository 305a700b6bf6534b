"""Convergence of sampling: one rule for every device.

Sampling ends when, on every side,

1. the coefficient of variation over rounds has converged: it is under the target, or its
   estimate has settled, which means that it changed by less than a tenth over the last
   half of the rounds (a noisy device never gets under a target), and
2. the relative standard error of the mean is under 0.5 %.

It never goes on after the ceiling in rounds or in time, and ends before the floor in rounds only
where the calls themselves take that long. What lies between calls may be the candidate's
doing: who could end sampling by it would have one sample, without spread. A noisy side
therefore takes more rounds: with a coefficient of variation of 5 % the second condition alone
takes 100. A regular one cannot end it before the floor.

It may end at the floor where candidate and baseline differ so much that no further round can
change the verdict or the second digit of the ratio: each round alone gives the same.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.timing.speedup import Series
from harness.timing.statistics import coefficients_of_variation, relative_standard_error

CV_TARGET = 0.01  # share of the mean: what papers and Tensara call converged
STANDARD_ERROR = 0.005  # of the mean, relative: as large as what two processes differ by (cuda_events._BETWEEN_RUNS)
_SETTLED = 0.1  # most that a settled estimate changes over the last half of the rounds, relative

CV_UNDER_TARGET, CV_SETTLED, DECIDED = "cv_under_target", "cv_settled", "decided"
MAX_ROUNDS, MAX_SECONDS, HELD_UP = "max_rounds", "max_seconds", "held_up"
REASONS = (CV_UNDER_TARGET, CV_SETTLED, DECIDED, MAX_ROUNDS, MAX_SECONDS, HELD_UP)
_LONG, _TOO_LONG = 3, 30  # times the ceiling in time, before the floor: for long calls, and for whatever lies between


def is_settled(means_ms: list[float]) -> bool:
    """Return whether the coefficient of variation of the first n rounds changed little over the last half of them."""
    estimates = coefficients_of_variation(means_ms)
    latest = estimates[len(estimates) // 2 :]
    return len(means_ms) >= 4 and max(latest) - min(latest) < _SETTLED * latest[-1]


def rounds_agree(baseline: Series, candidate: Series) -> bool:
    """Return whether the ratios of all single rounds share two significant digits; so does that of medians then."""
    return len({f"{theirs / ours:.1e}" for theirs, ours in zip(baseline.means_ms, candidate.means_ms)}) == 1


@dataclass
class Convergence:
    """The rule with its limits; ``cv_target`` is relative, as 0.01 for 1 %."""

    cv_target: float
    max_seconds: float
    min_rounds: int = 10
    max_rounds: int = 200
    _begin: float = field(default_factory=lambda: time.monotonic())

    def calls_a_round(self, most: int, call_s: float) -> int:
        """Return as many as let the least number of rounds end in time, and at least one."""
        return max(1, min(most, int(self.max_seconds / (self.min_rounds * call_s))))

    def reason(self, *series: Series, decided: Callable[[], bool] = lambda: False) -> str | None:
        """Return why to stop now, one of ``REASONS``, or None to go on.

        ``decided`` tells whether no further round can change what is known; it is asked from the floor on.
        """
        rounds, seconds = min(len(one.rounds_ms) for one in series), time.monotonic() - self._begin
        if rounds < self.min_rounds:
            # by the median: one round that a candidate says to have been long says nothing of the others
            calls_s = sum(statistics.median(map(sum, one.rounds_ms)) for one in series if rounds) * rounds / 1e3
            if seconds > _LONG * self.max_seconds and calls_s > self.max_seconds:
                return MAX_SECONDS
            return HELD_UP if seconds > _TOO_LONG * self.max_seconds else None
        if converged := self._converged(series):
            return converged
        if decided():
            return DECIDED
        if rounds >= self.max_rounds:
            return MAX_ROUNDS
        return MAX_SECONDS if seconds > self.max_seconds else None

    def _converged(self, series: tuple[Series, ...]) -> str | None:
        """``CV_UNDER_TARGET``, or ``CV_SETTLED`` where a side is above it and has settled; None where one has not."""
        means = [one.means_ms for one in series]
        if any(relative_standard_error(times) >= STANDARD_ERROR for times in means):
            return None
        above = [times for times in means if coefficients_of_variation(times)[-1] >= self.cv_target]
        if not above:
            return CV_UNDER_TARGET
        return CV_SETTLED if all(map(is_settled, above)) else None
