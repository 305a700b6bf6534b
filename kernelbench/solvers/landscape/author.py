"""A simulated author: it reads a prompt, believes something of each lever, chooses one and writes a kernel.

Its beliefs are true gains with an error that is its own and persists: asked again it errs in the same way.
A part of the error is the same for all problems, which is what a lesson from another problem can mend.
"""

from __future__ import annotations

import functools
import math
import random
from dataclasses import dataclass

from kernelbench.solvers.landscape import parameters as p
from kernelbench.solvers.landscape.reading import Seen
from kernelbench.solvers.landscape.terrain import Left, Problem, Spec

_UNTOUCHED: Left = (1.0,) * len(p.LEVERS)


@dataclass(frozen=True)
class Mind:
    """An author at one problem of the landscape of ``seed``; ``insight`` scales what information is worth.

    With ``insight`` 0 an author learns nothing from profiles, bounds, attributions and lessons; with 1
    what ``parameters`` assumes. ``error`` is the standard deviation, in log gain, of what it believes of a lever.
    """

    author: p.Author
    problem: Problem
    seed: int
    insight: float = 1.0
    error: float = p.SD_ERROR

    def belief(self, lever: int, left: Left, seen: Seen) -> float:
        """Return the log gain that the author believes a lever to bring next."""
        shared, own = _errors(self.author.name, self.seed, self.problem.id)[lever]
        about = [lesson for lesson in seen.lessons if lesson.lever == lever]
        here = [lesson for lesson in about if lesson.problem == self.problem.id]
        worth = (seen.profile, p.WITH_PROFILE), (seen.bounds, p.WITH_BOUNDS), (seen.attribution, p.WITH_ATTRIBUTION)
        factor = math.prod(factor for is_known, factor in worth if is_known) ** self.insight
        shared *= p.PER_LESSON ** (self.insight * min(len(about), 2))
        own *= p.PER_LESSON ** (self.insight * min(len(here), 2))
        return self.problem.gain(left, self.used(left, lever, p.DEPTH)) + factor * self.error * (shared + own)

    def used(self, left: Left, lever: int, depth: float) -> Left:
        """Return a kernel after one more application of a lever, as far as the author's skill reaches."""
        least = min(left[lever], 1 - _reach(self.author, self.seed, self.problem.id)[lever])
        return tuple(max(least, s * (1 - depth)) if index == lever else s for index, s in enumerate(left))

    def choose(self, left: Left, seen: Seen, count: int, rng: random.Random) -> list[int]:
        """Return ``count`` different levers in the order in which they come to mind, by appeal and whim."""
        appeal = {lever: self.belief(lever, left, seen) / p.WHIM for lever in range(len(p.LEVERS))}
        gumbel = {lever: value - math.log(-math.log(rng.random() or 1e-12)) for lever, value in appeal.items()}
        return sorted(gumbel, key=gumbel.get, reverse=True)[:count]

    def log_odds(self, lever: int, seen: Seen, fails: int) -> float:
        """Return the log odds that an application of a lever works."""
        usual = math.log(p.SUCCESS[lever] / (1 - p.SUCCESS[lever]))
        repairing = self.author.repair * min(fails, p.MOST_REPAIRS) if seen.error else 0.0
        taught = any(lesson.worked and lesson.lever == lever for lesson in seen.lessons)
        return (
            usual + self.author.skill - self.problem.hardness[lever] + repairing
            + p.LESSON_BONUS * self.insight * taught
        )  # fmt: skip

    def write(self, seen: Seen, rng: random.Random) -> Spec:
        """Return the kernel that the author answers with."""
        base = seen.base
        if base is None or (base.move is None and base.fault):
            return self._first(base.fails if base else 0, seen, rng)
        failed = base.fault is not None or base.drag > 1
        start = base.before if failed else base.left
        fails = base.fails if failed else 0
        if seen.wanted is not None:
            lever = seen.wanted
        elif failed and base.move and rng.random() < p.KEEPS_REPAIRING:
            lever = p.LEVERS.index(base.move)
        else:
            (lever,) = self.choose(start, seen, 1, rng)
        if p.LEVERS[lever] != base.move:
            fails = 0
        return self._applied(start, lever, seen, fails, rng)

    def _first(self, fails: int, seen: Seen, rng: random.Random) -> Spec:
        """Return a kernel from scratch; it has some of each lever already."""
        repairing = self.author.repair * min(fails, p.MOST_REPAIRS) if seen.error else 0.0
        hard = math.fsum(self.problem.hardness) / len(p.LEVERS)
        if not _happens(p.FIRST_LOG_ODDS + self.author.skill - hard + repairing, rng):
            return Spec(_UNTOUCHED, _UNTOUCHED, fault=_fault(rng), fails=fails + 1)
        reach = _reach(self.author, self.seed, self.problem.id)
        left = tuple(1 - min(most, rng.uniform(0, 2 * self.author.start)) for most in reach)
        return Spec(left, left)

    def _applied(self, start: Left, lever: int, seen: Seen, fails: int, rng: random.Random) -> Spec:
        move = p.LEVERS[lever]
        if _happens(self.log_odds(lever, seen, fails), rng):
            depth = min(0.9, max(0.1, rng.gauss(p.DEPTH, p.SD_DEPTH)))
            return Spec(self.used(start, lever, depth), start, move)
        if rng.random() < p.SLOWER_FAILURES:
            return Spec(start, start, move, fails=fails + 1, drag=rng.uniform(*p.SLOWDOWN))
        return Spec(start, start, move, _fault(rng), fails + 1)


@functools.lru_cache(maxsize=4096)
def _reach(author: p.Author, seed: int, problem: str) -> tuple[float, ...]:
    """Return for each lever the share of its potential that an author can use in a problem at all."""
    rng = random.Random(f"reach {author.name} {seed} {problem}")
    return tuple(min(1.0, max(0.1, rng.gauss(author.reach, p.SD_REACH))) for _ in p.LEVERS)


@functools.lru_cache(maxsize=4096)
def _errors(author: str, seed: int, problem: str) -> tuple[tuple[float, float], ...]:
    """Return for each lever the shared and the own part of an author's error, whose variances sum to 1."""
    shared, own = (random.Random(f"error {author} {seed} {what}") for what in ("shared", problem))
    return tuple(
        (
            shared.gauss(0, math.sqrt(p.SHARED_ERROR)),
            own.gauss(0, math.sqrt(1 - p.SHARED_ERROR)),
        )
        for _ in p.LEVERS
    )


def _happens(log_odds: float, rng: random.Random) -> bool:
    return rng.random() < 1 / (1 + math.exp(-log_odds))


def _fault(rng: random.Random) -> str:
    return rng.choices(list(p.FAULTS), list(p.FAULTS.values()))[0]
