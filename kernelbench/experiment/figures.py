"""The figures of an experiment, from its finished runs. Pure functions.

Values are one for each problem of each run. They are not independent: on a device a problem is the same in
every run, on a landscape the problems of a seed share its authors. Intervals draw such clusters whole.
"""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kernelbench.experiment.outcomes import BANDS, FAILED, Finished, counts, tried
from kernelbench.experiment.plan import Experiment
from kernelbench.experiment.running import costs
from kernelbench.metrics import fast_p
from kernelbench.metrics.intervals import bootstrap
from kernelbench.metrics.outcomes import ALL, FILTERINGS

THRESHOLDS = (1.0, 1.5, 2.0, 4.0)  # of Fast-p
ATTEMPT_THRESHOLD = 2.0  # of Attempt-Fast-p: the muCUTLASS paper, section 5.6

Figure = dict[str, float | None]


@dataclass(frozen=True)
class Pool:
    """The runs of one variant, in order of seed and repeat. ``by_seed`` says what a cluster is."""

    name: str
    runs: list[Finished]
    by_seed: bool

    def best(self, filtering: str = ALL, raw: bool = False) -> np.ndarray:
        """Return the best speedups, of shape (runs x problems,); nan without one."""
        return np.concatenate([run.best(filtering, raw) for run in self.runs])

    @cached_property
    def settled(self) -> np.ndarray:
        """The best settled speedups with all filters."""
        return self.best()

    @cached_property
    def solved(self) -> np.ndarray:
        """Which problems have a correct attempt that counts."""
        return np.concatenate([np.array(run.solved(), dtype=bool) for run in self.runs])

    @cached_property
    def clusters(self) -> np.ndarray:
        """The number of each value's cluster."""
        keys = [run.cell.seed if self.by_seed else trace.problem for run in self.runs for trace in run.traces]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        return np.array([numbers[key] for key in keys])

    def figure(self, statistic: Callable, *values: np.ndarray) -> Figure:
        """Return a figure of ``metrics`` as value, low and high."""
        with np.errstate(invalid="ignore", divide="ignore"):
            value = statistic(*values)
            low, high = bootstrap(statistic, *values, clusters=self.clusters) or (None, None)
        return {"value": None if np.isnan(value) else float(value), "low": low, "high": high}

    def paired(self, other: Pool) -> tuple[Pool, Pool]:
        """Return both with the runs whose seed and repeat both have."""
        keys = {(run.cell.seed, run.cell.repeat) for run in self.runs}
        keys &= {(run.cell.seed, run.cell.repeat) for run in other.runs}
        cut = lambda pool: Pool(  # noqa: E731
            pool.name, [run for run in pool.runs if (run.cell.seed, run.cell.repeat) in keys], pool.by_seed
        )
        return cut(self), cut(other)


def pools(experiment: Experiment, runs: Sequence[Finished]) -> list[Pool]:
    """Return the variants that have runs, in the order of the experiment."""
    found = []
    for variant in experiment.variant:
        mine = [run for run in runs if run.cell.variant == variant.name]
        mine.sort(key=lambda run: (run.cell.seed, run.cell.repeat))
        if mine:
            found.append(Pool(variant.name, mine, experiment.landscape is not None))
    return found


def figures(experiment: Experiment, runs: Sequence[Finished]) -> dict[str, Any]:
    """Return everything that the report shows, but for scheduling."""
    found = pools(experiment, runs)
    reference = next((pool for pool in found if pool.name == experiment.reference), None)
    return {
        "variants": [_variant(pool) for pool in found],
        "compared": [
            _compared(*pool.paired(reference)) for pool in found
            if reference and pool is not reference and pool.paired(reference)[0].runs
        ],
        "reference": experiment.reference,
    }  # fmt: skip


def _variant(pool: Pool) -> dict[str, Any]:
    values = pool.settled
    return {
        "name": pool.name,
        "runs": len(pool.runs),
        "problems": len(values),
        "solved": pool.figure(fast_p.share, pool.solved),
        "geometric_mean": pool.figure(fast_p.geometric_mean, values),
        "median": pool.figure(fast_p.median, values),
        "fallback": pool.figure(fast_p.geometric_mean, fast_p.fallback(values)),
        "raw_geometric_mean": pool.figure(fast_p.geometric_mean, pool.best(raw=True)),
        "raw_median": pool.figure(fast_p.median, pool.best(raw=True)),
        "at_least": {f"{r:g}": pool.figure(fast_p.share, values >= r) for r in THRESHOLDS},
        "fast_p": [list(point) for point in fast_p.fast_p_curve(values)],
        "attempt_fast_p": _attempt_fast_p(pool, ATTEMPT_THRESHOLD),
        "cv": _cv(pool),
        **costs(pool.runs),
        "bands": _bands(pool),
        "filterings": {
            name: {
                "settled": pool.figure(fast_p.geometric_mean, pool.best(name)),
                "raw": pool.figure(fast_p.geometric_mean, pool.best(name, raw=True)),
            }
            for name in FILTERINGS
        },
    }


def _attempt_fast_p(pool: Pool, r: float) -> list[list[float]]:
    """Return Attempt-Fast-p(r) as points [attempt, share of problems with a speedup of at least r by then]."""
    first, most = [], 0
    for run in pool.runs:
        for trace in run.traces:
            attempts = tried(trace)
            most = max(most, len(attempts))
            good = (
                number for number, a in enumerate(attempts, 1)
                if counts(a) and a.speedup is not None and a.speedup >= r
            )  # fmt: skip
            first.append(next(good, None))
    done = itertools.accumulate(map(Counter(first).__getitem__, range(1, most + 1)))
    return [[a, count / len(first)] for a, count in enumerate(done, 1)]


def _cv(pool: Pool) -> dict[str, float | None]:
    """Return the coefficient of variation of the runs' geometric means, and of how many runs.

    On a landscape each seed is another set of problems, so that it is taken over the repeats of a seed and
    averaged over seeds.

    References
    ----------
    The muCUTLASS paper, section 6.4.
    """
    groups: dict[int, list[float]] = {}
    for run in pool.runs:
        mean = fast_p.geometric_mean(run.best())
        if not np.isnan(mean):
            groups.setdefault(run.cell.seed if pool.by_seed else 0, []).append(mean)
    cvs = [statistics.stdev(means) / statistics.fmean(means) for means in groups.values() if len(means) > 1]
    return {"value": statistics.fmean(cvs) if cvs else None, "runs": sum(map(len, groups.values()))}


def _bands(pool: Pool) -> dict[str, int]:
    """Return how many attempts are in each outcome band."""
    found = Counter(a.band or FAILED for run in pool.runs for trace in run.traces for a in tried(trace))
    return {band: found[band] for band in BANDS}


def _compared(pool: Pool, reference: Pool) -> dict[str, Any]:
    """Return how a variant compares with the reference, over the runs that both have, paired."""
    ours, theirs = pool.settled, reference.settled
    known = ~((pool.solved & np.isnan(ours)) | (reference.solved & np.isnan(theirs)))
    area = lambda a, b, weights=None: fast_p.signed_area(  # noqa: E731
        a[..., known], b[..., known], None if weights is None else weights[..., known]
    )
    return {
        "name": pool.name,
        "over": reference.name,
        "runs": len(pool.runs),
        "ratio": pool.figure(_ratio, ours, theirs),
        "fallback_ratio": pool.figure(_ratio, fast_p.fallback(ours), fast_p.fallback(theirs)),
        "signed_area": pool.figure(area, ours, theirs),
        "left_out": int((~known).sum()),
    }


def _ratio(ours: np.ndarray, theirs: np.ndarray, weights: np.ndarray | None = None):
    """Return the ratio of the geometric means, each over the problems that it has a speedup of."""
    return fast_p.geometric_mean(ours, weights) / fast_p.geometric_mean(theirs, weights)
