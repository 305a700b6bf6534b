"""The dispatcher: lets the solvers of several problems work, as the schedule and the run's limits say.

Each problem is a thread. Before each unit of work it asks for a grant, and waits until it has one. Grants are in the
journal. A run that is resumed lets each problem do again what was granted, without asking; then the schedule is asked
about the same state as before.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from kernelbench.solvers.log.journal import Journal
from kernelbench.solvers.schedule.limits import Limits
from kernelbench.solvers.schedule.order import Schedule, Standing

_NOTED_S = 30.0  # wall time that a life loses at most where it is killed


class Stopped(Exception):
    """The problem gets no further unit of work; not an error, but the end of its solver. The message says why."""


class Dispatcher:
    """``standings`` in the order of the suite; ``start(problem)`` starts its thread, which ends with ``ended``."""

    def __init__(
        self,
        standings: list[Standing],
        schedule: Schedule,
        limits: Limits,
        journal: Journal,
        at_once: int,
        start: Callable[[str], None],
    ):
        self._standings = {one.problem: one for one in standings}
        self._schedule, self._limits, self._journal = schedule, limits, journal
        self._at_once, self._start = at_once, start
        self._changed = threading.Condition()
        self._asked = dict.fromkeys(self._standings, 0)  # units that the thread of a problem has asked for
        self._granted_before = dict(journal.granted)  # in earlier lives of the run
        self._asking_anew: set[str] = set()  # what was granted before and is not in the log
        self._waiting: set[str] = set()
        self._running: set[str] = set()
        self._ended: set[str] = set()
        self._stopped: dict[str, str] = {}
        self._error: BaseException | None = None
        self._begin = time.monotonic()

    def run(self) -> dict[str, str]:
        """Return when all problems have ended, with why those ended that could have gone on.

        Raises what ``ended`` was told that is no affair of one problem.
        """
        with self._changed:
            for problem, units in self._journal.granted.items():
                if problem in self._standings:
                    self._standings[problem].units = units
                    self._running.add(problem)
            begun = list(self._running)
        try:
            for problem in begun:
                self._start(problem)
            while self._grant_one():
                pass
        finally:  # a limit holds over all lives, also of work that was granted in an earlier one
            self._journal.note_seconds(self.seconds)
        return self._stopped

    def enter(self, problem: str) -> None:
        """Wait for the problem's next unit of work; called by its thread. Raises Stopped."""
        with self._changed:
            self._asked[problem] += 1
            if self._asked[problem] <= self._standings[problem].units:
                return
            self._running.discard(problem)
            self._asking_anew.discard(problem)
            self._waiting.add(problem)
            self._changed.notify_all()
            self._changed.wait_for(lambda: problem not in self._waiting)
            if problem in self._stopped:
                raise Stopped(self._stopped[problem])

    def forget_grants(self, problem: str) -> None:
        """Take back what a problem was granted and has not asked for, but for the first unit, with which it began."""
        with self._changed:
            standing = self._standings[problem]
            standing.units = min(standing.units, max(1, self._asked[problem]))

    def ask_anew(self, problem: str, in_turn: bool = False) -> None:
        """Raise Stopped before a model call or an attempt that is not in the log, where a limit leaves no room for it.

        A unit of this life has been checked. That one was granted before says the log, which may be of others, and
        of all problems: ``in_turn`` as many ask as may work at once, so that a limit holds for those that follow.
        """
        with self._changed:
            if self._asked[problem] <= self._granted_before.get(problem, 0):
                if in_turn:
                    self._changed.wait_for(lambda: self._error or self._may_ask_anew(problem))
                    self._asking_anew.add(problem)
                if spent := self._limits.spent(self._standings.values(), self.seconds):
                    self._stopped[problem] = spent
                    raise Stopped(spent)

    def ended(self, problem: str, error: BaseException | None = None) -> None:
        """Note that the thread of a problem ends; an ``error`` ends the run."""
        with self._changed:
            self._ended.add(problem)
            self._running.discard(problem)
            self._asking_anew.discard(problem)
            self._error = self._error or error
            self._changed.notify_all()

    @property
    def seconds(self) -> float:
        """Wall time of the run, over all its lives."""
        return self._journal.seconds_before + time.monotonic() - self._begin

    def _grant_one(self) -> bool:
        """Wait for a free place and grant one unit, or stop those that wait; return whether anything is left."""
        with self._changed:
            while not self._changed.wait_for(self._may_decide, _NOTED_S):
                self._journal.note_seconds(self.seconds)
            if self._error:
                raise self._error
            waiting = self._candidates()
            if not waiting:
                return False
            spent = self._limits.spent(self._standings.values(), self.seconds)
            chosen = None if spent else self._schedule.next(waiting)
            if chosen is None:
                self._stop(waiting, spent or "the schedule gives it no more work")
                return True
            fresh = not chosen.begun
            chosen.units += 1
            self._journal.grant(chosen.problem, chosen.units, self.seconds)
            self._running.add(chosen.problem)
            self._waiting.discard(chosen.problem)
            self._changed.notify_all()
        if fresh:
            self._start(chosen.problem)
        return True

    def _may_ask_anew(self, problem: str) -> bool:
        return problem in self._asking_anew or len(self._asking_anew) < self._at_once

    def _may_decide(self) -> bool:
        if self._error:
            return True
        if not self._candidates():
            return not self._running
        return len(self._running) < self._at_once

    def _candidates(self) -> list[Standing]:
        return [
            one for name, one in self._standings.items()
            if name not in self._ended and (name in self._waiting or not one.begun)
        ]  # fmt: skip

    def _stop(self, waiting: list[Standing], reason: str) -> None:
        for one in waiting:
            self._stopped[one.problem] = reason
            if one.begun:
                self._waiting.discard(one.problem)
                self._running.add(one.problem)  # until its thread has ended
            else:
                self._ended.add(one.problem)
        self._changed.notify_all()
