"""What the page shows of results: a short row for the table, and everything for the panel. Pure functions of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harness.result import Result
from kernelbench import metrics
from kernelbench.intervals import speedup_interval
from kernelbench.run import Run
from kernelbench.sources import source_of

_MESSAGE_LENGTH = 200

Attempts = dict[tuple[str, int], dict[str, Any]]


def row(result: Result, number: int, run: int) -> dict[str, Any]:
    """One line of the table. ``number`` is the result's own, ``run`` the index of its run; times in ms."""
    baseline = metrics.baseline_of(result)
    low, high = _interval(result, baseline)
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
        "ms": metrics.typical_ms(result.timing),
        "baseline": metrics.typical_ms(baseline[1]) if baseline else None,
        "speedup": result.speedup,
        "low": low,
        "high": high,
        "verdict": baseline[1].get("verdict") if baseline else None,
        "sol": metrics.percent_of_sol(result),
        "gflops": result.gflops,
        "intensity": flops / size if flops and size else None,
    }
    return {key: value for key, value in fields.items() if value not in (None, "")}


def detail(run: Run, result: Result, attempt: dict[str, Any] | None) -> dict[str, Any]:
    """All that the panel shows of a candidate but the reference, which others share."""
    record = {**vars(result), "status": result.status.value}  # as to_json, without its deep copy of every sample
    return {"record": record, "source": source_of(run, result), "attempt": attempt}


def by_sample(trajectory: Iterable[dict[str, Any]]) -> Attempts:
    """The attempts of a solver by problem and sample, which is how results name them."""
    return {(attempt["problem"], attempt.get("sample")): attempt for attempt in trajectory}


def outline(trajectory: Iterable[dict[str, Any]], run: int) -> list[dict[str, Any]]:
    """The attempts without what was said: what the list of attempts shows."""
    shown = ("problem", "sample", "parent", "turn", "tokens", "cost_usd", "seconds")
    return [{"run": run, **{key: attempt.get(key) for key in shown}} for attempt in trajectory]


def _interval(result: Result, baseline: tuple[str, dict[str, Any]] | None) -> Sequence[float | None]:
    """The interval of the speedup: the paired one of the record, or from the samples of a log that has none."""
    if baseline is None:
        return None, None
    return baseline[1].get("interval") or speedup_interval(result) or (None, None)
