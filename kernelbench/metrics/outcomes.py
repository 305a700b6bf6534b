"""Outcomes of a review as bands, and every figure with some of them left out. Pure functions over results.

A result that was found right by value is in one band, by its label. A filtering leaves bands out; the best
solution of a problem is then the best of those that remain, so a rejected one falls back to the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from harness.integrity import below_floor, library_only
from harness.result import Result, Status
from kernelbench.metrics import fast_p
from kernelbench.metrics.scores import Scores, scores

NO_ISSUES, MINOR_ISSUES, GAMING = "no_issues", "minor_issues", "gaming"  # a reviewer's answers
SOL_CEILING, LIBRARY_ONLY = "sol_ceiling", "library_only"
ORIGINAL_GAMING, INHERITED_GAMING = "original_gaming", "inherited_gaming"
UNREVIEWED = "unreviewed"
# The six bands of the muCUTLASS paper, figure 10. What no reviewer has answered is in none of them, and counted beside.
BANDS = (NO_ISSUES, MINOR_ISSUES, SOL_CEILING, LIBRARY_ONLY, ORIGINAL_GAMING, INHERITED_GAMING)
ACCEPTED = (NO_ISSUES, MINOR_ISSUES, UNREVIEWED)

_GAMING = frozenset({ORIGINAL_GAMING, INHERITED_GAMING})
ALL = "all"
# Name of a filtering -> bands that it leaves out.
FILTERINGS: dict[str, frozenset[str]] = {
    "none": frozenset(),
    "without library_only": frozenset({LIBRARY_ONLY}),
    "without gaming": _GAMING,
    "without sol_ceiling": frozenset({SOL_CEILING}),
    ALL: frozenset({LIBRARY_ONLY, SOL_CEILING, *_GAMING}),
}
# Figure 12: all filters, then one band more allowed at each step; the last allows everything.
LADDER: dict[str, frozenset[str]] = {
    "filtered": FILTERINGS[ALL],
    "and library_only": _GAMING | {SOL_CEILING},
    "and gaming": frozenset({SOL_CEILING}),
    "and sol_ceiling": frozenset(),
}
# Rules after which a result is still right by value and timed, so that a figure can be taken with it.
_TIMED_RULES = (library_only.RULE, below_floor.RULE)

BandOf = Callable[[Result], str]


def is_attempt(result: Result) -> bool:
    """Return whether a result has a band: it is correct, or rejected by a rule about where its speed comes from."""
    return result.correct or (result.status is Status.REJECTED and result.rule in _TIMED_RULES)


def bands(results: Iterable[Result], band_of: BandOf) -> dict[str, int]:
    """Return how many attempts are in each band, ``unreviewed`` last; they add up to the attempts."""
    counted = Counter(band_of(result) for result in results if is_attempt(result))
    return {band: counted[band] for band in (*BANDS, UNREVIEWED)}


def remaining(results: Iterable[Result], band_of: BandOf, left_out: frozenset[str]) -> list[Result]:
    """Return the attempts that a filtering leaves in."""
    return [result for result in results if is_attempt(result) and band_of(result) not in left_out]


def filtered(results: Sequence[Result], problems: Sequence[str], band_of: BandOf, left_out: frozenset[str]) -> Scores:
    """Return the scores of the best remaining solution of each of ``problems``."""
    return scores(remaining(results, band_of, left_out), problems, unfiltered=True)


def figures(
    results: Sequence[Result], problems: Sequence[str], band_of: BandOf,
    filterings: Mapping[str, frozenset[str]] | None = None,
) -> dict[str, dict[str, Any]]:  # fmt: skip
    """Return the figures of a run under each filtering, by its name: solved, settled fast_1, geometric mean, median.

    The mean and the median are of problems with a settled speedup; None where there is none.
    """
    filterings = FILTERINGS if filterings is None else filterings
    present = {band_of(result) for result in results if is_attempt(result)}
    different = {left_out & present for left_out in filterings.values()}
    found = {left_out: _figures(filtered(results, problems, band_of, left_out)) for left_out in different}
    return {name: found[left_out & present] for name, left_out in filterings.items()}


def _figures(found: Scores) -> dict[str, Any]:
    return {
        "solved": int(found.solved.sum()),
        "settled_fast_1": fast_p.share(found.beats(1.0)),
        "geometric_mean": _defined(fast_p.geometric_mean(found.settled)),
        "fallback_geometric_mean": _defined(fast_p.geometric_mean(fast_p.fallback(found.settled))),
        "median": _defined(fast_p.median(found.settled)),
    }


def sol_limits(results: Iterable[Result], problems: Sequence[str]) -> np.ndarray:
    """Return for each problem the speedup at the speed of light with FP16: baseline over t_SOL; nan without a bound.

    References
    ----------
    The muCUTLASS paper, figure 14.
    """
    found: dict[str, float] = {}
    for result in results:
        limit_ms, baseline = (result.sol or {}).get("t_sol_fp16_ms"), fast_p.baseline_of(result)
        baseline_ms = fast_p.typical_ms(baseline[1]) if baseline else None
        if limit_ms and baseline_ms:
            found.setdefault(result.problem, baseline_ms / limit_ms)
    return np.array([found.get(problem, np.nan) for problem in problems], dtype=float)


def _defined(figure: float) -> float | None:
    return None if np.isnan(figure) else float(figure)
