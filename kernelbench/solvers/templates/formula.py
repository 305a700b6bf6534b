"""Formula of a reference as C expressions: elements, reductions, and what follows from those.

Every element has a position ``at`` in a space of OUTER x LENGTH x INNER; reductions run over
LENGTH, and give one row value for each of OUTER x INNER.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from kernelbench.solvers.templates.patterns import Pattern


@dataclass(frozen=True)
class Load:
    """An input or a parameter as elements see it."""

    argument: str  # its name in the signature
    c_type: str
    pattern: Pattern

    def index(self, at: str = "at") -> str:
        """The offset of the element at ``at``, in C."""
        terms, behind = [], 1
        for size, stride in reversed(self.pattern):
            if stride:
                place = at if behind == 1 else f"{at} / {behind}"
                first = behind * size == math.prod(size for size, _ in self.pattern)
                place = place if first else f"({place}) % {size}"
                terms.append(place if stride == 1 else f"({place}) * {stride}")
            behind *= size
        return " + ".join(reversed(terms)) or "0"

    def contiguous(self, vector: int) -> bool:
        """Return whether ``vector`` neighbours, from a multiple of ``vector`` on, are neighbours in memory too."""
        size, stride = self.pattern[-1]
        return stride == 1 and size % vector == 0 and all(step % vector == 0 for _, step in self.pattern[:-1])


@dataclass(frozen=True)
class Reduction:
    name: str
    state: str  # a struct of the templates: Sum, Max, Min, ArgMax, ArgMin, Softmax
    element: str  # the expression that is reduced


@dataclass
class Formula:
    """``elements`` and ``rows`` are definitions in order: name and expression; of a row also its C type."""

    size: int  # of the space
    outer: int = 1
    length: int = 0
    inner: int = 1
    loads: dict[str, Load] = field(default_factory=dict)
    elements: list[tuple[str, str, bool]] = field(default_factory=list)  # with whether they need rows
    reductions: list[Reduction] = field(default_factory=list)
    rows: list[tuple[str, str, str]] = field(default_factory=list)
    output: str = ""
    level: str = ""  # of the output: element, row, or total (the sum over all rows)
    c_output: str = "float"


@dataclass(frozen=True)
class Product:
    """C[b] = A[b] B[b]: sizes, and strides of A and B for batch, row and column. ``keep`` is where C is not zero."""

    batch: int
    m: int
    n: int
    k: int
    a: tuple[str, int, int, int]
    b: tuple[str, int, int, int]
    keep: str = "true"
