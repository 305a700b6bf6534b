"""Claims that a result's speedup supports: its verdict, its interval, and the settled speedup that scores use.

A speedup is known as well as its interval. A tie counts as 1, and an unstable one as
no speedup at all: it is not faster than anything. Correct and timed are two facts: a
correct result whose baseline could not be timed has no speedup, and stays correct.
"""

from __future__ import annotations

from typing import Any

from harness.result import Result
from kernelbench.metrics import fast_p
from kernelbench.metrics.intervals import Interval, speedup_interval

FASTER, SLOWER, TIE, UNSTABLE = "faster", "slower", "tie", "unstable"


def verdict(result: Result, baseline: str | None = None) -> str | None:
    """Return ``faster``, ``slower``, ``tie`` or ``unstable``; None where the result has no speedup.

    The record's own verdict where it has one, else that of ``interval``. A speedup without
    either (a log of another tool, without samples or spread) is ``unstable``: how sure it
    is, nobody knows. Over several workloads one that is unstable makes all of them so.

    Parameters
    ----------
    baseline
        Name of the baseline; by default the one that ``result.speedup`` is over.
    """
    if raw_speedup(result, baseline) is None:
        return None
    if parts := getattr(result, "parts", None):
        if any(verdict(part, baseline or result.over) in (UNSTABLE, None) for part in parts):
            return UNSTABLE
    elif recorded := (_timing(result, baseline) or {}).get("verdict"):
        return recorded
    found = interval(result, baseline)
    if found is None:
        return UNSTABLE
    return FASTER if found.low > 1 else SLOWER if found.high < 1 else TIE


def interval(result: Result, baseline: str | None = None) -> Interval | None:
    """Return the 95 % interval of the speedup: the record's own, else from samples; None without either."""
    if raw_speedup(result, baseline) is None:
        return None
    recorded = (_timing(result, baseline) or {}).get("interval")
    if recorded and not getattr(result, "parts", None):
        return Interval(*recorded)
    return speedup_interval(result, baseline)


def settled_speedup(result: Result, baseline: str | None = None) -> float | None:
    """Return what the speedup counts as: the ratio where it is faster or slower, 1 for a tie, else None."""
    found = verdict(result, baseline)
    if found in (None, UNSTABLE):
        return None
    return 1.0 if found == TIE else raw_speedup(result, baseline)


def rank(result: Result, baseline: str | None = None) -> float:
    """Return the order of results of one problem: settled speedups, below them unstable ones, none, failures."""
    if not result.correct:
        return -3.0
    found = verdict(result, baseline)
    if found in (None, UNSTABLE):
        return -2.0 if found is None else -1.0
    return settled_speedup(result, baseline)


def raw_speedup(result: Result, baseline: str | None = None) -> float | None:
    """Return the point estimate, baseline median over solution median; None where it was not measured."""
    if baseline is None:
        return result.speedup
    return (result.baselines.get(baseline) or {}).get("speedup")


def beats(result: Result, p: float, baseline: str | None = None) -> bool:
    """Return whether a correct result is more than ``p`` times as fast beyond doubt; for 0, whether it is correct."""
    if not result.correct or p == 0:
        return result.correct
    if verdict(result, baseline) in (None, UNSTABLE):
        return False
    found = interval(result, baseline)
    return found is not None and found.low > p


def confirmed(result: Result) -> bool:
    """Return whether this is a second measurement of what was the best of several, so that the choice is not in it."""
    return all(part.confirms is not None for part in getattr(result, "parts", [result]))


def why_no_speedup(result: Result) -> str:
    """Return why a result has no speedup, as a sentence part; '' where it has one."""
    if result.speedup is not None:
        return ""
    if not result.correct:
        return f"it is {result.status}"
    if result.unconfirmed:
        return f"the judge's own clock could not confirm its time: {result.unconfirmed}"
    if parts := [why for why in map(why_no_speedup, getattr(result, "parts", [])) if why]:
        return parts[0]
    failed = {name: str(timing["error"]) for name, timing in result.baselines.items() if timing.get("error")}
    errors = [f"{name}: {(error.strip().splitlines() or ['?'])[0]}" for name, error in failed.items()]
    if errors:
        return "no baseline could be timed: " + "; ".join(errors)
    return "no baseline was timed"


def speedup_text(result: Result, baseline: str | None = None) -> str:
    """Return the settled speedup as it is shown: ``1.31x``, ``1.00x (tie)``, ``unstable``, or '' without one."""
    found = verdict(result, baseline)
    if found is None:
        return ""
    if found == UNSTABLE:
        return "unstable"
    return "1.00x (tie)" if found == TIE else f"{raw_speedup(result, baseline):.2f}x"


def to_json(result: Result) -> dict[str, Any]:
    """Return the figures that go wherever a speedup goes: settled, raw, verdict, interval, why there is none."""
    low, high = interval(result) or (None, None)
    return {
        "settled_speedup": settled_speedup(result),
        "speedup": result.speedup,
        "verdict": verdict(result),
        "interval": {"low": low, "high": high},
        "no_speedup": why_no_speedup(result) or None,
    }


def _timing(result: Result, baseline: str | None) -> dict[str, Any] | None:
    return result.baselines.get(baseline) if baseline else (fast_p.baseline_of(result) or ("", None))[1]
