"""Two runs, problem by problem: faster, slower, a tie, newly broken, newly fixed. A pure function of two logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

from kernelbench.metrics import outcomes, settled
from kernelbench.metrics.intervals import Interval, around_ratio
from kernelbench.metrics.scores import Best, best_of_each_problem
from kernelbench.metrics.workloads import why_incomparable
from kernelbench.review import labels
from kernelbench.run import Run, result_order
from kernelbench.views import tables
from kernelbench.views.ranking import differing


class Change(str, Enum):
    """Change of a problem (or a solution) from one run to the other."""

    NEWLY_BROKEN = "newly broken"
    SLOWER = "slower"
    UNSTABLE = "unstable"  # in either: how fast it is, is not known
    TIE = "tie"
    FASTER = "faster"
    NEWLY_FIXED = "newly fixed"
    UNSOLVED = "unsolved"  # in both
    NOT_COMPARABLE = "not comparable"  # speedups of different or unknown sizes, or none

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Difference:
    """``ratio`` is the speedup now over the speedup before; its interval is None where a log has no samples.

    ``before`` and ``after`` are settled speedups; None for what is not solved, not timed or unstable.
    """

    problem: str
    name: str
    change: Change
    before: float | None  # speedup
    after: float | None
    ratio: float | None = None
    interval: Interval | None = None
    why: str = ""  # how the broken one fails
    label_before: str = ""  # of the solution, as a review or a measurement gives it
    label_after: str = ""


def compare(before: Run, after: Run) -> list[Difference]:
    """The best solution of each problem in ``after``, against that in ``before``; worst news first.

    Raises ReviewError.
    """
    solutions = [run.solutions() for run in (before, after)]
    pairs = list(map(best_of_each_problem, solutions))
    latest = {result.problem: result for those in solutions for result in sorted(those, key=result_order)}
    label_of = [labels.of_run(run) for run in (before, after)]
    statuses: dict[str, set[str]] = {}
    for result in solutions[1]:
        statuses.setdefault(result.problem, set()).add(result.status.value)
    differences = [
        replace(
            difference(
                pairs[0].get(problem), pairs[1].get(problem), problem, latest[problem].problem_name,
                ", ".join(sorted(statuses.get(problem, ()))) or "no solution",
            ),
            label_before=_label(pairs[0].get(problem), label_of[0]),
            label_after=_label(pairs[1].get(problem), label_of[1]),
        )
        for problem in latest
    ]  # fmt: skip
    order = list(Change)
    return sorted(differences, key=lambda d: (order.index(d.change), tuple(map(int, d.problem.split("/")))))


def difference(before: Best | None, after: Best | None, problem: str, name: str, why: str = "") -> Difference:
    """Return what changed between two solutions of one problem; None is one that is not correct, ``why`` says how."""
    speedups = tuple(_settled(one) for one in (before, after))
    if before is None or after is None:
        change = Change.UNSOLVED if before is after else Change.NEWLY_FIXED if after else Change.NEWLY_BROKEN
        return Difference(problem, name, change, *speedups, why="" if after else why)
    if when := _when(before, after, lambda one: one.result.speedup is None):
        return Difference(problem, name, Change.NOT_COMPARABLE, *speedups, why=f"not timed {when}")
    if why := why_incomparable(before.result, after.result):
        return Difference(problem, name, Change.NOT_COMPARABLE, *speedups, why=why)
    if when := _when(before, after, lambda one: one.verdict == settled.UNSTABLE):
        return Difference(problem, name, Change.UNSTABLE, *speedups, why=f"unstable {when}")
    ratio = after.result.speedup / before.result.speedup
    sides = after.log_sides, before.log_sides
    interval = None if None in sides else around_ratio(ratio, *sides)
    return Difference(problem, name, _direction(ratio, interval), *speedups, ratio, interval)


def _when(before: Best, after: Best, holds: Callable[[Best], bool]) -> str:
    return " and ".join(word for word, one in (("before", before), ("after", after)) if holds(one))


def _label(best: Best | None, label_of: dict[labels.Key, labels.Label]) -> str:
    return label_of.get(labels.key_of(best.result), labels.NONE).band if best else ""


def _settled(best: Best | None) -> float | None:
    return None if best is None or best.verdict in (None, settled.UNSTABLE) else best.settled


def _direction(ratio: float, interval: Interval | None) -> Change:
    """A tie is what the interval cannot tell from 1; without samples, only equality."""
    low, high = interval or (ratio, ratio)
    return Change.FASTER if low > 1 else Change.SLOWER if high < 1 else Change.TIE


def render(before: Run, after: Run, form: str) -> str:
    """The comparison in one of ``tables.FORMATS``."""
    differences = compare(before, after)
    records = [_record(d) for d in differences]
    counts = {str(change): count for change, count in Counter(d.change for d in differences).items()}
    if form == "json":
        return tables.to_json(
            {"before": str(before.path), "after": str(after.path), "counts": counts, "problems": records}
        )
    if form == "csv":
        return tables.to_csv(records)
    headers = ("problem", "change", "before", "after", "ratio", "interval", "", "label")
    labelled = any(map(_labels, differences))
    cells = [_cells(found)[: None if labelled else -1] for found in differences]
    table = tables.table(headers[: None if labelled else -1], cells, form)
    parts = [table, ", ".join(f"{n} {c}" for c, n in counts.items())]
    if found := differing([before, after]):
        parts.append(f"The runs differ in {', '.join(found)}: each speedup is against the baseline of its own run.")
    return "\n\n".join(parts)


def _record(found: Difference) -> dict[str, Any]:
    low, high = found.interval or (None, None)
    return {**asdict(found), "change": found.change.value, "interval": {"low": low, "high": high}}


def _cells(found: Difference) -> tuple[str, ...]:
    return (
        f"{found.problem} {found.name}",
        str(found.change),
        _times(found.before),
        _times(found.after),
        f"{found.ratio:.3f}" if found.ratio else "",
        f"[{found.interval.low:.3f}, {found.interval.high:.3f}]" if found.interval else "",
        found.why,
        _labels(found),
    )


def _labels(found: Difference) -> str:
    """Return the labels where one of them leaves a solution out of filtered figures."""
    both = found.label_before, found.label_after
    return " -> ".join(label or "-" for label in both) if any(b and b not in outcomes.ACCEPTED for b in both) else ""


def _times(speedup: float | None) -> str:
    return f"{speedup:.2f}x" if speedup else "-"
