"""Thresholds on results: what ``kb check`` decides. The decision is a pure function of the results log."""

from __future__ import annotations

import dataclasses
import importlib.metadata
from dataclasses import dataclass, field
from pathlib import Path

from harness.build import BuildContext, CacheError, build
from harness.build.artefact import ToolchainError
from harness.host import default_memory_bytes
from harness.process import ForkServer
from harness.result import CandidateFailure, Result, Status
from harness.solution import Solution
from kernelbench.evaluation import Outcome
from kernelbench.intervals import ratio_interval
from kernelbench.run import Run


@dataclass(frozen=True)
class Limits:
    """What every solution must hold to; None is no limit. ``max_regression`` is a share, as in 0.05."""

    require: frozenset[Status] = frozenset({Status.OK})
    min_speedup: float | None = None
    max_regression: float | None = None


@dataclass
class Check:
    """One solution against the limits: ``broken`` says which do not hold, ``unchecked`` what could not be checked.

    ``evaluable`` is False for one that this device cannot run; ``built`` says that
    it was at least built. Neither result nor build is the environment's fault.
    """

    problem: str
    name: str
    result: Result | None = None
    broken: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    evaluable: bool = True
    built: bool = False

    @property
    def checked(self) -> bool:
        return self.result is not None or self.built


def check_outcome(outcome: Outcome, limits: Limits, against: Run | None, arch: str) -> list[Check]:
    """A check for each solution evaluated; what cannot run here is built, for ``arch`` as in 9.0, if it can be."""
    checks = [check_result(result, limits, against) for result in outcome.run.latest()]
    for skipped in outcome.skipped:
        solution = skipped.solution
        check = Check(str(solution.problem), solution.name, unchecked=[skipped.reason])
        check.evaluable = solution.runs_on(outcome.device["type"])
        checks.append(check)
    unfit = [s.solution for s in outcome.skipped if not s.solution.runs_on(outcome.device["type"])]
    if unfit:
        reports = {(str(s.problem), s.name): report for s, report in zip(unfit, build_only(unfit, arch))}
        checks = [_with_build(check, reports.get((check.problem, check.name))) for check in checks]
    return checks


def check_result(result: Result, limits: Limits, against: Run | None = None) -> Check:
    """The limits on one result. A regression exceeds its limit, and the noise of the samples cannot explain it."""
    check = Check(result.problem, result.solution["name"], result)
    if result.status not in limits.require:
        allowed = " or ".join(sorted(status.value for status in limits.require))
        check.broken.append(f"{result.status}, and must be {allowed}: {result.message.strip()}")
    if limits.min_speedup is not None and result.correct and result.speedup < limits.min_speedup:
        check.broken.append(f"speedup {result.speedup:.3f}x is under {limits.min_speedup:g}x")
    if limits.max_regression is not None and result.correct:
        before = _before(result, against)
        if why := _incomparable(result, before):
            check.unchecked.append(f"no regression looked for: {why}")
        else:
            check.broken += _regression(result, before, limits.max_regression)
    return check


def _regression(result: Result, before: Result, limit: float) -> list[str]:
    ratio, interval = result.speedup / before.speedup, ratio_interval(result, before)
    if ratio >= 1 - limit or (interval and interval.high >= 1):
        return []
    sure = f", interval {interval.low - 1:+.1%} to {interval.high - 1:+.1%}" if interval else ""
    return [
        f"speedup fell from {before.speedup:.3f}x to {result.speedup:.3f}x: {ratio - 1:+.1%}{sure}; "
        f"at most -{limit:.1%} is allowed"
    ]


def _before(result: Result, against: Run) -> Result | None:
    same = [r for r in against.latest() if (r.problem, r.solution["name"]) == (result.problem, result.solution["name"])]
    on_it = [r for r in same if r.workload.get("name") == result.workload.get("name")]
    return next(iter(on_it or same), None)


def _incomparable(result: Result, before: Result | None) -> str:
    """Why there is no regression to look for; '' where there is."""
    if before is None:
        return "it is new"
    if not before.correct or not before.speedup:
        return f"it was {before.status} before"
    conditions = {
        "device": lambda r: r.device.get("name"),
        "workload": lambda r: r.workload.get("name"),
        "precision": lambda r: r.precision,
    }
    for name, of in conditions.items():
        if of(before) != of(result):
            return f"{name} was {of(before)} before and is {of(result)}"
    return ""


def build_only(solutions: list[Solution], arch: str) -> list[tuple[bool | None, str]]:
    """For each solution whether it builds without its device (None: not tried), and what there is to say."""
    torch_version = importlib.metadata.version("torch")
    with ForkServer() as server:
        context = BuildContext(server, arch, torch_version, timeout_s=900, memory_bytes=default_memory_bytes())
        return [_build(solution, context) for solution in solutions]


def _build(solution: Solution, context: BuildContext) -> tuple[bool | None, str]:
    if solution.kind == "py" and solution.language == "cuda":
        # its import would build against the PyTorch that is here, which may be one without CUDA
        return _parse(solution)
    try:
        build(solution, context)
    except CandidateFailure as failure:
        return False, failure.message
    except (ToolchainError, CacheError) as error:
        return None, f"not built: {error}"
    return True, "built only" if solution.kind == "cu" else "only its syntax was checked"


def _parse(solution: Solution) -> tuple[bool, str]:
    try:
        compile(Path(solution.path).read_bytes(), solution.path.name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return False, f"{type(error).__name__}: {error}"
    return True, "only its syntax was checked"


def _with_build(check: Check, report: tuple[bool | None, str] | None) -> Check:
    if report is None:
        return check
    built, message = report
    if built is False:
        return dataclasses.replace(check, broken=[f"{Status.BUILD_ERROR}: {message}"], built=True)
    return dataclasses.replace(check, unchecked=[f"{check.unchecked[0]}; {message}"], built=bool(built))


def missing(outcome: Outcome, against: Run | None) -> list[str]:
    """Solutions of the earlier run that are not there any more: nothing to fail, but something to know."""
    if against is None:
        return []
    now = {(r.problem, r.solution["name"]) for r in outcome.run.latest()}
    now |= {(str(s.solution.problem), s.solution.name) for s in outcome.skipped}
    return [
        f"{r.problem} {r.solution['name']} is in {against.path}, but not here"
        for r in against.latest() if (r.problem, r.solution["name"]) not in now
    ]  # fmt: skip
