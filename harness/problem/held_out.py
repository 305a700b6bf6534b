"""Held-out workloads: sizes and inputs around the published ones that no candidate has seen.

Two families. *Sizes*: what the inputs have and the constructor is not given (batch, rows, length, height); odd, prime,
tiny or long. The constructor's arguments define the model, so they stay. *Structure*: the published sizes, with inputs
that are ragged, clustered or constant in some rows. All are drawn from a seed that the judge gets after the candidate
was written.

Not covered: inputs of another type, or of another number of dimensions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from harness.problem.distributions import STRUCTURES, has_structure
from harness.problem.inputs import build_model, call, draw_inputs
from harness.problem.meta_recurrent import RecurrentShapes
from harness.problem.module import Workload

_META = torch.device("meta")
_TRIES = 12  # of other sizes, until the reference takes them
_CHANGED = 0.7  # of the sizes of an input, how many change at once; not all may, where two must agree
_TINY = (1, 2, 3, 5, 7)
_MOST_ELEMENTS = 1.75  # of the inputs, times those of the published ones: memory is sized for these


@dataclass(frozen=True)
class HeldOut:
    """One held-out workload: ``kind``, the sizes that ``changed``, or the structure of inputs that it ``draw``s."""

    kind: str
    changed: dict[str, int] = field(default_factory=dict)
    draw: str = ""


def held_out(workload: Workload, seed: int) -> Iterator[HeldOut]:
    """Yield held-out workloads without end, the kinds in turn and in random order; none where the problem has none.

    The reference of each was called without data, and took the sizes.
    """
    dice = random.Random(seed)
    kinds = [*_SIZES, *STRUCTURES]
    dice.shuffle(kinds)
    known: set[tuple] = set()
    while True:
        found = [one for kind in kinds if (one := _drawn(workload, kind, dice))]
        new = {(one.draw, *sorted(one.changed.items())): one for one in found}
        new = {key: one for key, one in new.items() if key not in known}
        if not new:
            return
        known |= set(new)
        yield from new.values()


def input_sizes(workload: Workload) -> dict[str, int]:
    """Return the sizes that inputs have and the model's constructor is not given, by their names in the module."""
    if workload.sizes or hasattr(workload.problem.module, "WORKLOADS"):
        sizes = workload.sizes
    else:  # KernelBench's modules have constants instead
        sizes = {name: value for name, value in vars(workload.problem.module).items() if not name.startswith("_")}
    numbers = {name: value for name, value in sizes.items() if type(value) is int and value > 1}
    return {name: value for name, value in numbers.items() if _is_of_inputs(workload, name, value)}


def _is_of_inputs(workload: Workload, name: str, value: int) -> bool:
    try:
        other = workload.with_sizes({name: value + 1})
        with _META:
            same_model = repr(other.get_init_inputs()) == repr(workload.get_init_inputs())
            return same_model and _shapes(other) != _shapes(workload)
    except Exception:  # a problem's functions may raise anything where sizes do not fit each other
        return False


def _shapes(workload: Workload) -> list[Any]:
    return [tuple(value.shape) if isinstance(value, torch.Tensor) else value for value in workload.get_inputs()]


def _drawn(workload: Workload, kind: str, dice: random.Random) -> HeldOut | None:
    """Return a workload of this kind; None where the problem has none."""
    if kind in STRUCTURES:
        with _META:
            return HeldOut(kind, draw=kind) if has_structure(workload.get_inputs(), workload.problem) else None
    sizes = input_sizes(workload)
    most = _MOST_ELEMENTS * _elements(workload)
    for _ in range(_TRIES if sizes else 0):
        # a long one grows in one direction, so that it fits the memory
        several = [name for name in sizes if dice.random() < _CHANGED and kind != "long"]
        chosen = several or [dice.choice(list(sizes))]
        changed = {name: _SIZES[kind](sizes[name], dice) for name in chosen}
        changed = {name: value for name, value in changed.items() if value != sizes[name]}
        if changed and _runs(workload, workload.with_sizes(changed), most):
            return HeldOut(kind, changed)
    return None


def _runs(published: Workload, other: Workload, most: float) -> bool:
    """Return whether the reference takes the sizes, as far as it can be called without data."""
    try:
        if _elements(other) > most:
            return False
        _call(other)
    except Exception:  # of the reference, or of an operator that needs data: then the published sizes raise as well
        return not _takes(published)
    return True


def _takes(workload: Workload) -> bool:
    try:
        _call(workload)
    except Exception:
        return False
    return True


def _call(workload: Workload) -> None:
    with RecurrentShapes():
        model = build_model(workload.problem.module.Model, workload, 0, _META, torch.float32)
        inputs = draw_inputs(workload, 0, _META, torch.float32)
        with _META:
            call(model, inputs)


def _elements(workload: Workload) -> int:
    with _META:
        return sum(value.numel() for value in workload.get_inputs() if isinstance(value, torch.Tensor))


def _odd(size: int, dice: random.Random) -> int:
    """An odd number beside it."""
    step = 1 if size % 2 == 0 else 2
    return size + dice.choice((-step, step)) if size > step else size + step


def _prime(size: int, dice: random.Random) -> int:
    """A prime among the larger ones up to it."""
    least = max(2, int(0.7 * size))
    start = dice.randint(least, max(least, size))
    return next((n for n in (*range(start, 1, -1), 2) if _is_prime(n)), 2)


def _long(size: int, dice: random.Random) -> int:
    """About half as long again, of any remainder."""
    return int(size * dice.uniform(1.25, 1.7)) + 1


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % divisor for divisor in range(2, int(n**0.5) + 1))


_SIZES: dict[str, Callable[[int, random.Random], int]] = {
    "odd": _odd,
    "prime": _prime,
    "tiny": lambda size, dice: dice.choice(_TINY),
    "long": _long,
}
