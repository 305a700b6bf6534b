"""A leaderboard over runs: models, agents or GPUs side by side, on the same problems.

A pure function of the runs' logs. Figures are of settled speedups, which claim no more than
their verdicts; ``raw`` holds those of point estimates, and ``fast_p`` is KernelBench's. Every
figure comes with its bootstrap interval; runs whose difference could be chance share a rank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from harness.result import Result
from kernelbench import suite
from kernelbench.metrics import at_k, fast_p, held_out, outcomes, settled, winners
from kernelbench.metrics.intervals import LEVEL, bootstrap
from kernelbench.metrics.scores import Scores, figure, scores
from kernelbench.metrics.workloads import CombinedResult
from kernelbench.review.labels import band_of, of_run
from kernelbench.run import MOST_PROBLEMS, Run, RunError
from kernelbench.views import curves, tables
from kernelbench.views.outcome_tables import outcome_tables

ALL = "all"
_RANKED_BY = 1.0  # settled fast_1
_KS = (1, 2, 5, 10, 20, 50, 100)
_MOST_LEVELS = 20  # which have rows of their own: suites have three or five
_MOST_WORKLOADS = 100  # the same of names of workloads: a suite has a handful, TritonBench's problems some twenty
_MOST_NAMED = 3  # problems whose modules differ
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
    bands = [band_of(of_run(run)) for run in runs]
    entries = [_Entry(run, name, band, run.solutions(), problems) for run, name, band in zip(runs, names, bands)]
    ranked = {name: _ranked(entries, members) for name, members in groups.items()}
    for workload, members in _workloads(problems, runs).items():
        of_it = [
            _Entry(run, name, band, _of_workload(run, workload), problems)
            for run, name, band in zip(runs, names, bands)
        ]
        ranked[f"workload {workload}"] = _ranked(of_it, members)
    first, *others = entries
    return {
        "problems": len(problems),
        "ranked_by": f"settled fast_{_RANKED_BY:g}",
        "differing": differing(runs),
        "groups": ranked,
        "curves": {entry.name: curves.of_run(entry.results, entry.scores, entry.band_of) for entry in entries},
        "signed_areas": [
            {"run": entry.name, "over": first.name, **curves.area(entry.scores, first.scores)} for entry in others
        ],
    }


def differing(runs: Sequence[Run]) -> list[str]:
    """Return the conditions in which runs differ, of which their speedups are, and problems of which a module does."""
    found = [key for key in _CONDITIONS if len({run.config.get(key) for run in runs}) > 1]
    over = [{known[0] for result in run.results if (known := fast_p.baseline_of(result))} for run in runs]
    found += ["baseline"] * any(one != other for one in over for other in over if one and other)
    digests = {(r.problem, r.problem_sha256) for run in runs for r in run.latest() if r.problem_sha256}
    several = sorted(problem for problem, count in Counter(of for of, _ in digests).items() if count > 1)
    names = [f"the module of {problem}" for problem in several[:_MOST_NAMED]]
    return found + names + [f"those of {len(several) - _MOST_NAMED} more"] * (len(several) > _MOST_NAMED)


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
    if over := [(row["run"], name, f) for row in data["groups"][ALL] for name, f in row["by_baseline"].items()]:
        headers = ("run", "baseline", "fast_1", "raw fast_1", "geo. mean", "total runtime")
        parts.append(tables.table(headers, [(run, name, *_baseline_cells(f)) for run, name, f in over], form))
    if labelled := outcome_tables(((row["run"], row) for row in data["groups"][ALL]), form):
        parts.append(labelled)
    texts = [
        f"{data['problems']} problem(s) count, solved or not. [low, high]: {LEVEL:.0%} interval; runs share a rank "
        f"where that of their difference in {data['ranked_by']} holds 0.",
        "fast_p is settled: the share of problems with a correct solution whose interval lies above p. Means count a "
        "tie as 1 and leave out unstable speedups. Fallback counts failures and regressions as 1. Total runtime is "
        "the baseline's over the solutions'. Raw fast_1 takes point estimates, as KernelBench does. Unfiltered counts "
        "rejected results that were timed as correct.",
    ]
    texts += [
        f"{row['run']}: {told}" for row in data["groups"][ALL] if (told := winners.bias_text(row["confirmed_best"]))
    ]
    for area in data["signed_areas"]:
        texts.append(
            f"Signed area between the Fast-p curves of {area['run']} and {area['over']}: "
            f"{_value(area, '+.3f')} {_range(area, '+.3f')}"
            + (f"; {area['left_out']} problem(s) without a settled speedup left out" if area["left_out"] else "")
        )
    if data["differing"]:
        texts.append(
            f"The runs differ in {', '.join(data['differing'])}: each speedup is against the baseline of its own run."
        )
    return "\n\n".join((*parts, *(tables.paragraph(text, form) for text in texts)))


def counted(runs: Sequence[Run], selector: str | None = None) -> list[str]:
    """The problems that count, in order; raises what ``standings`` raises."""
    if selector:
        return _find(selector, runs[0])
    found: dict[str, None] = {}
    for run in runs:
        chosen = run.config.get("problems")
        found |= dict.fromkeys(_find(chosen, run) if chosen else ())
        found |= dict.fromkeys(result.problem for result in run.latest())
        if len(found) > MOST_PROBLEMS:  # named by a folder that a run brings
            raise RunError(f"{run.path} counts more than {MOST_PROBLEMS:,} problems: name them with --problems")
    return sorted(found, key=_order)


def _find(selector: str, run: Run) -> list[str]:
    folder = run.config.get("problem_dir")
    return [str(problem) for problem in suite.ids(selector, Path(folder) if folder else None)]


def _order(problem: str) -> tuple[int, ...]:
    return tuple(map(int, problem.split("/")))


def _parts(problems: list[str], runs: Sequence[Run]) -> dict[str, list[str]]:
    """Levels, and subsets of our own suite; a part that is all of it, or nothing, is none."""
    levels = {_order(problem)[0] for problem in problems}
    levels = levels if len(levels) <= _MOST_LEVELS else set()
    parts = {f"level{level}": [p for p in problems if _order(p)[0] == level] for level in levels}
    if not any(run.config.get("problem_dir") for run in runs):
        for name in (*suite.SUBSETS, suite.SOUND):
            members = _members(name)
            parts[name] = [p for p in problems if p in members]
    return {name: members for name, members in sorted(parts.items()) if members and len(members) < len(problems)}


def _workloads(problems: list[str], runs: Sequence[Run]) -> dict[str, list[str]]:
    """The workloads of runs that have several a solution, and the problems that were evaluated on them."""
    if not any(isinstance(result, CombinedResult) for run in runs for result in run.solutions()):
        return {}
    found: dict[str, set[str]] = {}
    for run in runs:
        for result in run.whole():
            found.setdefault(result.workload.get("name", "?"), set()).add(result.problem)
    if len(found) > _MOST_WORKLOADS:
        return {}
    return {name: [p for p in problems if p in members] for name, members in found.items() if members & set(problems)}


def _of_workload(run: Run, workload: str) -> list[Result]:
    """Return the results on one workload."""
    return [result for result in run.whole() if result.workload.get("name") == workload]


def _members(subset: str) -> set[str]:
    try:
        return {str(file.id) for file in suite.find(subset)}
    except suite.SelectorError:  # nothing is known to be sound before an audit
        return set()


def labels(runs: Sequence[Run]) -> list[str]:
    """The names of the runs' folders, with their whole paths where two are the same."""
    own = [run.path.resolve().name for run in runs]
    names = Counter(own)
    named = [name if names[name] == 1 else str(run.path) for name, run in zip(own, runs)]
    twice = Counter(named)
    return [name if twice[name] == 1 else str(run.path.absolute()) for name, run in zip(named, runs)]


class _Entry:
    """One run among those that are ranked: its results on the problems that count, and their scores."""

    def __init__(self, run: Run, name: str, band_of: outcomes.BandOf, found: list[Result], problems: list[str]):
        counted = set(problems)
        self.run, self.name, self.band_of, self.problems = run, name, band_of, problems
        self.results = [result for result in found if result.problem in counted]
        self.scores = scores(self.results, problems)
        rejected = any(result.status.value == "rejected" for result in self.results)
        self.unfiltered = scores(self.results, problems, unfiltered=True) if rejected else self.scores
        names = dict.fromkeys(name for result in self.results for name in result.baselines)
        self.by_baseline = {n: scores(self.results, problems, baseline=n) for n in names} if len(names) > 1 else {}
        samples = list(at_k.samples_of_each_problem(self.results, problems).values())
        thresholds = {"pass": 0.0, "fast_1": _RANKED_BY}
        self.passes = {name: dict(zip(problems, at_k.passes(samples, p))) for name, p in thresholds.items()}


def _ranked(entries: Sequence[_Entry], problems: list[str]) -> list[dict[str, Any]]:
    """Rows by falling settled fast_1, then mean; a row whose difference from the rank's first holds 0 shares it."""
    rows = [(_row(entry, problems), entry.scores.at(problems)) for entry in entries]
    rows.sort(key=lambda item: (-item[0]["settled_fast_p"]["1"]["value"], -_number(item[0]["geometric_mean"])))
    rank, first = 1, rows[0][1]
    for place, (row, found) in enumerate(rows, start=1):
        difference = bootstrap(_difference, first.drawn_beats(_RANKED_BY), found.drawn_beats(_RANKED_BY))
        if difference.low > 0:
            rank, first = place, found
        row["rank"] = rank
    return [row for row, _ in rows]


def _difference(hits: np.ndarray, others: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return fast_p.share(hits, weights) - fast_p.share(others, weights)


def _number(mean: dict[str, dict[str, float | None]]) -> float:
    return mean["fallback"]["value"] or 0.0


def _row(entry: _Entry, problems: list[str]) -> dict[str, Any]:
    wanted = set(problems)
    results = [result for result in entry.results if result.problem in wanted]
    found, unfiltered = entry.scores.at(problems), entry.unfiltered.at(problems)
    return {
        "rank": None,
        "run": entry.name,
        **{key: entry.run.config.get(key) for key in _CONDITIONS},
        "problems": len(problems),
        "solved": int(found.solved.sum()),
        "results": len(results),
        "statuses": dict(Counter(result.status.value for result in results)),
        "verdicts": dict(Counter(verdict for result in results if (verdict := settled.verdict(result)))),
        **of_scores(found),
        "raw": raw_of_scores(found),
        "unfiltered": of_scores(unfiltered),
        "bands": outcomes.bands(results, entry.band_of),
        "filterings": outcomes.figures(results, problems, entry.band_of),
        "held_out": held_out.counts(results),
        "by_baseline": {name: of_scores(those.at(problems)) for name, those in entry.by_baseline.items()},
        "sol_p": None if np.isnan(found.percent_of_sol).all() else _sol_p(found.percent_of_sol),
        "samples": _at_k({name: [of[problem] for problem in problems] for name, of in entry.passes.items()}),
        "confirmed_best": winners.bias(results),
    }


def of_scores(found: Scores) -> dict[str, Any]:
    """Return settled fast_p, KernelBench's fast_p, means, medians and the ratio of total runtimes, with intervals."""
    modes = {"standard": lambda s: s, "fallback": fast_p.fallback}
    over = lambda statistic: {  # noqa: E731
        name: figure(statistic, mode(found.settled), drawn=[mode(found.drawn_settled)]) for name, mode in modes.items()
    }
    drawn_ms = (found.baseline_ms, found.baseline_ms / found.drawn_settled)
    return {
        "settled_fast_p": {
            f"{p:g}": figure(fast_p.share, found.beats(p), drawn=[found.drawn_beats(p)]) for p in fast_p.THRESHOLDS
        },
        "fast_p": {f"{p:g}": figure(fast_p.share, found.raw_beats(p)) for p in fast_p.THRESHOLDS},
        "geometric_mean": over(fast_p.geometric_mean),
        "median": over(fast_p.median),
        "total_runtime": figure(
            fast_p.ratio_of_total_runtimes, found.baseline_ms, found.solution_ms, drawn=drawn_ms
        ),
    }


def raw_of_scores(found: Scores) -> dict[str, Any]:
    """Return the means, the median and the ratio of total runtimes of point estimates, with intervals."""
    return {
        "geometric_mean": figure(fast_p.geometric_mean, found.raw),
        "median": figure(fast_p.median, found.raw),
        "total_runtime": figure(fast_p.ratio_of_total_runtimes, found.baseline_ms, found.baseline_ms / found.raw),
    }


def _sol_p(percents: np.ndarray) -> dict[str, Any]:
    return {f"{p:g}": figure(partial(fast_p.sol_p, p=p), percents) for p in fast_p.SOL_THRESHOLDS}


def _at_k(counts: dict[str, list[tuple[int, int]]]) -> dict[str, Any]:
    """Return pass@k and settled fast_1@k for every k that each problem with samples has enough of."""
    fewest = min((n for n, _ in counts["pass"] if n), default=0)
    ks = [k for k in _KS if k <= fewest] if fewest > 1 else []
    return {
        str(k): {name: figure(fast_p.share, at_k.chances_at_k(of, k)) for name, of in counts.items()} for k in ks
    }


_HEADERS = (
    "rank", "run", "device", "solved", "fast_0.5", "fast_1", "fast_1.5", "fast_2", "geo. mean", "fallback",
    "median", "fallback", "total runtime", "unstable", "rejected", "raw fast_1", "unfiltered fast_1",
)  # fmt: skip


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    fast, mean, middle = row["settled_fast_p"], row["geometric_mean"], row["median"]
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
        str(row["verdicts"].get(settled.UNSTABLE, 0)),
        str(row["statuses"].get("rejected", 0)),
        _value(row["fast_p"]["1"], ".3f"),
        _value(row["unfiltered"]["settled_fast_p"]["1"], ".3f"),
    )


def _baseline_cells(figures: dict[str, Any]) -> tuple[str, ...]:
    shown = (figures["settled_fast_p"]["1"], ".3f"), (figures["fast_p"]["1"], ".3f")
    means = (figures["geometric_mean"]["standard"], ".2f"), (figures["total_runtime"], ".2f")
    return tuple(f"{_value(value, form)} {_range(value, '.2f')}" for value, form in (*shown, *means))


def _value(figure: dict[str, float | None], form: str) -> str:
    return "-" if figure["value"] is None else format(figure["value"], form)


def _range(figure: dict[str, float | None], form: str) -> str:
    return "" if figure["low"] is None else f"[{figure['low']:{form}}, {figure['high']:{form}}]"
