"""Limits of a whole run: attempts, tokens, dollars, seconds, over all problems and all lives of the run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from kernelbench.solvers.schedule.order import Standing


@dataclass(frozen=True)
class Limits:
    """None is no limit. Checked before each unit of work; units in flight end, and may exceed a limit."""

    attempts: int | None = None
    tokens: int | None = None  # of prompts and answers
    usd: float | None = None
    seconds: float | None = None  # wall time, over all lives of the run

    def spent(self, standings: Iterable[Standing], seconds: float) -> str:
        """Return which limit is reached, as a sentence; '' while there is room."""
        standings = list(standings)
        used = {
            "attempts": sum(len(one.results) for one in standings),
            "tokens": sum(one.tokens for one in standings),
            "usd": sum(one.usd for one in standings),
            "seconds": seconds,
        }
        limited = next((name for name in ("tokens", "usd") if getattr(self, name) is not None), None)
        if limited and any(one.uncounted for one in standings):
            return f"the endpoint tells no tokens of its answers, so that the run's limit of {limited} cannot be kept"
        for name, limit in asdict(self).items():
            if limit is not None and used[name] >= limit:
                return f"the run's limit of {limit:g} {name} is reached"
        return ""
