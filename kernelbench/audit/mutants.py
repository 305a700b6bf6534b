"""Mutants of a reference: one of the ``MUTATIONS``, planted in one operator call of its forward.

Calls are seen below autograd, as aten operators, so that any reference can be mutated as it is.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from kernelbench.audit.mutations import MUTATIONS, WORK
from kernelbench.audit.operator_call import Call

LIMIT = 40  # mutants a problem
STALE = "stale buffer"  # what the call returned for other inputs: needs a run on those, so no function of the call


@dataclass(frozen=True)
class Mutant:
    """A forward whose ``number``-th call of ``operator``, counted from 0, is changed."""

    mutation: str
    operator: str
    number: int

    def __str__(self) -> str:
        return f"{self.mutation}: {self.operator} {self.number}"


class _Counting(TorchDispatchMode):
    """A forward's operator calls, one by one, each known by its operator and its number among those."""

    def __init__(self):
        super().__init__()
        self._calls: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        operator = _out_of_place(func).overloadpacket.__name__
        number = self._calls[operator]
        self._calls[operator] += 1
        return self._call(func, args, kwargs or {}, operator, number)


class Recorder(_Counting):
    """Lists the operators of a forward in their order, and keeps what one call returns."""

    def __init__(self, keep: Mutant | None = None):
        super().__init__()
        self.operators: list[str] = []
        self.kept: Any = None
        self._keep = keep

    def _call(self, func, args, kwargs, operator, number):
        result = func(*args, **kwargs)
        if not func.is_view and args:
            self.operators.append(operator)
        if self._keep and (operator, number) == (self._keep.operator, self._keep.number):
            self.kept = pytree.tree_map(lambda value: value.clone() if isinstance(value, Tensor) else value, result)
        return result


class Mutating(_Counting):
    """Runs a forward with one call changed. ``Inapplicable`` passes through."""

    def __init__(self, mutant: Mutant, stale: Any = None):
        super().__init__()
        self._mutant, self._stale = mutant, stale
        self.applied = False

    def _call(self, func, args, kwargs, operator, number):
        if (operator, number) != (self._mutant.operator, self._mutant.number):
            return func(*args, **kwargs)
        self.applied = True
        if self._mutant.mutation == STALE:
            result = self._stale
        else:
            result = MUTATIONS[self._mutant.mutation](_bind(_out_of_place(func), args, kwargs))
        return args[0].copy_(result) if _in_place(func) else result


def _bind(func: Any, args: tuple, kwargs: dict) -> Call:
    names = [argument.name for argument in func._schema.arguments]
    return Call(func, {**dict(zip(names, args)), **kwargs})


def _in_place(func: Any) -> bool:
    return func.overloadpacket.__name__.endswith("_") and func._schema.is_mutable


def _out_of_place(func: Any) -> Any:
    """``relu`` for ``relu_``, so that a mutation sees a call that returns its result."""
    if _in_place(func):
        packet = getattr(torch.ops.aten, func.overloadpacket.__name__[:-1], None)
        return getattr(packet, func._overloadname, func)
    return func


def candidates(operators: list[str], seed: int) -> Iterator[Mutant]:
    """Mutants in the order to try them: each mutation in turn, each time on another call, spread at random.

    Not all of them apply; ``Inapplicable`` says so when they run.
    """
    shuffle = random.Random(seed).sample
    sites = [(name, number) for name, count in Counter(operators).items() for number in range(count) if name in WORK]
    queues = {mutation: shuffle(sites, len(sites)) for mutation in (*MUTATIONS, STALE)}
    while any(queues.values()):
        for mutation, queue in queues.items():
            if queue:
                yield Mutant(mutation, *queue.pop())
