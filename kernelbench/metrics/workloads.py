"""A solution on several workloads of its problem: which ones, and what they say together. Pure functions.

A solution counts only if it is right on all of them. Its speedup is the ratio of total
runtimes (``metrics.ratio_of_total_runtimes``); the geometric mean, in which a short
workload weighs as much as a long one, stands beside it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.problem.module import ProblemFile
from harness.result import Result
from kernelbench.metrics import fast_p, settled
from kernelbench.metrics.throughput import gflops_of_totals

ALL = "all"
UNKNOWN = "unknown"  # the workload of a result of another tool that does not say which sizes it ran


@dataclass
class CombinedResult(Result):
    """The results of one solution on several workloads as one; ``parts`` are those that are timed, in order.

    ``over`` is the baseline of its speedup where the parts' own are not all over that one; else None.
    """

    parts: list[Result] = field(default_factory=list)
    over: str | None = None


def are_several(wanted: str | None) -> bool:
    """Return whether ``--workload`` may name more than one."""
    return wanted is not None and (wanted == ALL or "," in wanted)


def workloads_of(problem: ProblemFile, wanted: str | None, device_type: str) -> list[str]:
    """The workloads that ``wanted`` names, after commas, or ``all``; without it the default for the device.

    Raises ProblemError where the problem lacks one, with those that it has.
    """
    if wanted == ALL:
        return problem.workload_names()
    names = [name.strip() for name in wanted.split(",")] if wanted else [None]
    return list(dict.fromkeys(problem.workload_name(name, device_type) for name in names))


def to_config(problems: Iterable[ProblemFile], wanted: str | None) -> dict[str, dict[str, list[str]]]:
    """Return what a run keeps of them: the names of ``all``, so that it is read without its problems.

    Raises ProblemError where a problem's names are not known.
    """
    return {"workloads": {str(problem.id): problem.workload_names() for problem in problems}} if wanted == ALL else {}


def of_run(config: dict[str, Any], results: Iterable[Result]) -> dict[str, set[str]]:
    """Return the workloads of each problem that has results, by a run's configuration; of none where it is of one."""
    # imported results have one workload each, and in earlier versions a configuration that names all of them
    wanted = config.get("workload") if "track" in config else None
    if not are_several(wanted):
        return {}
    found: dict[str, set[str]] = {}
    for result in results:
        names = {result.workload.get("name", "")} if wanted == ALL else {name.strip() for name in wanted.split(",")}
        found.setdefault(result.problem, set()).update(names)
    # of a run for ``all`` that an earlier version made, results are all that is known
    return found | {problem: set(names) for problem, names in (config.get("workloads") or {}).items()}


def together(results: Iterable[Result]) -> list[Result]:
    """One result a solution: its own where it has one workload, else the ``Together`` of all. The order stays."""
    parts: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        parts.setdefault((result.problem, result.solution["name"]), []).append(result)
    return [same[0] if len(same) == 1 else _merged(same) for same in parts.values()]


def _merged(parts: list[Result]) -> CombinedResult:
    """Times are sums over the workloads that are timed; the status is the first of all that is not ``ok``."""
    every, parts = parts, [part for part in parts if part.workload.get("timed", True)] or parts
    failed = next((part for part in every if not part.correct), None)
    told, over = failed or parts[-1], _over(parts)
    fields = {f.name: getattr(told, f.name) for f in dataclasses.fields(Result)}
    fields |= {
        "workload": {"name": ", ".join(part.workload.get("name", "?") for part in every)},
        "message": f"{failed.workload.get('name', '?')}: {failed.message}" if failed else "",
        "timing": _total([part.timing for part in parts]),
        "baselines": _baselines(parts),
        "speedup": _speedup(parts, over),
        "seconds": sum(part.seconds for part in every),
        "sol": _speed_of_light(parts),
        "gflops": gflops_of_totals(parts) if not failed else None,
        "gbps": None,
        "stages_s": _stages(every),
    }
    return CombinedResult(**fields, parts=parts, over=over or None)


def _stages(parts: Sequence[Result]) -> dict[str, float]:
    """Return the seconds of each stage, in the order in which stages first appear."""
    total: dict[str, float] = {}
    for part in parts:
        for stage, seconds in part.stages_s.items():
            total[stage] = total.get(stage, 0.0) + seconds
    return total


def led_by(result: Result, baseline: str) -> Result:
    """Return a result with its speedup over one of its baselines, as if that had been asked for first."""
    if (fast_p.baseline_of(result) or ("",))[0] == baseline:
        return result
    timing = result.baselines[baseline]
    over = {"over": baseline} if isinstance(result, CombinedResult) else {}
    return dataclasses.replace(
        result, baselines={baseline: timing, **result.baselines}, speedup=timing.get("speedup"), **over
    )


def geometric_mean(result: Result) -> float | None:
    """Return that of the settled speedups on each workload; None for one workload, or where one has none."""
    if not isinstance(result, CombinedResult) or result.speedup is None:
        return None
    speedups = [settled.settled_speedup(part, result.over) if fast_p.counts(part) else None for part in result.parts]
    return fast_p.geometric_mean(speedups) if None not in speedups else None


def why_incomparable(before: Result, after: Result) -> str:
    """Return why speedups of two results are of different problems or sizes, as a sentence part; '' if they are not.

    Sizes that a record does not name are unknown, and compare with nothing.
    """
    digests = {before.problem_sha256, after.problem_sha256}
    if len(digests) == 2 and all(digests):
        return "its problem has changed"
    sizes = [
        {part.workload.get("name") or UNKNOWN: part.workload.get("sizes") or {} for part in _parts(result)}
        for result in (before, after)
    ]
    if unknown := [when for when, named in zip(("before", "after"), sizes) if UNKNOWN in named]:
        return f"sizes unknown {' and '.join(unknown)}"
    if sizes[0].keys() != sizes[1].keys():
        return f"different sizes: {', '.join(sizes[0])} before, {', '.join(sizes[1])} after"
    for name, of_before in sizes[0].items():
        if of_before and sizes[1][name] and of_before != sizes[1][name]:
            return f"different sizes: {name} is {_listed(of_before)} before, {_listed(sizes[1][name])} after"
    return ""


def _parts(result: Result) -> list[Result]:
    return getattr(result, "parts", None) or [result]


def _listed(sizes: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in sizes.items())


def _timed(parts: Sequence[Result]) -> bool:
    return all(part.speedup and fast_p.typical_ms(part.timing) for part in parts)


def _runtimes(part: Result) -> tuple[float, float]:
    """(baseline, solution) in ms; the baseline is the one behind the speedup."""
    ours = fast_p.typical_ms(part.timing)
    return ours * part.speedup, ours


def _over(parts: Sequence[Result]) -> str | None:
    """Return None where all speedups are over one baseline; else the first baseline that ran on all, or ''."""
    if len({(fast_p.baseline_of(part) or ("",))[0] for part in parts}) == 1:
        return None
    return next(iter(_baselines(parts)), "")


def _speedup(parts: Sequence[Result], over: str | None) -> float | None:
    if not _timed(parts):
        return None
    if over is not None:
        return _baselines(parts)[over].get("speedup") if over else None
    return fast_p.ratio_of_total_runtimes(*zip(*map(_runtimes, parts)))


def _total(timings: Sequence[dict[str, Any] | None]) -> dict[str, Any] | None:
    """None where one of them was not timed."""
    times = [fast_p.typical_ms(timing) for timing in timings]
    return None if None in times else {"median_ms": sum(times)}


def _baselines(parts: Sequence[Result]) -> dict[str, dict[str, Any]]:
    """Return those that ran on every workload, with the sum of their times, and the ratio to the solution's."""
    ours, found = _total([part.timing for part in parts]), {}
    for name in parts[0].baselines:
        if total := _total([part.baselines.get(name) for part in parts]):
            confirmed = ours and not any(part.unconfirmed and part.speedup is None for part in parts)
            ratio = {"speedup": total["median_ms"] / ours["median_ms"]} if confirmed else {}
            found[name] = {**total, **ratio, "paired": all(p.baselines[name].get("paired", True) for p in parts)}
    return found


def _speed_of_light(parts: Sequence[Result]) -> dict[str, Any] | None:
    """The sum of the bounds over the sum of the times."""
    bounds = [(part.sol or {}).get("t_sol_ms") for part in parts]
    ours = _total([part.timing for part in parts])
    if None in bounds or not ours:
        return None
    fp16 = [part.sol.get("t_sol_fp16_ms") for part in parts]
    under_fp16 = {} if None in fp16 else {"t_sol_fp16_ms": sum(fp16)}
    return {"t_sol_ms": sum(bounds), **under_fp16, "percent_of_sol": 100 * sum(bounds) / ours["median_ms"]}
