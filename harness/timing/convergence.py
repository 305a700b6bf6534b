"""When to stop sampling.

Sampling goes on until the relative standard error of the mean (``sem``) of every
series is under the target, with a floor and a ceiling in samples and a ceiling
in time. A noisy series therefore takes more samples, never fewer, and a regular
one cannot stop before the floor.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from harness.timing.statistics import relative_standard_error


@dataclass
class Convergence:
    """``target`` is the relative standard error; limits on samples are a series'."""

    target: float
    max_seconds: float
    min_samples: int = 20
    max_samples: int = 500
    _begin: float = field(default_factory=time.monotonic)

    def reason(self, *series: list[float]) -> str | None:
        """Why to stop now ('converged', 'max_samples', 'max_seconds'), or None to go on."""
        fewest = min(len(samples) for samples in series)
        if fewest < self.min_samples and time.monotonic() - self._begin < 3 * self.max_seconds:
            return None
        if all(relative_standard_error(samples) < self.target for samples in series):
            return "converged"
        if fewest >= self.max_samples:
            return "max_samples"
        if time.monotonic() - self._begin > self.max_seconds:
            return "max_seconds"
        return None
