"""TritonBench's figures of a run: call and execution accuracy, and speedup as a ratio of summed runtimes.

Call accuracy: the golden file's own test runs with the candidate's functions. Execution accuracy: every output on every
shape is within ``torch.allclose`` at 1e-4. Both are of the best sample of a problem, over all problems of the run's
selection, and stand beside the judge's own status. Speedups are of those that the judge found correct.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harness.result import Result, Status
from kernelbench.metrics import fast_p, settled
from kernelbench.metrics.workloads import together

_TEST = "test"


def figures(results: Sequence[Result], problems: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the figures of all ``problems`` (ids), by default those with a result, and a row for each of these."""
    solutions: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        solutions.setdefault((result.problem, result.solution["name"]), []).append(result)
    rows: dict[str, dict[str, Any]] = {}
    for parts in solutions.values():
        row = _row(parts)
        if row["problem"] not in rows or _order(row) > _order(rows[row["problem"]]):
            rows[row["problem"]] = row
    count = len(set(problems or rows))
    right = [row for row in rows.values() if row["execution"] and row["settled_speedup"]]
    return {
        "problems": count,
        "call_accuracy": sum(row["call"] for row in rows.values()) / count if count else None,
        "execution_accuracy": sum(row["execution"] for row in rows.values()) / count if count else None,
        "ok": sum(row["status"] == "ok" for row in rows.values()) / count if count else None,
        "geometric_mean_speedup": fast_p.geometric_mean([row["settled_speedup"] for row in right]) if right else None,
        "rows": [rows[key] for key in sorted(rows, key=lambda key: tuple(map(int, key.split("/"))))],
    }


def _row(parts: list[Result]) -> dict[str, Any]:
    (whole,) = together(parts)
    tests = [part for part in parts if part.workload.get("name") == _TEST]
    shapes = [part for part in parts if part.workload.get("name") != _TEST]
    return {
        "problem": whole.problem,
        "name": whole.problem_name,
        "difficulty": int(whole.problem.partition("/")[0]),
        "solution": whole.solution["name"],
        "call": bool(tests) and all(_compared(part) for part in tests),
        "execution": bool(shapes) and all((_allclose(part) or {}).get("passes", False) for part in shapes),
        "status": whole.status.value,
        "shapes": len(shapes),
        "speedup": whole.speedup if whole.correct else None,
        "settled_speedup": settled.settled_speedup(whole) if whole.correct else None,
    }


def _allclose(part: Result) -> dict[str, Any] | None:
    return (part.correctness or {}).get("allclose")


def _compared(part: Result) -> bool:
    """Return whether the call came to an end: its outputs were compared, whatever that showed."""
    return part.correct or _allclose(part) is not None


def _order(row: dict[str, Any]) -> tuple:
    fair = row["status"] != Status.REJECTED.value
    return row["execution"] and fair, row["execution"], row["settled_speedup"] or 0.0, row["call"]
