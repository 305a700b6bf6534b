"""Figures of a regrade: inflation, filterings, bands, curves, fallback. Pure functions of its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from harness.result import Result
from kernelbench.metrics import fast_p, held_out, outcomes
from kernelbench.regrade.rows import Row
from kernelbench.regrade.traits import OWN_KERNELS, TRAITS

_UNCLAIMED = float("-inf")


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Return all figures of one run's rows. Shares and means are over the problems that have a result."""
    problems = _evaluated(rows)
    results = [row.result for row in rows if row.result]
    band_of = _bands(rows)
    attempts = [row for row in rows if row.result and outcomes.is_attempt(row.result)]
    return {
        "kernels": len(rows),
        "problems": len(problems),
        "problems_without_a_result": len({row.claim.problem for row in rows} - set(problems)),
        "statuses": dict(Counter(row.status for row in rows)),
        "rules": dict(Counter(row.result.rule for row in rows if row.result and row.result.rule)),
        "inflation": {"total": inflation(rows), **by_category(rows)},
        "filterings": outcomes.figures(results, problems, band_of),
        "inflation_ladder": outcomes.figures(results, problems, band_of, outcomes.LADDER),
        "bands": outcomes.bands(results, band_of),
        "categories": dict(Counter(row.label.category for row in attempts if row.label.category)),
        "held_out": held_out.counts(results),
        "fallback": fallback(rows),
        "curves": curves(rows, problems),
        "sol_geometric_mean": _mean(outcomes.sol_limits(results, problems)),
    }


def _evaluated(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(row.claim.problem for row in rows if row.result))


def _bands(rows: Iterable[Row]) -> outcomes.BandOf:
    """Return the function from a result of ``rows`` to its band; results of several runs may share a name."""
    of = {id(row.result): row.label.band for row in rows if row.result}
    return lambda result: of[id(result)]


def inflation(rows: Sequence[Row]) -> dict[str, Any]:
    """Return how far claims are above what was found, as ratios of geometric means.

    ``inflation`` is over kernels with a claim that are right and have a settled speedup here. In
    ``inflation_over_all`` one that fails counts as 1 too: its user falls back to the baseline. Kernels that are right
    without a settled speedup are in neither, and counted as ``unsettled``: nobody knows how fast they are.
    """
    claimed = [row for row in rows if row.claim.speedup and row.result]
    both = [row for row in claimed if row.result.correct and row.settled]
    known = [*both, *(row for row in claimed if not row.result.correct)]
    means = [_mean([row.claim.speedup for row in both]), _mean([row.settled for row in both])]
    over_all = [_mean([row.claim.speedup for row in known]),
                _mean([row.settled if row.result.correct else 1.0 for row in known])]  # fmt: skip
    return {
        "kernels": len(claimed),
        "correct": sum(row.result.correct for row in claimed),
        "compared": len(both),
        "unsettled": len(claimed) - len(known),
        "claimed": means[0],
        "settled": means[1],
        "inflation": means[0] / means[1] if both else None,
        "claimed_over_all": over_all[0],
        "settled_over_all": over_all[1],
        "inflation_over_all": over_all[0] / over_all[1] if known else None,
    }


def by_category(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Return the inflation for each trait that a kernel has; a kernel with several counts in each."""
    found = {name: [row for row in rows if row.result and name in row.categories] for name in (*TRAITS, OWN_KERNELS)}
    return {name: inflation(those) for name, those in found.items() if those}


def fallback(rows: Sequence[Row]) -> dict[str, Any]:
    """Return for each problem the first acceptable kernel in the order of claims, and which were passed over.

    Of kernels with a result: nobody knows of the others.

    References
    ----------
    The muCUTLASS paper, section 5.9.
    """
    of_problem: dict[str, list[Row]] = {}
    for row in sorted(filter(lambda row: row.result, rows), key=lambda row: -(row.claim.speedup or _UNCLAIMED)):
        of_problem.setdefault(row.claim.problem, []).append(row)
    walks = {problem: _walk(those) for problem, those in of_problem.items()}
    accepted = [walk for walk in walks.values() if walk["accepted"]]
    return {
        "examined": sum(walk["examined"] for walk in walks.values()),
        "accepted": len(accepted),
        "fallen_back": sum(walk["examined"] > 1 for walk in accepted),
        "without": len(walks) - len(accepted),
        "claimed": _mean([walk["claimed"] for walk in accepted]),
        "settled": _mean([walk["settled"] for walk in accepted]),
        "problems": walks,
    }


def _walk(those: Sequence[Row]) -> dict[str, Any]:
    """Go down the kernels of a problem, the highest claim first, to the first that is accepted."""
    passed: list[dict[str, str]] = []
    for row in those:
        if row.accepted:
            return {"accepted": row.claim.solution, "examined": len(passed) + 1, "claimed": row.claim.speedup,
                    "settled": row.settled, "passed_over": passed}  # fmt: skip
        why = row.label.band if row.result and row.result.correct else (row.result and row.result.rule) or row.status
        passed.append({"solution": row.claim.solution, "why": why})
    return {"accepted": None, "examined": len(passed), "claimed": None, "settled": None, "passed_over": passed}


def curves(rows: Sequence[Row], problems: Sequence[str]) -> dict[str, list[tuple[float, float]]]:
    """Return Fast-p curves over the problems: as claimed, as measured, filtered, and at the speed of light."""
    results, band_of = [row.result for row in rows if row.result], _bands(rows)
    claimed: dict[str, float] = {}
    for row in rows:
        if row.claim.speedup and row.result:
            claimed[row.claim.problem] = max(row.claim.speedup, claimed.get(row.claim.problem, 0.0))
    measured, kept = (
        outcomes.filtered(results, problems, band_of, outcomes.FILTERINGS[name]).settled
        for name in ("none", outcomes.ALL)
    )
    found = {"claimed": [claimed.get(problem) for problem in problems], "measured": measured, "filtered": kept}
    limits = outcomes.sol_limits(results, problems)
    if not np.isnan(limits).all():
        found["speed of light"] = limits
    return {name: fast_p.fast_p_curve(values) for name, values in found.items()}


def best_of_all(runs: Sequence[Sequence[Row]]) -> dict[str, Any]:
    """Return the figures of the best solution of each problem over all runs, under each filtering.

    References
    ----------
    The muCUTLASS paper, section 6.5.
    """
    rows = [row for those in runs for row in those]
    problems = _evaluated(rows)
    results: list[Result] = [row.result for row in rows if row.result]
    return outcomes.figures(results, problems, _bands(rows))


def _mean(values: Iterable[float | None]) -> float | None:
    found = fast_p.geometric_mean(np.array([np.nan if value is None else value for value in values], dtype=float))
    return None if np.isnan(found) else found
