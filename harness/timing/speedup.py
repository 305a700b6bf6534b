"""The speedup over a baseline that was timed in turn with the candidate, round by round."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

LEVEL = 0.95  # of every interval
_RESAMPLES = 1000  # of the bootstrap; chosen, as is usual for percentiles of 2.5 and 97.5
_MOST = 2 / 3  # of the rounds; a host that is interrupted now and then spoils some of ten
SEED = 0  # the same samples give the same interval


@dataclass
class Series:
    """The samples of one side, by round; whether the queue stayed full in it, and whether clocks were held down."""

    rounds_ms: list[list[float]] = field(default_factory=list)
    full: list[bool] = field(default_factory=list)
    throttled: list[bool] = field(default_factory=list)

    def add(self, times_ms: list[float], queue_full: bool, throttled: bool) -> None:
        self.rounds_ms.append(times_ms)
        self.full.append(queue_full)
        self.throttled.append(throttled)

    def of(self, rounds: list[int]) -> Series:
        """Return some of its rounds."""
        return Series(*([values[i] for i in rounds] for values in (self.rounds_ms, self.full, self.throttled)))

    @property
    def queue_full(self) -> bool:
        """Return whether launches are in none of its times, but for rounds that the host interrupted."""
        return sum(self.full) > _MOST * len(self.rounds_ms)

    @property
    def throttled_samples(self) -> int:
        return sum(len(times) for times, throttled in zip(self.rounds_ms, self.throttled) if throttled)

    @property
    def means_ms(self) -> list[float]:
        return [sum(times) / len(times) for times in self.rounds_ms]

    @property
    def full_means_ms(self) -> list[float]:
        """Return those of rounds in which the queue stayed full; of all where it never did."""
        return [mean for mean, full in zip(self.means_ms, self.full) if full] or self.means_ms

    @property
    def samples_ms(self) -> list[float]:
        return [time for times in self.rounds_ms for time in times]


def undisturbed(sides: dict[str, Series]) -> dict[str, Series]:
    """The rounds of each side in which no side's queue ran dry that is full otherwise.

    The host was interrupted in the others: one launch that waits for it is twenty times a short
    kernel, and no mean gets over that. A round is left out of all sides, so that they stay paired.
    """
    usual = [side.full for side in sides.values() if side.queue_full]
    kept = [i for i, full in enumerate(zip(*usual)) if all(full)]
    return {name: side.of(kept) for name, side in sides.items()} if kept else sides


@dataclass(frozen=True)
class Ratio:
    """Baseline median over candidate median, with the interval of it; over 1 the candidate is faster."""

    speedup: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """'faster', 'slower', or 'tie' where the interval includes 1."""
        if self.low > 1:
            return "faster"
        return "slower" if self.high < 1 else "tie"


def ratio_of_medians(
    baseline: Series, candidate: Series, between: float = 0.0, noise: float = math.inf
) -> Ratio:
    """Ratio with the percentile bootstrap interval over rounds, both sides of a round drawn together.

    Efron and Tibshirani 1993, chapter 13. What differs between two runs of the same
    thing is in no sample of either: the interval is widened by the factor 1 + ``between``
    on either side, and so never reaches 0. No sample counts as more than ``noise`` from the median.
    """
    draws = resamples(len(candidate.rounds_ms))
    return bootstrapped(baseline.means_ms, candidate.means_ms, draws, draws, between, noise)


def resamples(count: int, rng: np.random.Generator | None = None) -> np.ndarray:
    """Indices of samples drawn with replacement, a row each time; without ``rng`` the same at every call."""
    return (rng or np.random.default_rng(SEED)).integers(count, size=(_RESAMPLES, count))


def bootstrapped(
    baseline_ms: list[float], candidate_ms: list[float], of_baseline: np.ndarray, of_candidate: np.ndarray,
    between: float, noise: float = math.inf,
) -> Ratio:  # fmt: skip
    """Ratio of the medians, with the percentile interval over resamples of either side, widened by ``between``.

    In the interval no sample counts as more than ``noise`` from its side's median, relative: few may be forged, and
    reach anything.
    """
    theirs, ours = (_within(noise, np.array(samples_ms)) for samples_ms in (baseline_ms, candidate_ms))
    ratios = np.median(theirs[of_baseline], axis=1) / np.median(ours[of_candidate], axis=1)
    low, high = np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    speedup = float(np.median(baseline_ms) / np.median(candidate_ms))
    return Ratio(speedup, min(speedup, float(low)) / (1 + between), max(speedup, float(high)) * (1 + between))


def _within(noise: float, samples_ms: np.ndarray) -> np.ndarray:
    median = np.median(samples_ms)
    return np.clip(samples_ms, median / (1 + noise), median * (1 + noise))
