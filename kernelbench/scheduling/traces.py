"""Traces of a run: what was done on each problem, unit by unit, from its log, its trajectory and its model calls."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from harness.json_text import parse_json
from harness.record.fields import PROBLEM
from harness.record.shape import shape
from harness.result import Result
from kernelbench.metrics.scheduling import Attempt, Trace, Unit, attempt_of, sol_ms_of
from kernelbench.metrics.workloads import together
from kernelbench.run import Run, RunError
from kernelbench.run_files.log import lines_if_any
from kernelbench.run_files.sources import ASKED, trajectory_of

CALLS = "calls.jsonl"
_CALL = shape({**ASKED, "problem!": PROBLEM})
_TAGS = ("unit", "iteration")  # of attempts and calls; the first that is there

Line = dict[str, Any]  # of calls.jsonl or trajectory.jsonl


def of_run(run: Run, problems: Sequence[str]) -> list[Trace]:
    """Return a trace for each of ``problems``; of one without attempts it is empty."""
    return traces(run.measured_first(), trajectory_of(run), calls_of(run), problems)


def calls_of(run: Run) -> list[Line]:
    """Return the model calls of a run; none where its solver asked no model, or is a program of its own.

    Raises RunError where a line is none.
    """
    path = run.path / CALLS
    calls = []
    for number, line in enumerate(lines_if_any(path), start=1):
        try:
            calls.append(parse_json(line))
            _CALL.check(calls[-1])
        except ValueError as error:
            raise RunError(f"{path}, line {number}, is no model call ({error}); put back what it was") from None
    return calls


def traces(
    results: Iterable[Result],
    attempts: Iterable[Line],
    calls: Iterable[Line],
    problems: Sequence[str],
    known: Callable[[Result], Attempt] = attempt_of,
) -> list[Trace]:
    """Return a trace for each of ``problems``.

    An attempt is the first measurement of its sample: what a policy would have been told. Units are those that
    the schedule granted (tag ``unit``), else iterations (tag ``iteration``), else each attempt is one.
    A call counts in the unit of its tag. Without tags the calls since the attempt before count in the
    attempt's unit, and calls after the last attempt in the last unit. Cost is unknown without a trajectory.
    ``known`` says what a result is known to be.
    """
    measured = _by_problem(together(result for result in results if result.confirms is None), lambda r: r.problem)
    tried, asked = (_by_problem(lines, lambda line: line["problem"]) for lines in (attempts, calls))
    return [_trace(problem, measured[problem], tried[problem], asked[problem], known) for problem in problems]


def _by_problem(items: Iterable, of) -> dict[str, list]:
    found = defaultdict(list)
    for item in items:
        found[of(item)].append(item)
    return found


def _trace(problem: str, results: list[Result], tried: list[Line], asked: list[Line], known) -> Trace:
    results = sorted(results, key=lambda result: result.solution["sample"])
    by_sample = {result.solution["sample"]: known(result) for result in results}
    tried = sorted(tried, key=lambda line: line["sample"])
    if not tried and asked:  # none of the answers held a solution, and they cost as much
        costs = (_sum(map(_tokens, asked)), _sum(line.get("cost_usd") for line in asked))
        return Trace(problem, sol_ms_of(results), (Unit(tuple(by_sample.values()), *costs),))
    if not tried:
        return Trace(problem, sol_ms_of(results), tuple(Unit((one,), None, None) for one in by_sample.values()))
    keys = [_unit_of(line) for line in tried]
    done: dict[Any, list[Attempt]] = {}
    for key, line in zip(keys, tried):
        done.setdefault(key, []).append(by_sample.get(line["sample"], Attempt()))
    costs = _costs(list(done), keys, tried, asked)
    return Trace(problem, sol_ms_of(results), tuple(Unit(tuple(of), *costs[key]) for key, of in done.items()))


def _unit_of(line: Line) -> int | None:
    """Return the number of an attempt's or a call's unit; of an attempt without tags its own, of such a call None."""
    tags = line.get("tags") or {}
    return next((tags[name] for name in _TAGS if name in tags), line.get("sample"))


def _costs(units: list, keys: list, tried: list[Line], asked: list[Line]) -> dict[Any, tuple]:
    """Return tokens and USD of each unit, None where they are not known."""
    spent, known = defaultdict(list), set(units)
    if asked and all(set(line.get("tags") or {}) & set(_TAGS) for line in asked):
        for line in asked:
            key = _unit_of(line)
            spent[key if key in known else units[0] if key < units[0] else units[-1]].append(line)
    else:
        for key, line in zip(keys, tried):
            spent[key].append(line)
        if asked:
            spent[units[-1]].append(_rest(tried, asked))
    return {key: (_sum(map(_tokens, spent[key])), _sum(line.get("cost_usd") for line in spent[key])) for key in units}


def _rest(tried: list[Line], asked: list[Line]) -> Line:
    """Return the cost of the calls that are in no attempt's line: those after the last attempt."""
    tokens = {}
    for side in ("prompt", "completion"):
        both = [_sum((line.get("tokens") or {}).get(side) for line in lines) for lines in (asked, tried)]
        tokens[side] = None if None in both else max(0, both[0] - both[1])
    both = [_sum(line.get("cost_usd") for line in lines) for lines in (asked, tried)]
    return {"tokens": tokens, "cost_usd": None if None in both else max(0.0, both[0] - both[1])}


def _tokens(line: Line) -> float | None:
    return _sum((line.get("tokens") or {}).get(side) for side in ("prompt", "completion"))


def _sum(values: Iterable[float | None]) -> float | None:
    """Return the sum in any order of ``values``, as calls end in any; None where one is not known."""
    values = list(values)
    return None if None in values else math.fsum(values)
