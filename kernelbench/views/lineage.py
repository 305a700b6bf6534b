"""A search as tables: quality by difficulty, strategies, scaling over attempts and dollars, time, regret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernelbench.metrics import lineage
from kernelbench.metrics.lineage import Step
from kernelbench.run import Run
from kernelbench.run_files.sources import trajectory_of
from kernelbench.views import tables

# Levels that are too small alone (KernelBand, table 1), where there are five; of the suite each of three stands alone.
FIVE = {"L1-2": (1, 2), "L3": (3,), "L4-5": (4, 5)}
_BUDGETS = 8  # points of the curve over dollars
_SHOWN = (1, 5, 10, 15, 20, 25, 30, 35, 40)


def of_run(run: Run, problems: Sequence[str] | None = None) -> dict[str, Any]:
    """Return every figure of one run; ``problems`` count, by default those that were attempted."""
    found = lineage.steps(run.measured_first(), trajectory_of(run))
    attempted = sorted({step.problem for step in found})
    at_once = min(run.config.get("at_once") or 1, len(attempted))  # no more can ask the model
    return figures(found, problems or attempted, at_once)


def figures(found: Sequence[Step], problems: Sequence[str], at_once: int = 1) -> dict[str, Any]:
    """Return every figure of ``problems``, as JSON."""
    counted = set(problems)
    found = [step for step in found if step.problem in counted]
    most = max((len(own) for own in lineage.by_problem(found).values()), default=0)
    dearest = max(map(lineage.usd, lineage.by_problem(found).values()), default=0.0)
    budgets = [dearest * (number + 1) / _BUDGETS for number in range(_BUDGETS)] if dearest else []
    return {
        "quality": {name: lineage.table(found, own) for name, own in _groups(problems).items()},
        "strategies": lineage.strategies(found),
        "over_attempts": lineage.over_attempts(found, problems, most),
        "over_usd": list(zip(budgets, lineage.over_usd(found, problems, budgets))),
        "time_s": lineage.time_breakdown(found, at_once),
        "average_regret": lineage.average_regret(found),
    }


def _groups(problems: Sequence[str]) -> dict[str, list[str]]:
    levels = sorted({int(problem.partition("/")[0]) for problem in problems})
    named = FIVE if levels and levels[-1] > 3 else {f"L{level}": (level,) for level in levels}
    groups = {name: [p for p in problems if int(p.partition("/")[0]) in wanted] for name, wanted in named.items()}
    return {name: own for name, own in groups.items() if own} | {"all": list(problems)}


def text(runs: Mapping[str, dict[str, Any]]) -> str:
    """Return the tables of several runs, by name."""
    sections = [
        ("Quality", _quality(runs)), ("Strategies", _strategies(runs)),
        ("Fallback mean after attempts", _scaling(runs)),
        ("Fallback mean within USD a problem", _dollars(runs)), ("Seconds an attempt", _time(runs)),
        ("Average regret after iterations", _regret(runs)),
    ]  # fmt: skip
    return "\n\n".join(f"{title}\n{body}" for title, body in sections if body)


def _quality(runs: Mapping[str, dict[str, Any]]) -> str:
    rows, baselines = [], sorted({name for r in runs.values() for q in r["quality"].values() for name in q["over"]})
    for name, figures_ in runs.items():
        for group, q in figures_["quality"].items():
            means = (_ratio(q["standard"]), _ratio(q["fallback"]), *(_ratio(q["over"].get(b)) for b in baselines))
            rows.append((name, group, q["problems"], _share(q["correct"]), _share(q["fast_1"]), *means))
    over = [f"over {baseline} (raw)" for baseline in baselines]
    return _table(rows, ("run", "problems of", "count", "correct", "Fast@1", "geo. mean", "fallback", *over))


def _strategies(runs: Mapping[str, dict[str, Any]]) -> str:
    rows = [
        (name, strategy, s["applied"], _share(s["frequency"]), _share(s["success"]), _share(s["best"]),
         f"{s['mean_reward']:.3f}")
        for name, figures_ in runs.items()
        for strategy, s in figures_["strategies"].items()
    ]  # fmt: skip
    return _table(rows, ("run", "strategy", "applied", "freq", "succ", "best", "mean reward"))


def _scaling(runs: Mapping[str, dict[str, Any]]) -> str:
    most = max((len(f["over_attempts"]) for f in runs.values()), default=0)
    shown = sorted({t for t in _SHOWN if t <= most} | {most} - {0})
    rows = [(name, *(_at(f["over_attempts"], t) for t in shown)) for name, f in runs.items()]
    return _table(rows, ("run", *map(str, shown))) if shown else ""


def _dollars(runs: Mapping[str, dict[str, Any]]) -> str:
    rows = [
        (name, f"{usd:.4g}", _ratio(mean))
        for name, f in runs.items()
        for usd, mean in f["over_usd"]
        if mean is not None
    ]
    return _table(rows, ("run", "USD", "fallback"))


def _time(runs: Mapping[str, dict[str, Any]]) -> str:
    stages = sorted({stage for f in runs.values() for stage in f["time_s"]["serial"]})
    rows = [
        (name, how, *(f"{f['time_s'][how].get(stage, 0.0):.3g}" for stage in stages),
         f"{sum(f['time_s'][how].values()):.3g}")
        for name, f in runs.items()
        for how in ("serial", "batched")
    ]  # fmt: skip
    return _table(rows, ("run", "calls of the model", *stages, "sum")) if stages else ""


def _regret(runs: Mapping[str, dict[str, Any]]) -> str:
    rows = [
        (name, *(_at(f["average_regret"], t, "{:.3f}") for t in _SHOWN))
        for name, f in runs.items() if f["average_regret"]
    ]  # fmt: skip
    return _table(rows, ("run", *map(str, _SHOWN)))


def _at(values: Sequence[float | None], number: int, form: str = "{:.2f}x") -> str:
    return form.format(values[number - 1]) if number <= len(values) and values[number - 1] is not None else ""


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def _table(rows: list[tuple], headers: Sequence[str]) -> str:
    return tables.table(headers, rows, "terminal") if rows else ""
