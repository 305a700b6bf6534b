"""Schedules: which problem gets the next unit of work.

A schedule is one class with ``next`` and a line in ``SCHEDULES``. It is asked each time a place is free. It sees the
problems that wait for their next unit, in the order of the suite, and names one of them, or None if none of these is
to go on: their solvers end. The unit is an attempt, or an iteration where the solver says ``UNIT = "iteration"``.

What it says must follow from what it is shown, which is all in the log. Grants are journaled, so that a run that was
killed goes on in the same order.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.result import Result


@dataclass
class Standing:
    """State of one problem, as a schedule sees it."""

    problem: str
    budget: int  # attempts for this problem, in all
    units: int = 0  # granted so far
    results: list[Result] = field(default_factory=list)  # of its attempts, in order of sample
    tokens: int = 0
    uncounted: bool = False  # whether the endpoint told no tokens of some answer
    usd: float = 0.0

    @property
    def begun(self) -> bool:
        return self.units > 0


class Schedule(Protocol):
    def next(self, waiting: Sequence[Standing]) -> Standing | None:
        """Return the problem that goes on; None ends all that are waiting. ``waiting`` is not empty."""


class DepthFirst:
    """Each problem to its end: the first that has begun, else the next one."""

    def __init__(self, **options: str):
        refuse(options, self)

    def next(self, waiting: Sequence[Standing]) -> Standing | None:
        return next((one for one in waiting if one.begun), waiting[0])


class BreadthFirst:
    """Round robin: the problem with the fewest units, the first of several."""

    def __init__(self, **options: str):
        refuse(options, self)

    def next(self, waiting: Sequence[Standing]) -> Standing | None:
        return min(waiting, key=lambda one: one.units)


class UnknownSchedule(ValueError):
    """No such schedule, or one with a wrong option; the message names what there is."""


SCHEDULES = {
    "depth": "kernelbench.solvers.schedule.order:DepthFirst",
    "breadth": "kernelbench.solvers.schedule.order:BreadthFirst",
    "policy": "kernelbench.solvers.schedule.policy:PolicySchedule",
}


def schedule_of(text: str) -> Schedule:
    """Return the schedule that ``text`` names, with options as in ``NAME:key=value,key=value``.

    Raises UnknownSchedule.
    """
    name, _, rest = text.partition(":")
    if name not in SCHEDULES:
        raise UnknownSchedule(f"there is no schedule {name!r}; use one of {', '.join(SCHEDULES)}")
    options = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise UnknownSchedule(f"--schedule {text}: {part!r} is not key=value")
        options[key.strip()] = value.strip()
    module, _, attribute = SCHEDULES[name].partition(":")
    return getattr(importlib.import_module(module), attribute)(**options)


def refuse(options: dict[str, Any], schedule: Schedule) -> None:
    """Raise UnknownSchedule for options that a schedule does not have."""
    if options:
        raise UnknownSchedule(f"{type(schedule).__name__} has no option {', '.join(sorted(options))}")
