"""Thresholds on results: what ``kb check`` decides. Pure functions of the results log and of what was found.

A limit on speed is held against the interval of the speedup, never against the point
estimate alone. Where the records do not decide a limit (an unstable speedup, a baseline
that could not be timed), the check is undecided: neither passed nor failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from harness.result import Result, Status
from harness.solution.discover import Solution, readable
from kernelbench.evaluation.directory import Outcome
from kernelbench.gate.build_check import Build, NotMade
from kernelbench.metrics import fast_p, held_out, settled, workloads
from kernelbench.metrics.intervals import Interval, ratio_interval
from kernelbench.run import Run

HOLDS, FAILS, UNDECIDED = 0, 1, 3  # exit statuses
MEASUREMENTS = 3  # of an unstable speedup, in all

Case = tuple[str, str, str]  # problem, name of the solution, workload


@dataclass(frozen=True)
class Limits:
    """Limits that every solution must hold to; None is no limit. ``max_regression`` is a share, as in 0.05."""

    require: frozenset[Status] = frozenset({Status.OK})
    min_speedup: float | None = None  # fails what is slower beyond doubt
    prove_speedup: float | None = None  # fails what is not faster beyond doubt
    max_regression: float | None = None

    @property
    def on_speed(self) -> bool:
        return (self.min_speedup, self.prove_speedup, self.max_regression) != (None, None, None)


@dataclass(frozen=True)
class Allowed:
    """Gaps in a directory of solutions that do not fail the gate."""

    unmapped: bool = False  # files that map to no problem
    missing: bool = False  # selected problems without a solution
    removed: bool = False  # solutions of the compared run that are gone


@dataclass
class Check:
    """One solution, or one gap in the directory, against the limits.

    ``broken`` lists the limits that do not hold, ``undecided`` those that this machine
    should have decided and could not, ``unchecked`` what there is no way to check here.
    ``built`` says of a solution without a result that it was at least built.
    """

    problem: str
    name: str
    result: Result | None = None
    broken: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    built: bool = False

    @property
    def checked(self) -> bool:
        return self.result is not None or self.built

    @property
    def status(self) -> int:
        return FAILS if self.broken else UNDECIDED if self.undecided else HOLDS


def exit_status(checks: Iterable[Check]) -> int:
    """Return 1 if any check fails, else 3 if one is undecided or none could be made, else 0."""
    checks = list(checks)
    statuses = {check.status for check in checks}
    if FAILS in statuses:
        return FAILS
    return UNDECIDED if UNDECIDED in statuses or not any(check.checked for check in checks) else HOLDS


def check_outcome(
    outcome: Outcome, limits: Limits, against: Run | None = None, builds: Sequence[Build] = ()
) -> list[Check]:
    """Check each solution that was evaluated, or for which ``builds`` say whether it was built.

    Parameters
    ----------
    builds
        Reports of ``build_check.build_only`` for the solutions that ``for_elsewhere`` gives.
    """
    checks = [check_result(result, limits, against) for result in results_of(outcome)]
    reports = iter(builds)
    for skipped in outcome.skipped:
        check = Check(str(skipped.solution.problem), skipped.solution.name)
        if skipped.elsewhere:
            _add_build(check, skipped.reason, next(reports))
            if (solution := skipped.solution).by_comment:
                check.undecided.append(f"its comment, device={solution.device}, keeps it from being evaluated here")
            elif solution.device == "cpu":  # which a machine with a GPU has, too
                check.undecided.append("it is for a CPU: check it with --device cpu")
            if device := _left(solution, against):
                check.undecided.append(f"it was evaluated on {device} in {against.path}, and is for another device now")
        else:
            check.undecided.append(skipped.reason)
        checks.append(check)
    known = {(check.problem, check.name) for check in checks}
    checks += [Check(*one, undecided=["it has no result that counts"]) for one in sorted(outcome.found - known)]
    return checks


def _left(solution: Solution, against: Run | None) -> str:
    """Return the kind of device, another than it is for now, that the earlier run evaluated it on; '' for none."""
    before = against.latest_of(str(solution.problem), solution.name) if against else []
    return next((kind for r in before if (kind := r.device.get("type", "")) != solution.device), "")


def for_elsewhere(outcome: Outcome) -> list[Solution]:
    """Return the solutions that need another kind of device."""
    return [skipped.solution for skipped in outcome.skipped if skipped.elsewhere]


def results_of(outcome: Outcome) -> list[Result]:
    """Return the latest results of the solutions that are in the directory now: a resumed log may have others.

    One that was not evaluated now has none, or only that of another content.
    """
    skipped = {(str(one.solution.problem), one.solution.name) for one in outcome.skipped}
    return [r for r in outcome.run.latest() if (r.problem, r.solution["name"]) in outcome.found - skipped]


def check_result(result: Result, limits: Limits, against: Run | None = None) -> Check:
    """Hold one result against the limits."""
    check = Check(result.problem, result.solution["name"], result)
    if result.status not in limits.require:
        allowed = " or ".join(sorted(status.value for status in limits.require))
        check.broken.append(f"{result.status}, and must be {allowed}: {result.message.strip()}")
    if held_out.verdict(result) in _WRONG_ELSEWHERE:
        failed, verdict = held_out.failures(result), held_out.verdict(result)
        what = f"{failed[0]['status']}: {failed[0].get('message', '')}".removesuffix(": ")
        count = f"{len(failed)} of {len(result.held_out)} held-out workloads"
        check.broken.append(f"{verdict}: it fails on {count} ({what})")
    if result.correct and limits.on_speed:
        if why := _why_undecided(result):
            check.undecided.append(f"no limit on speed could be checked: {why}")
        else:
            check.broken += _too_slow(result, limits)
            if limits.max_regression is not None:
                _look_for_regression(check, result, limits.max_regression, against)
    return check


_WRONG_ELSEWHERE = (held_out.SPECIALISED, held_out.BROKEN)


def unstable_cases(results: Iterable[Result], limits: Limits) -> frozenset[Case]:
    """Return the cases whose speedup is unstable and under a limit: another measurement may decide them.

    Of one that is wrong on a held-out workload nothing is open, and another measurement would draw others.
    """
    if not limits.on_speed:
        return frozenset()
    return frozenset(
        (r.problem, r.solution["name"], r.workload.get("name"))
        for r in results
        if r.correct and settled.verdict(r) == settled.UNSTABLE and held_out.verdict(r) not in _WRONG_ELSEWHERE
    )


def _why_undecided(result: Result) -> str:
    """Return why no limit on the speedup can be decided; '' where it can."""
    if why := settled.why_no_speedup(result):
        return why
    if settled.verdict(result) == settled.UNSTABLE:
        return "its speedup is unstable, its times did not settle"
    return "" if settled.interval(result) else "its record has no interval of its speedup"


def _too_slow(result: Result, limits: Limits) -> list[str]:
    found, broken = settled.interval(result), []
    shown = f"speedup {settled.speedup_text(result)}, interval {_times(found)}"
    if limits.min_speedup is not None and found.high < limits.min_speedup:
        broken.append(f"{shown}, is under {limits.min_speedup:g}x")
    if limits.prove_speedup is not None and found.low <= limits.prove_speedup:
        broken.append(f"{shown}, is not proven to be over {limits.prove_speedup:g}x")
    return broken


def _look_for_regression(check: Check, result: Result, limit: float, against: Run) -> None:
    before = _before(result, against)
    if why := _incomparable(result, before):
        check.unchecked.append(f"no regression looked for: {why}")
    else:
        check.broken += _regression(result, before, limit)


def _regression(result: Result, before: Result, limit: float) -> list[str]:
    """A regression exceeds its limit, and the noise of the samples cannot explain it."""
    ratio, interval = result.speedup / before.speedup, ratio_interval(result, before)
    if ratio >= 1 - limit or (interval and interval.high >= 1):
        return []
    sure = f", interval {interval.low - 1:+.1%} to {interval.high - 1:+.1%}" if interval else ""
    return [
        f"speedup fell from {before.speedup:.3f}x to {result.speedup:.3f}x: {ratio - 1:+.1%}{sure}; "
        f"at most -{limit:.1%} is allowed"
    ]


def _before(result: Result, against: Run) -> Result | None:
    same = against.latest_of(result.problem, result.solution["name"])
    on_it = [r for r in same if r.workload.get("name") == result.workload.get("name")]
    return next(iter(on_it or same), None)


def _incomparable(result: Result, before: Result | None) -> str:
    """Return why there is no regression to look for; '' where there is."""
    if before is None:
        return "it is new"
    if not before.correct:
        return f"it was {before.status} before"
    if why := _why_undecided(before):
        return f"before, {why}"
    conditions = {
        "device": lambda r: r.device.get("name"),
        "number of threads": lambda r: r.device.get("threads"),
        "workload": lambda r: r.workload.get("name"),
        "precision": lambda r: r.precision,
        "baseline": lambda r: (fast_p.baseline_of(r) or ("none",))[0],
    }
    if before.versions.get("torch") and result.versions.get("torch"):  # a result of others may not say it
        conditions["PyTorch"] = lambda r: r.versions["torch"]
    for name, of in conditions.items():
        if of(before) != of(result):
            return f"{name} was {of(before)} before and is {of(result)}"
    return workloads.why_incomparable(before, result)


def _add_build(check: Check, reason: str, build: Build) -> None:
    built, message = build
    check.built = built is not None
    if built is False:
        check.broken.append(f"{Status.BUILD_ERROR}: {message}")
    elif isinstance(build, NotMade):
        check.undecided.append(f"{reason}; {message}")
    else:
        check.unchecked.append(f"{reason}; {message}")


def check_directory(outcome: Outcome, against: Run | None, allowed: Allowed) -> tuple[list[Check], list[str]]:
    """Check for gaps: a failed check for each that is not allowed, a note for each that is."""
    gaps = [
        *((Check("-", name, broken=[reason]), allowed.unmapped, "unmapped") for name, reason in _unmapped(outcome)),
        *((_no_solution(problem), allowed.missing, "missing") for problem in _unanswered(outcome)),
        *((_gone(result, against), allowed.removed, "removed") for result in _removed(outcome, against)),
    ]
    notes = [f"{check.problem} {check.name}: {check.broken[0]}" for check, may_be, _ in gaps if may_be]
    if outcome.unselected:
        notes.append(f"{outcome.unselected} solution(s) of other problems than the selected ones")
    for check, _, switch in gaps:
        check.broken = [f"{text} (--allow-{switch} accepts it)" for text in check.broken]
    return [check for check, may_be, _ in gaps if not may_be], notes


def _unmapped(outcome: Outcome) -> list[tuple[str, str]]:
    return [(readable(path.relative_to(outcome.root)), reason) for path, reason in outcome.unmapped]


def _unanswered(outcome: Outcome) -> Sequence[str]:
    answered = {problem for problem, _ in outcome.found}
    return [problem for problem in outcome.problems if problem not in answered]


def _no_solution(problem: str) -> Check:
    return Check(problem, "", broken=["the problem is selected and has no solution"])


def _removed(outcome: Outcome, against: Run | None) -> list[Result]:
    """Solutions that the earlier run had, of problems that this one looks at."""
    gone = {
        (r.problem, r.solution["name"]): r
        for r in (against.latest() if against else [])
        if (r.problem, r.solution["name"]) not in outcome.found
        and (not outcome.run.config.get("problems") or r.problem in outcome.problems)
    }
    return list(gone.values())


def _gone(result: Result, against: Run) -> Check:
    return Check(result.problem, result.solution["name"], broken=[f"it is in {against.path}, but not here"])


def _times(interval: Interval) -> str:
    return f"{interval.low:.3f} to {interval.high:.3f}"
