"""Results as tables, for the terminal, Markdown and JSON: views of the results log."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from harness.baselines import EAGER
from harness.result import Result, Status
from kernelbench import escaping
from kernelbench.metrics import fast_p, held_out, outcomes, settled, winners
from kernelbench.metrics.scores import scores
from kernelbench.metrics.throughput import gflops_mean
from kernelbench.metrics.workloads import CombinedResult, geometric_mean, together
from kernelbench.review import labels
from kernelbench.review.labels import NONE, Label
from kernelbench.run import Run
from kernelbench.views import tables
from kernelbench.views.outcome_tables import outcome_tables

AS_JSON, AS_MARKDOWN = "leaderboard.json", "leaderboard.md"
_HEADERS = ("problem", "workload", "solution", "language", "status", "time", "baseline", "speedup",
            "95 % interval", "geo. mean", "GFLOP/s", "GB/s", "of SOL", "held out")  # fmt: skip
_LEFT = 5  # columns of text
_ONLY_OF_SEVERAL = {"workload", "geo. mean"}
_ONLY_HELD_OUT = {"held out"}


def summary(run: Run, problems: list[str]) -> dict[str, Any]:
    """The leaderboard as data. ``problems`` are the ids that count, solved or not. Raises ReviewError."""
    results, solutions = run.latest(), run.solutions()
    label_of = labels.of_run(run)
    band_of = labels.band_of(label_of)
    found = scores(solutions, list(dict.fromkeys([*problems, *(result.problem for result in solutions)])))
    return {
        "device": _common(result.device for result in results),
        "versions": _common(result.versions for result in results),
        "workload": run.config.get("workload"),
        "precision": run.config.get("precision"),
        "problems": len(found.problems),
        "solved": int(found.solved.sum()),
        "settled_fast_p": {f"{p:g}": fast_p.share(found.beats(p)) for p in fast_p.THRESHOLDS},
        "fast_p": {f"{p:g}": fast_p.share(found.raw_beats(p)) for p in fast_p.THRESHOLDS},
        "geometric_mean_speedup": _defined(fast_p.geometric_mean(found.settled)),
        "raw_geometric_mean_speedup": _defined(fast_p.geometric_mean(found.raw)),
        "by_baseline": _by_baseline(solutions, found.problems),
        "sol_p": _sol_p(found.percent_of_sol),
        "statuses": dict(Counter(result.status.value for result in results)),
        "verdicts": dict(Counter(verdict for result in solutions if (verdict := settled.verdict(result)))),
        "confirmed_best": winners.bias(results),
        "bands": outcomes.bands(solutions, band_of),
        "filterings": outcomes.figures(solutions, found.problems, band_of),
        "held_out": held_out.counts(solutions),
        "results": [row(result, label_of.get(labels.key_of(result), NONE)) for result in results],
        "over_workloads": [row(result) for result in solutions if isinstance(result, CombinedResult)],
    }


def write(run: Run, problems: list[str]) -> None:
    """leaderboard.json and leaderboard.md in the run's directory."""
    data = summary(run, problems)
    run.write(AS_JSON, escaping.json_text(data) + "\n")  # which a CI job may print
    run.write(AS_MARKDOWN, markdown(run, data))


def markdown(run: Run, data: dict[str, Any]) -> str:
    """Return the leaderboard of a run as a Markdown document."""
    device = data["device"].get("name", "unknown device")
    name = Path(run.config.get("solver") or run.config.get("solutions") or run.path).name
    parts = [
        f"# Leaderboard: {escaping.markdown(name)}",
        escaping.markdown(f"{device}, {_versions(data['versions'])}, workload {data['workload'] or 'default'}, ")
        + f"precision {data['precision']}. Speedup is the baseline's median over the solution's, "
        "both timed in turn on the same fresh inputs unless the baseline is a stored one. A speedup whose interval "
        "holds 1 is a tie and counts as 1; an unstable one counts as no faster than anything. fast_p is the share of "
        "problems whose interval lies above p.",
        fast_p_table(data, "markdown"),
        result_table(run.latest(), "markdown"),
    ]
    failures = [r for r in run.latest() if not r.correct]
    if failures:
        parts.append("## Failures")
        names = [escaping.markdown(f"{r.problem} {r.solution['name']}") for r in failures]
        parts += [f"**{name}**: {r.status}\n\n{escaping.markdown_block(r.message)}" for name, r in zip(names, failures)]
    return "\n\n".join(parts) + "\n"


def fast_p_table(data: dict[str, Any], form: str = "terminal") -> str:
    """One line with the figures of a run: settled fast_p, the settled mean, shares of the speed of light."""
    sol = data["sol_p"] or {}
    headers = ["problems", "solved", *(f"fast_{p}" for p in data["settled_fast_p"]), "geo. mean speedup", "unstable"]
    headers += [f"SOL > {p} %" for p in sol]
    headers += [f"fast_1 over {name}" for name in data["by_baseline"]]
    mean = data["geometric_mean_speedup"]
    shares = [f"{share:.3f}" for share in data["settled_fast_p"].values()]
    unstable = str(data["verdicts"].get(settled.UNSTABLE, 0))
    row = [data["problems"], data["solved"], *shares, f"{mean:.2f}x" if mean else "-", unstable]
    row += [f"{share:.3f}" for share in sol.values()]
    row += [f"{figures['settled_fast_1']:.3f}" for figures in data["by_baseline"].values()]
    table = tables.table(headers, [row], form)
    labelled = outcome_tables([("this run", data)], form)
    return "\n\n".join(filter(None, [table, winners.bias_text(data["confirmed_best"]), labelled]))


def _by_baseline(solutions: list[Result], problems: list[str]) -> dict[str, dict[str, float | None]]:
    """Return the main figures over each baseline of a run that has several."""
    names = list(dict.fromkeys(name for result in solutions for name in result.baselines))
    found = {name: scores(solutions, problems, baseline=name) for name in names} if len(names) > 1 else {}
    return {
        name: {
            "settled_fast_1": fast_p.share(those.beats(1.0)),
            "fast_1": fast_p.share(those.raw_beats(1.0)),
            "geometric_mean_speedup": _defined(fast_p.geometric_mean(those.settled)),
        }
        for name, those in found.items()
    }


def result_table(results: list[Result], form: str = "terminal") -> str:
    """One line a result, in their order; of a solution on several workloads one for each, and one for all together.

    That one has total times, the ratio of these as its speedup, and the geometric mean of the others' speedups.
    """
    lines = [line for solution in together(results) for line in (*getattr(solution, "parts", ()), solution)]
    rows = [
        (
            f"{r.problem} {r.problem_name}",
            f"all {len(r.parts)}" if isinstance(r, CombinedResult) else r.workload.get("name", ""),
            r.solution["name"],
            r.solution["language"],
            r.status.value,
            duration(r.timing),
            _baseline(r),
            _speedup(r),
            _range(r),
            f"{mean:.2f}x" if (mean := geometric_mean(r)) else "",
            f"{r.gflops:,.0f}" if r.gflops and r.gflops >= 10 else f"{r.gflops:.2f}" if r.gflops else "",
            f"{r.gbps:,.1f}" if r.gbps else "",
            f"{percent:.1f} %" if (percent := fast_p.percent_of_sol(r)) is not None else "",
            held_out.verdict(r) or "",
        )
        for r in lines
    ]
    several = any(isinstance(line, CombinedResult) for line in lines)
    hidden = set() if several else set(_ONLY_OF_SEVERAL)
    hidden |= set() if any(held_out.verdict(line) for line in lines) else _ONLY_HELD_OUT
    shown = [i for i, name in enumerate(_HEADERS) if name not in hidden]
    align = ["left" if i < _LEFT else "right" for i in shown]
    cells = [[row[i] for i in shown] for row in rows]
    table = tables.table([_HEADERS[i] for i in shown], cells, form, align)
    if any(settled.verdict(line) == settled.UNSTABLE for line in lines):
        table += "\n\nunstable: the times did not settle; it counts as no faster than anything, measure it again"
    if untimed := [line for line in lines if line.correct and line.speedup is None]:
        reasons = dict.fromkeys(map(settled.why_no_speedup, untimed))
        lines_below = [f"no speedup: {reason}" for reason in reasons]
        table += "\n\n" + "\n".join(map(escaping.markdown, lines_below) if form == "markdown" else lines_below)
    return table


def _speedup(result: Result) -> str:
    """The settled speedup with its verdict; why there is none is below the table."""
    if result.correct and result.speedup is None:
        return "none"
    return settled.speedup_text(result)


def _range(result: Result) -> str:
    found = settled.interval(result) if result.speedup else None
    return f"[{found.low:.2f}, {found.high:.2f}]" if found else ""


def _defined(figure: float) -> float | None:
    return None if math.isnan(figure) else figure


def _sol_p(percents: np.ndarray) -> dict[str, float] | None:
    """None where no result has a bound, as on a CPU."""
    if np.isnan(percents).all():
        return None
    return {f"{p:g}": fast_p.sol_p(percents, p) for p in fast_p.SOL_THRESHOLDS}


def failure_list(results: list[Result]) -> str:
    """The failures with the first lines of their messages."""
    lines = []
    for result in results:
        if result.status is not Status.OK:
            message = result.message.strip().splitlines() or [""]
            lines.append(f"{result.problem} {result.solution['name']} ({result.workload.get('name')}): {result.status}")
            lines += [f"    {line}" for line in message[:4]]
    return "\n".join(lines)


def row(result: Result, label: Label = NONE) -> dict[str, Any]:
    """The figures of one result, and its label."""
    return {
        "problem": result.problem,
        "name": result.problem_name,
        "solution": result.solution["name"],
        "sample": result.solution["sample"],
        "language": result.solution["language"],
        "workload": result.workload.get("name"),
        "status": result.status.value,
        "message": result.message,
        "median_ms": fast_p.typical_ms(result.timing),
        "baseline_ms": {name: fast_p.typical_ms(timing) for name, timing in result.baselines.items()},
        **settled.to_json(result),
        "geometric_mean_speedup": geometric_mean(result),
        "gflops": result.gflops,
        "gflops_mean": gflops_mean(result),
        "gbps": result.gbps,
        "t_sol_ms": (result.sol or {}).get("t_sol_ms"),
        "percent_of_sol": fast_p.percent_of_sol(result),
        "bottleneck": (result.sol or {}).get("bottleneck"),
        "label": label.band,
        "label_category": label.category,
        "held_out": held_out.verdict(result),
    }


def duration(timing: dict[str, Any] | None) -> str:
    """The typical time of a timing, with its unit; '' without one."""
    ms = fast_p.typical_ms(timing)
    if ms is None:
        return ""
    return f"{ms * 1e3:.1f} us" if ms < 1 else f"{ms:.3f} ms"


def _baseline(result: Result) -> str:
    """The time that the speedup is over; its name too, unless it is eager in turn with the solution."""
    name, timing = fast_p.baseline_of(result) or ("", None)
    return duration(timing) + (f" ({name})" if name not in ("", EAGER) else "")


def _versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {versions[name]}" for name in ("torch", "cuda", "driver") if versions.get(name))


def _common(values) -> dict[str, Any]:
    """The fields that all share: those of several GPUs of one kind but not the identity of each."""
    first, *rest = list(values) or [{}]
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in rest)}
