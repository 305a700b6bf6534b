"""The best of several samples, measured once more: which ones need it, and how far the first measurement was off."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import Any

from harness.result import Result
from kernelbench.metrics import settled
from kernelbench.metrics.scores import best_of_each_problem


def unconfirmed(results: Iterable[Result]) -> list[Result]:
    """Return the solutions that stand as best of several of their problem and were measured once only.

    Only those that are faster than the baseline: a tie claims nothing that chance could have
    given it. ``results`` are those of ``Run.solutions``, with all workloads of a solution as one.
    """
    return [
        best.result
        for best in best_of_each_problem(results).values()
        if best and best.of > 1 and settled.verdict(best.result) == settled.FASTER
        and not settled.confirmed(best.result)
    ]  # fmt: skip


def first_measurement(result: Result) -> dict[str, Any]:
    """Return what the record of a second measurement keeps of the first: ``Result.confirms``."""
    return {**settled.to_json(result), "started": result.started}


def bias(results: Iterable[Result]) -> dict[str, Any]:
    """Return how many best solutions were measured again, and how far the first measurement was too high.

    ``bias`` is the geometric mean of the first speedup over the confirmed one, None where none
    has both.
    """
    parts = [part for result in results for part in getattr(result, "parts", [result])]
    repeated = [part for part in parts if part.confirms is not None]
    ratios = [p.confirms["speedup"] / p.speedup for p in repeated if p.speedup and p.confirms.get("speedup")]
    return {
        "solutions": len(repeated),
        "bias": math.exp(statistics.fmean(map(math.log, ratios))) if ratios else None,
    }


def bias_text(found: dict[str, Any]) -> str:
    """Return ``bias`` as a sentence; '' where nothing was measured again."""
    if not found["solutions"]:
        return ""
    off = f"; the first measurement was {found['bias']:.3f} times the second" if found["bias"] else ""
    return f"{found['solutions']} best solution(s) were measured once more, and that measurement counts{off}."
