"""Runs as curves over the same problems: Fast-p, Attempt-Fast-p, the area between two. Pure functions of the logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.result import Result
from kernelbench.metrics import at_k, fast_p, outcomes
from kernelbench.metrics.scores import Scores, figure

ATTEMPT_THRESHOLDS = (0.0, 1.0, 1.5, 2.0)


def of_run(solutions: Sequence[Result], scores: Scores, band_of: outcomes.BandOf) -> dict[str, Any]:
    """Return the curves of a run's ``solutions`` over the problems of ``scores``.

    ``fast_p``: points [r, share beyond r] of settled speedups; ``filtered_fast_p`` without what its label leaves out;
    ``sol_fast_p`` at the speed of light, None without a bound. ``attempt_fast_p``: for each threshold points
    [attempt, share].
    """
    kept = outcomes.filtered(solutions, scores.problems, band_of, outcomes.FILTERINGS[outcomes.ALL])
    limits = outcomes.sol_limits(solutions, scores.problems)
    samples = list(at_k.samples_of_each_problem(solutions, scores.problems).values())
    return {
        "fast_p": _points(scores.settled),
        "filtered_fast_p": _points(kept.settled),
        "sol_fast_p": None if np.isnan(limits).all() else _points(limits),
        "attempt_fast_p": {
            f"{r:g}": [list(point) for point in at_k.attempt_fast_p(samples, r)] for r in ATTEMPT_THRESHOLDS
        },
    }


def _points(values: np.ndarray) -> list[list[float]]:
    return [list(point) for point in fast_p.fast_p_curve(values)]


def area(ours: Scores, others: Scores) -> dict[str, Any]:
    """Return the signed area between the Fast-p curves of two runs, with its interval.

    Problems that either run solved without a settled speedup are left out, and counted: nobody
    knows where on the curve they lie. The interval allows for which problems there are, for the
    noise of timing, and for the choice of the best of several samples.
    """
    known = ours.known & others.known
    problems = [problem for problem, is_known in zip(ours.problems, known) if is_known]
    ours, others = ours.at(problems), others.at(problems)
    drawn = (ours.drawn_settled, others.drawn_settled)
    return {**figure(fast_p.signed_area, ours.settled, others.settled, drawn=drawn), "left_out": int((~known).sum())}
