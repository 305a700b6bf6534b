"""Rows of the table, and everything for the panel. Pure functions of a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.result import Result
from kernelbench.metrics import fast_p, held_out, settled
from kernelbench.review.labels import NONE, Label
from kernelbench.run import Run
from kernelbench.run_files.sources import source_of

_MESSAGE_LENGTH = 200

Attempts = dict[tuple[str, int], dict[str, Any]]


def row(result: Result, number: int, run: int, label: Label = NONE) -> dict[str, Any]:
    """One line of the table. ``number`` is the result's own, ``run`` the index of its run; times in ms."""
    baseline = fast_p.baseline_of(result)
    flops, size = (result.workload.get(key) for key in ("flops", "bytes"))
    fields = {
        "id": number,
        "run": run,
        "problem": result.problem,
        "name": result.problem_name,
        "solution": result.solution["name"],
        "sample": result.solution["sample"],
        "kind": result.solution["language"],
        "workload": result.workload.get("name"),
        "status": result.status.value,
        "rule": result.rule,
        "message": " ".join(result.message[: 2 * _MESSAGE_LENGTH].split())[:_MESSAGE_LENGTH],
        "ms": fast_p.typical_ms(result.timing),
        "baseline": fast_p.typical_ms(baseline[1]) if baseline else None,
        **claim(result),
        "no_speedup": settled.why_no_speedup(result) if result.correct else None,
        "sol": fast_p.percent_of_sol(result),
        "label": label.band if label != NONE else None,
        "why_label": " ".join(f"{label.category} {label.reason}".split())[:_MESSAGE_LENGTH],
        "held_out": held_out.verdict(result),
        "gflops": result.gflops,
        "intensity": flops / size if flops and size else None,
    }
    return {key: value for key, value in fields.items() if value not in (None, "")}


def claim(result: Result, baseline: str | None = None) -> dict[str, Any]:
    """Return the measured speedup over ``baseline``, what it counts as, its interval and verdict.

    What is not known is left out.
    """
    low, high = settled.interval(result, baseline) or (None, None)
    fields = {
        "speedup": settled.raw_speedup(result, baseline),
        "settled": settled.settled_speedup(result, baseline),
        "low": low,
        "high": high,
        "verdict": settled.verdict(result, baseline),
    }
    return {key: value for key, value in fields.items() if value is not None}


def detail(result: Result) -> dict[str, Any]:
    """Return what the panel shows of a candidate but for texts, which may be of others too."""
    record = {**vars(result), "status": result.status.value}  # as to_json, without its deep copy of every sample
    return {"record": record, "claims": {name: claim(result, name) for name in result.baselines}}


def texts(run: Run, result: Result, attempts: Attempts) -> dict[str, Any]:
    """Return the source of a candidate and its attempt, None where there is none."""
    attempt = attempts.get((result.problem, result.solution["sample"]))
    return {"source": source_of(run, result), "attempt": attempt}


def by_sample(trajectory: Iterable[dict[str, Any]]) -> Attempts:
    """The attempts of a solver by problem and sample, which is how results name them."""
    return {(attempt["problem"], attempt.get("sample")): attempt for attempt in trajectory}


def outline(trajectory: Iterable[dict[str, Any]], run: int) -> list[dict[str, Any]]:
    """The attempts without what was said: what the list of attempts shows."""
    shown = ("problem", "sample", "parent", "turn", "tokens", "cost_usd", "seconds")
    return [{"run": run, **{key: attempt.get(key) for key in shown}} for attempt in trajectory]
