"""A leaderboard over runs: models, agents or GPUs side by side, on the same problems.

A pure function of the runs' logs. Every figure comes with its bootstrap interval over
problems; runs whose difference could be chance share a rank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from harness.result import Result
from kernelbench import curves, metrics, sampling, suite, tables
from kernelbench.intervals import LEVEL, bootstrap
from kernelbench.run import Run, RunError
from kernelbench.shapes import Together

ALL = "all"
_RANKED_BY = 1.0  # fast_1: as in the KernelBench paper
_KS = (1, 2, 5, 10, 20, 50, 100)
_CONDITIONS = ("device", "workload", "precision")


def standings(runs: Sequence[Run], selector: str | None = None) -> dict[str, Any]:
    """Rows of every run for all problems, and for each level and subset among them.

    The problems that count, for every run alike, are those of ``selector``, or
    else those that any of the runs counts. Raises SelectorError or ProblemError
    where they cannot be found, and RunError where no run has a result.
    """
    problems = counted(runs, selector)
    if not problems:
        raise RunError(f"no results yet in {', '.join(str(run.path) for run in runs)}: nothing to rank")
    groups = {ALL: problems, **_parts(problems, runs)}
    names = labels(runs)
    ranked = {name: _ranked(runs, names, members) for name, members in groups.items()}
    for workload, members in _workloads(problems, runs).items():
        ranked[f"workload {workload}"] = _ranked(runs, names, members, workload)
    return {
        "problems": len(problems),
        "ranked_by": f"fast_{_RANKED_BY:g}",
        "differing": [key for key in _CONDITIONS if len({run.config.get(key) for run in runs}) > 1],
        "groups": ranked,
        "curves": {name: curves.of_run(run, problems) for name, run in zip(names, runs)},
        "signed_areas": [
            {"run": name, "over": names[0], **curves.area(run, runs[0], problems)}
            for name, run in zip(names[1:], runs[1:])
        ],
    }


def render(data: dict[str, Any], form: str) -> str:
    """``form`` is one of ``tables.FORMATS``."""
    if form == "json":
        return tables.to_json(data)
    if form == "csv":
        return tables.to_csv([{"group": name, **row} for name, rows in data["groups"].items() for row in rows])
    parts = [tables.table(_HEADERS, map(_cells, data["groups"][ALL]), form)]
    pieces = [(name, row) for name, rows in data["groups"].items() if name != ALL for row in rows]
    if pieces:
        parts.append(tables.table(("problems", *_HEADERS), [(name, *_cells(row)) for name, row in pieces], form))
    parts.append(
        f"{data['problems']} problem(s) count, solved or not. [low, high]: {LEVEL:.0%} interval over problems; runs "
        f"share a rank where that of their difference in {data['ranked_by']} holds 0. Fallback counts failures and "
        "regressions as 1; total runtime is the baseline's over the solutions', summed over what is solved; unfiltered "
        "counts rejected results as correct, where they were timed."
    )
    for area in data["signed_areas"]:
        parts.append(
            f"Signed area between the Fast-p curves of {area['run']} and {area['over']}: "
            f"{_value(area, '+.3f')} {_range(area, '+.3f')}"
        )
    if data["differing"]:
        parts.append(
            f"The runs differ in {', '.join(data['differing'])}: each speedup is against the baseline of its own run."
        )
    return "\n\n".join(parts)


def counted(runs: Sequence[Run], selector: str | None = None) -> list[str]:
    """The problems that count, in order; raises what ``standings`` raises."""
    if selector:
        return _find(selector, runs[0])
    found: dict[str, None] = {}
    for run in runs:
        chosen = run.config.get("problems")
        found |= dict.fromkeys(_find(chosen, run) if chosen else ())
        found |= dict.fromkeys(result.problem for result in run.results)
    return sorted(found, key=_order)


def _find(selector: str, run: Run) -> list[str]:
    folder = run.config.get("problem_dir")
    return [str(file.id) for file in suite.find(selector, Path(folder) if folder else None)]


def _order(problem: str) -> tuple[int, ...]:
    return tuple(map(int, problem.split("/")))


def _parts(problems: list[str], runs: Sequence[Run]) -> dict[str, list[str]]:
    """Levels, and subsets of our own suite; a part that is all of it, or nothing, is none."""
    levels = {_order(problem)[0] for problem in problems}
    parts = {f"level{level}": [p for p in problems if _order(p)[0] == level] for level in levels}
    if not any(run.config.get("problem_dir") for run in runs):
        for name in (*suite.SUBSETS, suite.SOUND):
            members = _members(name)
            parts[name] = [p for p in problems if p in members]
    return {name: members for name, members in sorted(parts.items()) if members and len(members) < len(problems)}


def _workloads(problems: list[str], runs: Sequence[Run]) -> dict[str, list[str]]:
    """The workloads of runs that have several a solution, and the problems that were evaluated on them."""
    if not any(isinstance(result, Together) for run in runs for result in run.solutions()):
        return {}
    found: dict[str, set[str]] = {}
    for run in runs:
        for result in run.latest():
            found.setdefault(result.workload.get("name", "?"), set()).add(result.problem)
    return {name: [p for p in problems if p in members] for name, members in found.items() if members & set(problems)}


def _results(run: Run, workload: str | None) -> list[Result]:
    """Those of one workload, or of all workloads together."""
    if workload is None:
        return run.solutions()
    return [result for result in run.latest() if result.workload.get("name") == workload]


def _members(subset: str) -> set[str]:
    try:
        return {str(file.id) for file in suite.find(subset)}
    except suite.SelectorError:  # nothing is known to be sound before an audit
        return set()


def labels(runs: Sequence[Run]) -> list[str]:
    """The names of the runs' folders, with their whole paths where two are the same."""
    names = Counter(run.path.resolve().name for run in runs)
    return [name if names[name := run.path.resolve().name] == 1 else str(run.path) for run in runs]


def _ranked(
    runs: Sequence[Run], names: list[str], problems: list[str], workload: str | None = None
) -> list[dict[str, Any]]:
    """Rows by falling fast_1, then geometric mean; a row whose difference from the rank's first holds 0 shares it."""
    results = [_results(run, workload) for run in runs]
    rows = [
        (_row(run, name, problems, found), metrics.speedups(found, problems))
        for run, name, found in zip(runs, names, results)
    ]
    rows.sort(key=lambda item: (-item[0]["fast_p"]["1"]["value"], -item[0]["geometric_mean"]["fallback"]["value"]))
    rank, first = 1, rows[0][1]
    for place, (row, speedups) in enumerate(rows, start=1):
        difference = bootstrap(_difference, first, speedups)
        if difference.low > 0:
            rank, first = place, speedups
        row["rank"] = rank
    return [row for row, _ in rows]


def _difference(speedups: list, others: list) -> float:
    return metrics.fast_p(speedups, _RANKED_BY) - metrics.fast_p(others, _RANKED_BY)


def _row(run: Run, label: str, problems: list[str], found: list[Result]) -> dict[str, Any]:
    results = [result for result in found if result.problem in set(problems)]
    best = metrics.best_of_each_problem(results)
    speedups, unfiltered = metrics.speedups(results, problems), metrics.speedups(results, problems, unfiltered=True)
    percents = [metrics.percent_of_sol(best.get(problem)) for problem in problems]
    statuses = Counter(result.status.value for result in results)
    return {
        "rank": None,
        "run": label,
        **{key: run.config.get(key) for key in _CONDITIONS},
        "problems": len(problems),
        "solved": sum(result is not None for result in best.values()),
        "results": len(results),
        "statuses": dict(statuses),
        **_scores(speedups),
        "total_runtime": with_interval(metrics.ratio_of_total_runtimes, metrics.runtimes_ms(results, problems)),
        "unfiltered": _scores(unfiltered),
        "sol_p": None if all(p is None for p in percents) else _sol_p(percents),
        "samples": _at_k(list(sampling.samples_of_each_problem(results, problems).values())),
    }


def _scores(speedups: list[float | None]) -> dict[str, Any]:
    modes = {"standard": metrics.standard, "fallback": metrics.fallback}
    return {
        "fast_p": {f"{p:g}": with_interval(partial(metrics.fast_p, p=p), speedups) for p in metrics.THRESHOLDS},
        "geometric_mean": {
            name: with_interval(_after(metrics.geometric_mean, mode), speedups) for name, mode in modes.items()
        },
        "median": {name: with_interval(_after(metrics.median, mode), speedups) for name, mode in modes.items()},
    }


def _sol_p(percents: list[float | None]) -> dict[str, Any]:
    return {f"{p:g}": with_interval(partial(metrics.sol_p, p=p), percents) for p in metrics.SOL_THRESHOLDS}


def _at_k(samples: list[list[float | None]]) -> dict[str, Any]:
    """pass@k and fast_1@k for every k that each problem with samples has enough of; nothing for single samples."""
    fewest = min((len(speedups) for speedups in samples if speedups), default=0)
    ks = [k for k in _KS if k <= fewest] if fewest > 1 else []
    return {
        str(k): {
            "pass": with_interval(partial(sampling.fast_p_at_k, p=0, k=k), samples),
            "fast_1": with_interval(partial(sampling.fast_p_at_k, p=_RANKED_BY, k=k), samples),
        }
        for k in ks
    }


def _after(statistic: Callable, mode: Callable) -> Callable:
    return lambda speedups: statistic(mode(speedups))


def with_interval(statistic: Callable, values: list) -> dict[str, float | None]:
    """A figure and its bootstrap interval; None where it is not defined."""
    low, high = bootstrap(statistic, values) or (None, None)
    return {"value": statistic(values), "low": low, "high": high}


_HEADERS = (
    "rank", "run", "device", "solved", "fast_0.5", "fast_1", "fast_1.5", "fast_2", "geo. mean", "fallback",
    "median", "fallback", "total runtime", "rejected", "unfiltered fast_1",
)  # fmt: skip


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    fast, mean, middle = row["fast_p"], row["geometric_mean"], row["median"]
    return (
        str(row["rank"]),
        row["run"],
        row["device"] or "unknown",
        f"{row['solved']}/{row['problems']}",
        _value(fast["0.5"], ".3f"),
        f"{_value(fast['1'], '.3f')} {_range(fast['1'], '.2f')}",
        _value(fast["1.5"], ".3f"),
        _value(fast["2"], ".3f"),
        f"{_value(mean['standard'], '.2f')} {_range(mean['standard'], '.2f')}",
        f"{_value(mean['fallback'], '.2f')} {_range(mean['fallback'], '.2f')}",
        _value(middle["standard"], ".2f"),
        _value(middle["fallback"], ".2f"),
        f"{_value(row['total_runtime'], '.2f')} {_range(row['total_runtime'], '.2f')}",
        str(row["statuses"].get("rejected", 0)),
        _value(row["unfiltered"]["fast_p"]["1"], ".3f"),
    )


def _value(figure: dict[str, float | None], form: str) -> str:
    return "-" if figure["value"] is None else format(figure["value"], form)


def _range(figure: dict[str, float | None], form: str) -> str:
    return "" if figure["low"] is None else f"[{figure['low']:{form}}, {figure['high']:{form}}]"
