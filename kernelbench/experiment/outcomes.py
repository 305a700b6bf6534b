"""Record that an experiment keeps of each run: for every attempt its speedup, time and integrity band, and its cost.

One line of ``cells.jsonl`` is one finished run, and can be read alone. Bands and filterings are those of
``kernelbench.metrics.outcomes``; an attempt that is in none of them has failed.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from harness.record.fields import PROBLEM
from harness.record.shape import FIGURE, FROM_0, LIST, OBJECT, POSITIVE, TEXT, count, kind, one_of, or_none, shape
from harness.result import Result
from kernelbench.experiment.plan import MOST_PROBLEMS, Cell
from kernelbench.metrics import fast_p, outcomes, settled
from kernelbench.metrics.outcomes import ALL, FILTERINGS
from kernelbench.metrics.scheduling import Attempt, Trace, Unit, attempt_of
from kernelbench.review import labels

FORMAT = 1
FAILED = "failed"
BANDS = (FAILED, outcomes.UNREVIEWED, *outcomes.BANDS)
_VARIANCE = kind("a number from 0", float, int, fits=lambda value: value >= 0 and FIGURE.fits(value))
_ATTEMPT = (or_none(POSITIVE), or_none(POSITIVE), or_none(POSITIVE), _VARIANCE, one_of("", *BANDS))
_FINISHED = shape(
    {
        "variant!": TEXT, "seed!": count(), "repeat!": count(), "seconds!": FROM_0,
        "problems!": kind(f"a list of at most {MOST_PROBLEMS:,}", list, fits=lambda of: len(of) <= MOST_PROBLEMS),
        "problems[]": OBJECT, "problems[].problem!": PROBLEM, "problems[].sol_fp16_ms!": or_none(POSITIVE),
        "problems[].units!": LIST, "problems[].units[]": OBJECT, "problems[].units[].tokens!": or_none(FROM_0),
        "problems[].units[].usd!": or_none(FROM_0), "problems[].units[].attempts!": LIST,
        "problems[].units[].attempts[]": kind(
            "milliseconds, two speedups, a variance and a band", list,
            fits=lambda one: len(one) == len(_ATTEMPT) and all(of.takes(value) for of, value in zip(_ATTEMPT, one)),
        ),
    }
)  # fmt: skip


@dataclass(frozen=True)
class Finished:
    """One run. Attempts of its traces have their band; rejected ones that were timed have their speedup too."""

    cell: Cell
    traces: list[Trace]
    seconds: float = 0.0  # wall time

    def best(self, filtering: str = ALL, raw: bool = False) -> list[float]:
        """Return each problem's best speedup among the attempts that count; nan without one."""
        return [
            max(
                (s for a in tried(trace) if counts(a, filtering) and (s := a.raw if raw else a.speedup)),
                default=float("nan"),
            )
            for trace in self.traces
        ]

    def solved(self, filtering: str = ALL) -> list[bool]:
        """Return which problems have a correct attempt that counts."""
        return [any(counts(attempt, filtering) for attempt in tried(trace)) for trace in self.traces]

    def accepted(self) -> list[Trace]:
        """Return the traces in which an attempt that a filter rejects is a failure."""
        return [
            Trace(trace.problem, trace.sol_ms, tuple(
                Unit(tuple(a if counts(a) else Attempt() for a in unit.attempts), unit.tokens, unit.usd)
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
        """Inverse of ``to_json``. Raises ValueError for another format, and for values of other types."""
        if isinstance(record, dict) and record.get("format") != FORMAT:
            raise ValueError(f"format {record.get('format')!r} is not {FORMAT}, which this version reads")
        _FINISHED.check(record)
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


def counts(attempt: Attempt, filtering: str = ALL) -> bool:
    """Return whether an attempt is a solution under a filtering."""
    return attempt.band not in ("", FAILED) and attempt.band not in FILTERINGS[filtering]


def measured(result: Result) -> str:
    """Return the band that a record decides without a review."""
    return (labels.by_measurement(result) or labels.NONE).band


def judged(result: Result, band_of: outcomes.BandOf = measured) -> Attempt:
    """Return an attempt with its band; of a rejected one with its speedup too, as a filtering may count it."""
    if not outcomes.is_attempt(result):
        return Attempt(band=FAILED)
    if result.correct:
        return dataclasses.replace(attempt_of(result), band=band_of(result))
    ms = fast_p.typical_ms(result.timing)
    return Attempt(ms, settled.settled_speedup(result), result.speedup, band=band_of(result))
