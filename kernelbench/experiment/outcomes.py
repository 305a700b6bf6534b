"""What an experiment keeps of each run: for every attempt its speedup, time and integrity band, and its cost.

One line of ``cells.jsonl`` is one finished run, and can be read alone.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from harness.result import Result, Status
from kernelbench.experiment.plan import Cell
from kernelbench.metrics import settled
from kernelbench.metrics.scheduling import Attempt, Trace, Unit, attempt_of
from kernelbench.review import labels

FORMAT = 1
FAILED, UNREVIEWED, SOL_CEILING, OTHER_RULE = "failed", "not_reviewed", "sol_ceiling", "other_rule"
CEILING = 0.9  # of t_SOL under FP16; the muCUTLASS paper, section 5.8
GAMING = (labels.ORIGINAL_GAMING, labels.INHERITED_GAMING, OTHER_RULE)
# Filterings, and the bands whose attempts count in each.
_ACCEPTED = (UNREVIEWED, *labels.ACCEPTED)
FILTERINGS = {
    "all filters": _ACCEPTED,
    "without library-only": (*_ACCEPTED, *GAMING, SOL_CEILING),
    "without gaming": (*_ACCEPTED, labels.LIBRARY_ONLY, SOL_CEILING),
    "without SOL ceiling": (*_ACCEPTED, *GAMING, labels.LIBRARY_ONLY),
    "no filter": (*_ACCEPTED, *GAMING, labels.LIBRARY_ONLY, SOL_CEILING),
}
ALL_FILTERS = "all filters"
BANDS = (
    FAILED, UNREVIEWED, *labels.ACCEPTED, SOL_CEILING, labels.LIBRARY_ONLY, labels.ORIGINAL_GAMING,
    labels.INHERITED_GAMING, OTHER_RULE,
)  # fmt: skip


@dataclass(frozen=True)
class Finished:
    """One run. Attempts of its traces have their band; rejected ones that were timed have their speedup too."""

    cell: Cell
    traces: list[Trace]
    seconds: float = 0.0  # wall time

    def best(self, filtering: str = ALL_FILTERS, raw: bool = False, attempts: int | None = None) -> list[float]:
        """Return each problem's best speedup among its first ``attempts`` that count; nan without one."""
        allowed = FILTERINGS[filtering]
        return [
            max(
                (s for a in tried(trace)[:attempts] if a.band in allowed and (s := a.raw if raw else a.speedup)),
                default=float("nan"),
            )
            for trace in self.traces
        ]

    def solved(self, filtering: str = ALL_FILTERS) -> list[bool]:
        """Return which problems have a correct attempt that counts."""
        return [any(attempt.band in FILTERINGS[filtering] for attempt in tried(trace)) for trace in self.traces]

    def accepted(self) -> list[Trace]:
        """Return the traces in which an attempt that a filter rejects is a failure."""
        return [
            Trace(trace.problem, trace.sol_ms, tuple(
                Unit(tuple(a if a.band in _ACCEPTED else Attempt() for a in unit.attempts), unit.tokens, unit.usd)
                for unit in trace.units
            ))
            for trace in self.traces
        ]  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Return the run as a line of ``cells.jsonl``; an attempt is [ms, settled, raw, log variance, band]."""
        problems = [
            {
                "problem": trace.problem,
                "sol_fp16_ms": trace.sol_ms,
                "units": [
                    {"attempts": [list(vars(a).values()) for a in u.attempts], "tokens": u.tokens, "usd": u.usd}
                    for u in trace.units
                ],
            }
            for trace in self.traces
        ]
        return {"format": FORMAT, **vars(self.cell), "seconds": self.seconds, "problems": problems}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Finished:
        """Inverse of ``to_json``. Raises ValueError for another format."""
        if record.get("format") != FORMAT:
            raise ValueError(f"format {record.get('format')!r} is not {FORMAT}, which this version reads")
        traces = [
            Trace(of["problem"], of["sol_fp16_ms"], tuple(
                Unit(tuple(Attempt(*attempt) for attempt in unit["attempts"]), unit["tokens"], unit["usd"])
                for unit in of["units"]
            ))
            for of in record["problems"]
        ]  # fmt: skip
        return cls(Cell(record["variant"], record["seed"], record["repeat"]), traces, record["seconds"])


def tried(trace: Trace) -> list[Attempt]:
    """Return all attempts of a trace, in order."""
    return [attempt for unit in trace.units for attempt in unit.attempts]


def band(result: Result, label: str | None = None) -> str:
    """Return the outcome band of one result; ``label`` is that of its review, where it has one."""
    if not result.correct and (result.status is not Status.REJECTED or result.speedup is None):
        return FAILED
    if result.rule == labels.LIBRARY_ONLY_RULE or label == labels.LIBRARY_ONLY:
        return labels.LIBRARY_ONLY
    if label in (labels.ORIGINAL_GAMING, labels.INHERITED_GAMING):
        return label
    if _below_ceiling(result):
        return SOL_CEILING
    if not result.correct:
        return OTHER_RULE
    return label or UNREVIEWED


def _below_ceiling(result: Result) -> bool:
    bound = (result.sol or {}).get("t_sol_fp16_ms")
    ms = (result.timing or {}).get("median_ms")
    return result.rule == "below_floor" or (bound is not None and ms is not None and ms < CEILING * bound)


def judged(result: Result, label: str | None = None) -> Attempt:
    """Return an attempt with its band; of a rejected one with its speedup too, as a filtering may count it."""
    where = band(result, label)
    if result.correct or where == FAILED:
        return dataclasses.replace(attempt_of(result), band=where)
    ms = (result.timing or {}).get("median_ms")
    return Attempt(ms, settled.settled_speedup(result), result.speedup, band=where)
