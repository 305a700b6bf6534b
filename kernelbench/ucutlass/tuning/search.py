"""Measured search: the likeliest variants first, then neighbours of the best, then the best once more.

A measurement is one build, 45 s and 4 GiB on SM90, so there are few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.canonical import digest
from kernelbench.ucutlass.tuning.space import order_variants, ranked, structural_variants

_FIRST_SHARE = 2 / 3  # of the builds, for tiles and schedules; the rest is for orders of tiles and stages
_KEPT = 1.005  # a variant must be faster than the program by more than the allowance between processes
NOT_EVALUATED = "not evaluated"  # status of a variant that no judge has answered for


class Unevaluated(Exception):
    """A search whose answer is open, because the machine failed."""


@dataclass(frozen=True)
class Measured:
    """One variant as measured; ``ms`` is None where it was not right, and ``message`` then says why."""

    program: ir.Program
    ms: float | None
    status: str = "ok"
    message: str = ""
    predicted_ms: float | None = None


@dataclass(frozen=True)
class Tuning:
    """Result of a search. ``best`` and ``start`` are their confirmations, measured last, in new processes."""

    start: Measured
    best: Measured
    tried: tuple[Measured, ...]
    variants: int  # legal ones, of which few were measured

    @property
    def gain(self) -> float | None:
        """Time of the program as given over that of the best; None where either has none."""
        return self.start.ms / self.best.ms if self.start.ms and self.best.ms else None


Measure = Callable[[Sequence[ir.Program]], list[Measured]]


def tune(program: ir.Program, predict: Callable[[ir.Kernel], float], measure: Measure, builds: int) -> Tuning:
    """Search the variants of a complete program with at most ``builds`` builds, the program's own among them.

    Parameters
    ----------
    predict
        Predicted milliseconds of a kernel.
    measure
        Milliseconds of several programs, in their order. What was built before is not built again.

    Raises NotTunable where there is nothing to choose, and Unevaluated where no program was right and some were not
    evaluated, or one of the last two measurements was not.
    """
    if builds < 2:
        raise ValueError(f"a search takes at least 2 builds, got {builds}")
    space = ranked(structural_variants(program), predict)
    first = max(1, min(round(builds * _FIRST_SHARE), builds - 1) - 1)
    chosen = _diverse([one for _, one in space if digest(one) != digest(program)])[:first]
    tried = measure([program, *chosen])
    leader = _best(tried)
    if leader:
        seen = {digest(one.program) for one in tried}
        around = [one for _, one in ranked(order_variants(leader.program), predict) if digest(one) not in seen]
        tried += measure(_spread(around, builds - len(tried)))
    best, start = _best(tried), tried[0]
    if best is None:
        _check_evaluated(tried, f"none of {len(tried)} variants was right")
        return Tuning(start, start, tuple(tried), len(space))
    final = {digest(one.program): one.program for one in (start, best)}
    again, *others = measure([*final.values()])
    confirmed = others[0] if others else again
    _check_evaluated([again, confirmed], "the program and the best variant were to be measured once more")
    was_wrong = start.ms is None and start.status != NOT_EVALUATED
    if again.ms and not was_wrong and (confirmed.ms is None or again.ms <= confirmed.ms * _KEPT):
        confirmed = again
    return Tuning(again, confirmed, tuple(tried), len(space))


def _check_evaluated(measured: Sequence[Measured], done: str) -> None:
    if missing := [one for one in measured if one.status == NOT_EVALUATED]:
        raise Unevaluated(f"{done}, and {len(missing)} could not be evaluated: {missing[0].message}")


def _best(measured: Sequence[Measured]) -> Measured | None:
    timed = [one for one in measured if one.ms is not None]
    return min(timed, key=lambda one: one.ms) if timed else None


def _diverse(programs: list[ir.Program]) -> list[ir.Program]:
    """The programs in their order, but no tile and schedule again before each was there once."""
    seen, first, rest = set(), [], []
    for program in programs:
        kernel = program.kernels[0]
        schedule = kernel.scheduler and (kernel.scheduler.kernel, kernel.scheduler.tile)
        family = (kernel.cta_tile.m, kernel.cta_tile.n, schedule)
        (rest if family in seen else first).append(program)
        seen.add(family)
    return [*first, *rest]


def _spread(programs: list[ir.Program], count: int) -> list[ir.Program]:
    """As many as there are builds left, one of each order of tiles first."""
    seen, first, rest = set(), [], []
    for program in programs:
        kernel = program.kernels[0]
        order = kernel.scheduler.raster if kernel.scheduler else kernel.swizzle
        (rest if (order, kernel.stages) in seen else first).append(program)
        seen.add((order, kernel.stages))
    return [*first, *rest][: max(0, count)]
