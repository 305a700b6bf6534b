"""Overview above the table: figures, curves, rooflines of runs on the same problems. Pure functions of logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from harness.result import Result
from kernelbench.metrics import fast_p, held_out, outcomes, settled
from kernelbench.metrics.scores import Scores, scores
from kernelbench.metrics.workloads import CombinedResult, geometric_mean
from kernelbench.report import records
from kernelbench.review.labels import band_of, of_run
from kernelbench.run import Run
from kernelbench.run_files import unevaluated
from kernelbench.views import curves, ranking
from kernelbench.views.ranking import counted, labels

_CONDITIONS = ("device", "precision", "started", "baselines", "solver", "model")
_UNTIMED = "without a speedup"  # instead of a verdict
_NOT_SHOWN = ("kind", "after")  # of what was not evaluated


def overview(runs: Sequence[Run]) -> dict[str, Any]:
    """Figures of every run over the problems that any of them counts."""
    problems = counted(runs)
    names = labels(runs)
    found = [scores(run.solutions(), problems) for run in runs]
    return {
        "problems": len(problems),
        "runs": [_summary(*of_run) for of_run in zip(runs, names, found)],
        "areas": [{"run": i, **curves.area(those, found[0])} for i, those in enumerate(found) if i],
        "roofs": _roofs(runs),
    }


def _summary(run: Run, name: str, found: Scores) -> dict[str, Any]:
    results, figures, raw = run.solutions(), ranking.of_scores(found), ranking.raw_of_scores(found)
    bands = band_of(of_run(run))
    return {
        "name": name,
        **{key: run.config.get(key) for key in _CONDITIONS},
        "workloads": list(dict.fromkeys(filter(None, (result.workload.get("name") for result in run.latest())))),
        "torch": next((r.versions["torch"] for r in results if r.versions.get("torch")), None),
        "results": len(results),
        "solved": int(found.solved.sum()),
        "statuses": dict(Counter(result.status.value for result in results)),
        "verdicts": dict(Counter(settled.verdict(result) or _UNTIMED for result in results if result.correct)),
        "settled_fast_1": figures["settled_fast_p"]["1"],
        "fast_1": figures["fast_p"]["1"],
        "geometric_mean": figures["geometric_mean"]["standard"],
        "raw_geometric_mean": raw["geometric_mean"],
        "total_runtime": figures["total_runtime"],
        "raw_total_runtime": raw["total_runtime"],
        "bands": outcomes.bands(results, bands),
        "filterings": outcomes.figures(results, found.problems, bands),
        "held_out": held_out.counts(results),
        **curves.of_run(results, found, bands),
        "over_workloads": _over_workloads(results),
        "unevaluated": [
            {key: value for key, value in record.items() if key not in _NOT_SHOWN and value is not None}
            for record in unevaluated.pending(run.results, run.unevaluated)
        ],
    }  # fmt: skip


def _over_workloads(results: Sequence[Result]) -> dict[str, dict[str, Any]]:
    """Return, by problem and name, a solution's result over all of its workloads, where it has several."""
    return {
        f"{result.problem} {result.solution['name']}": {
            "workloads": [part.workload.get("name") for part in result.parts],
            **(records.claim(result) if result.correct else {}),
            "geometric_mean": geometric_mean(result),
            "ms": fast_p.typical_ms(result.timing),
        }
        for result in results
        if isinstance(result, CombinedResult)
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
