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

    Raises NotTunable where there is nothing to choose.
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
    best = _best(tried)
    if best is None:
        return Tuning(tried[0], tried[0], tuple(tried), len(space))
    start = tried[0]
    if digest(best.program) == digest(program):
        (confirmed,) = measure([program])
        return Tuning(confirmed, confirmed, tuple(tried), len(space))
    again, confirmed = measure([program, best.program])
    if start.ms and again.ms and (confirmed.ms is None or again.ms <= confirmed.ms * _KEPT):
        return Tuning(again, again, tuple(tried), len(space))
    return Tuning(again, confirmed, tuple(tried), len(space))


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
