"""What the page shows above the table: figures, curves, roofs of runs on the same problems. Pure functions of logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from harness.result import Result
from kernelbench import curves, metrics
from kernelbench.run import Run
from kernelbench.shapes import Together, geometric_mean
from kernelbench.standings import counted, labels, with_interval

_CONDITIONS = ("device", "workload", "precision", "started")


def overview(runs: Sequence[Run]) -> dict[str, Any]:
    """Figures of every run over the problems that any of them counts."""
    problems = counted(runs)
    names = labels(runs)
    return {
        "problems": len(problems),
        "runs": [_summary(run, name, problems) for run, name in zip(runs, names)],
        "areas": [{"run": index, **curves.area(run, runs[0], problems)} for index, run in enumerate(runs) if index],
        "roofs": _roofs(runs),
    }


def _summary(run: Run, name: str, problems: Sequence[str]) -> dict[str, Any]:
    results = run.solutions()
    speedups = metrics.speedups(results, problems)
    return {
        "name": name,
        **{key: run.config.get(key) for key in _CONDITIONS},
        "torch": next((r.versions["torch"] for r in results if r.versions.get("torch")), None),
        "results": len(results),
        "solved": sum(best is not None for best in metrics.best_of_each_problem(results).values()),
        "statuses": dict(Counter(result.status.value for result in results)),
        "fast_1": with_interval(partial(metrics.fast_p, p=1.0), speedups),
        "geometric_mean": with_interval(metrics.geometric_mean, metrics.standard(speedups)),
        "total_runtime": with_interval(metrics.ratio_of_total_runtimes, metrics.runtimes_ms(results, problems)),
        **curves.of_run(run, problems),
        "over_workloads": _over_workloads(results),
    }


def _over_workloads(results: Sequence[Result]) -> dict[str, dict[str, Any]]:
    """By problem and name, what a solution is worth on all of its workloads, where it has several."""
    return {
        f"{result.problem} {result.solution['name']}": {
            "workloads": [part.workload.get("name") for part in result.parts],
            "speedup": result.speedup if result.correct else None,
            "geometric_mean": geometric_mean(result),
            "ms": metrics.typical_ms(result.timing),
        }
        for result in results
        if isinstance(result, Together)
    }


def _roofs(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Peaks and bandwidth of the GPUs that results come from, where they are known."""
    names = {r.device.get("name"): None for run in runs for r in run.latest() if r.device.get("type") == "cuda"}
    if not names:
        return []
    from harness.sol.hardware import limits_of_product  # imports torch

    known = [limits for name in names if name and (limits := limits_of_product(name))]
    return [
        {"device": limits.title, "gbps": limits.gbps,
         "tflops": {"FP32": limits.fp32, "TF32": limits.tf32, "FP16": limits.fp16}}
        for limits in known
    ]  # fmt: skip
