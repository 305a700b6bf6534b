"""Results as tables, for the terminal, Markdown and JSON: views of the results log."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tabulate import tabulate

from harness.judge.baselines import EAGER
from harness.result import Result, Status
from kernelbench import metrics
from kernelbench.run import Run
from kernelbench.shapes import Together, geometric_mean, together

_HEADERS = ("problem", "workload", "solution", "language", "status", "time", "baseline", "speedup", "geo. mean",
            "GFLOP/s", "GB/s", "of SOL")  # fmt: skip
_UNSTABLE = "~"
_LEFT = 5  # columns of text
_ONLY_OF_SEVERAL = {"workload", "geo. mean"}


def summary(run: Run, problems: list[str]) -> dict[str, Any]:
    """The leaderboard as data. ``problems`` are the ids that count, solved or not."""
    results, solutions = run.latest(), run.solutions()
    best = {**dict.fromkeys(problems), **metrics.best_of_each_problem(solutions)}
    speedups = [result.speedup if result else None for result in best.values()]
    return {
        "device": _common(result.device for result in results),
        "versions": _common(result.versions for result in results),
        "workload": run.config.get("workload"),
        "precision": run.config.get("precision"),
        "problems": len(best),
        "solved": sum(result is not None for result in best.values()),
        "fast_p": {f"{p:g}": metrics.fast_p(speedups, p) for p in metrics.THRESHOLDS},
        "geometric_mean_speedup": metrics.geometric_mean(metrics.standard(speedups)),
        "sol_p": _sol_p(best.values()),
        "statuses": dict(Counter(result.status.value for result in results)),
        "results": [row(result) for result in results],
        "over_workloads": [row(result) for result in solutions if isinstance(result, Together)],
    }


def write(run: Run, problems: list[str]) -> None:
    """leaderboard.json and leaderboard.md in the run's directory."""
    data = summary(run, problems)
    (run.path / "leaderboard.json").write_text(json.dumps(data, indent=2) + "\n")
    (run.path / "leaderboard.md").write_text(markdown(run, data))


def markdown(run: Run, data: dict[str, Any]) -> str:
    device = data["device"].get("name", "unknown device")
    parts = [
        f"# Leaderboard: {Path(run.config.get('solver') or run.config['solutions']).name}",
        f"{device}, {_versions(data['versions'])}, workload {data['workload'] or 'default'}, "
        f"precision {data['precision']}. Speedup is the baseline's median over the solution's, "
        "both timed in turn on the same fresh inputs unless the baseline is a stored one.",
        fast_p_table(data, "github"),
        result_table(run.latest(), "github"),
    ]
    failures = [r for r in run.latest() if not r.correct]
    if failures:
        parts.append("## Failures")
        parts += [f"**{r.problem} {r.solution['name']}**: {r.status}\n\n```\n{r.message}\n```" for r in failures]
    return "\n\n".join(parts) + "\n"


def fast_p_table(data: dict[str, Any], style: str = "simple") -> str:
    sol = data["sol_p"] or {}
    headers = ["problems", "solved", *(f"fast_{p}" for p in data["fast_p"]), "geo. mean speedup"]
    headers += [f"SOL > {p} %" for p in sol]
    mean = data["geometric_mean_speedup"]
    shares = [f"{share:.3f}" for share in data["fast_p"].values()]
    row = [data["problems"], data["solved"], *shares, f"{mean:.2f}x" if mean else "-"]
    row += [f"{share:.3f}" for share in sol.values()]
    return tabulate([row], headers, tablefmt=style, disable_numparse=True)


def result_table(results: list[Result], style: str = "simple") -> str:
    """One line a result, in their order; of a solution on several workloads one for each, and one for all together.

    That one has total times, the ratio of these as its speedup, and the geometric mean of the others' speedups.
    """
    lines = [line for solution in together(results) for line in (*getattr(solution, "parts", ()), solution)]
    rows = [
        (
            f"{r.problem} {r.problem_name}",
            f"all {len(r.parts)}" if isinstance(r, Together) else r.workload.get("name", ""),
            r.solution["name"],
            r.solution["language"],
            r.status.value,
            duration(r.timing),
            _baseline(r),
            speedup_text(r),
            f"{mean:.2f}x" if (mean := geometric_mean(r)) else "",
            f"{r.gflops:,.0f}" if r.gflops and r.gflops >= 10 else f"{r.gflops:.2f}" if r.gflops else "",
            f"{r.gbps:,.1f}" if r.gbps else "",
            f"{percent:.1f} %" if (percent := metrics.percent_of_sol(r)) is not None else "",
        )
        for r in lines
    ]
    several = any(isinstance(line, Together) for line in lines)
    shown = [i for i, name in enumerate(_HEADERS) if several or name not in _ONLY_OF_SEVERAL]
    align = ["left" if i < _LEFT else "right" for i in shown] if rows else None
    cells = [[row[i] for i in shown] for row in rows]
    table = tabulate(cells, [_HEADERS[i] for i in shown], tablefmt=style, colalign=align, disable_numparse=True)
    if any(speedup_text(line).startswith(_UNSTABLE) for line in lines):
        table += f"\n\n{_UNSTABLE} unstable: its times did not settle, another run may say otherwise"
    return table


def speedup_text(result: Result) -> str:
    """Marked where it is not to be relied upon; empty without one."""
    if not result.speedup:
        return ""
    unstable = any(map(metrics.is_unstable, getattr(result, "parts", [result])))
    return f"{_UNSTABLE if unstable else ''}{result.speedup:.2f}x"


def _sol_p(best) -> dict[str, float] | None:
    """None where no result has a bound, as on a CPU."""
    percents = [metrics.percent_of_sol(result) for result in best]
    if all(percent is None for percent in percents):
        return None
    return {f"{p:g}": metrics.sol_p(percents, p) for p in metrics.SOL_THRESHOLDS}


def failure_list(results: list[Result]) -> str:
    """The failures with the first lines of their messages."""
    lines = []
    for result in results:
        if result.status is not Status.OK:
            message = result.message.strip().splitlines() or [""]
            lines.append(f"{result.problem} {result.solution['name']} ({result.workload.get('name')}): {result.status}")
            lines += [f"    {line}" for line in message[:4]]
    return "\n".join(lines)


def row(result: Result) -> dict[str, Any]:
    """The figures of one result."""
    return {
        "problem": result.problem,
        "name": result.problem_name,
        "solution": result.solution["name"],
        "sample": result.solution["sample"],
        "language": result.solution["language"],
        "workload": result.workload.get("name"),
        "status": result.status.value,
        "message": result.message,
        "median_ms": metrics.typical_ms(result.timing),
        "baseline_ms": {name: metrics.typical_ms(timing) for name, timing in result.baselines.items()},
        "speedup": result.speedup,
        "geometric_mean_speedup": geometric_mean(result),
        "gflops": result.gflops,
        "gbps": result.gbps,
        "t_sol_ms": (result.sol or {}).get("t_sol_ms"),
        "percent_of_sol": metrics.percent_of_sol(result),
        "bottleneck": (result.sol or {}).get("bottleneck"),
    }


def duration(timing: dict[str, Any] | None) -> str:
    """The typical time of a timing, with its unit; '' without one."""
    ms = metrics.typical_ms(timing)
    if ms is None:
        return ""
    return f"{ms * 1e3:.1f} us" if ms < 1 else f"{ms:.3f} ms"


def _baseline(result: Result) -> str:
    """The time that the speedup is over; its name too, unless it is eager in turn with the solution."""
    name, timing = metrics.baseline_of(result) or ("", None)
    return duration(timing) + (f" ({name})" if name not in ("", EAGER) else "")


def _versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {versions[name]}" for name in ("torch", "cuda", "driver") if versions.get(name))


def _common(values) -> dict[str, Any]:
    """The fields that all share: those of several GPUs of one kind but not the identity of each."""
    first, *rest = list(values) or [{}]
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in rest)}
