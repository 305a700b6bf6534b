"""Kinds of values, and the check of a nested record against a table of them.

A table maps the path of a field to its kind. In a path ``*`` is every value of an object, ``[]`` each entry of a list,
and a field that ends in ``!`` must be there. What a path goes through is an object or a list, or null, where the
table says no more. Fields that no path names may hold anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

# Beyond every time, rate, size and ratio that there is, and small enough for products and squares to be finite.
_LARGEST = 1e100
LARGEST_COUNT = 2**63 - 1  # that an array of numbers holds


class Kind(NamedTuple):
    """Values of ``types``, not of what is derived from them, that ``fits`` takes; ``words`` follow "must be"."""

    types: frozenset[type]
    words: str
    fits: Callable[[Any], bool] | None = None

    def takes(self, value: Any) -> bool:
        """Return whether a value is of this kind."""
        return type(value) in self.types and (self.fits is None or self.fits(value))


def kind(words: str, *types: type, fits: Callable[[Any], bool] | None = None) -> Kind:
    """Return the kind of values of ``types``, of those only that ``fits`` takes."""
    return Kind(frozenset(types), words, fits)


def or_none(of: Kind) -> Kind:
    """Return the kind that also takes null."""
    fits = of.fits and (lambda value: value is None or of.fits(value))
    return Kind(of.types | {type(None)}, f"{of.words}, or null", fits)


def one_of(*texts: str) -> Kind:
    """Return the kind of a value that is one of ``texts``."""
    return kind(f"one of {', '.join(texts)}", str, fits=texts.__contains__)


def count(least: int = 0, most: int = LARGEST_COUNT) -> Kind:
    """Return the kind of a whole number between two, both included."""
    return kind(f"a whole number from {least} to {most}", int, fits=lambda value: least <= value <= most)


def list_of(of: Kind) -> Kind:
    """Return the kind of a list of values of one kind."""
    return kind(f"a list, each entry {of.words}", list, fits=lambda entries: all(map(of.takes, entries)))


def _are_numbers(entries: list) -> bool:
    """Check thousands of samples as a whole; a sum that is not a number says that an entry is none."""
    if not set(map(type, entries)) <= NUMBER.types:
        return False
    largest = LARGEST_COUNT if int in map(type, entries) else _LARGEST
    try:
        total = sum(entries)
    except OverflowError:  # a whole number that is no other
        return False
    return not entries or (-largest <= min(entries) and max(entries) <= largest and not math.isnan(total))


def _are_positive(entries: list) -> bool:
    return _are_numbers(entries) and (not entries or min(entries) >= 1 / _LARGEST)


def _is_finite(value: float) -> bool:
    """Return whether a number is one; what others may be divided by is 0, or far from it."""
    largest = _LARGEST if type(value) is float else LARGEST_COUNT
    return -largest <= value <= largest and (not value or abs(value) >= 1 / _LARGEST)


def bounded(value: Any) -> Any:
    """Return a record with its finite numbers within what a number may be: those of outputs are what a candidate chose.

    1e-310 for a zero is right, and an error of 1e200 is as wrong as one of 1e100.
    """
    if type(value) is dict:
        return {name: bounded(entry) for name, entry in value.items()}
    if type(value) in (list, tuple):
        return [bounded(entry) for entry in value]
    if type(value) is not float or not value or not math.isfinite(value) or 1 / _LARGEST <= abs(value) <= _LARGEST:
        return value
    return math.copysign(_LARGEST, value) if abs(value) > 1 else 0.0


TEXT, FLAG = kind("text", str), kind("true or false", bool)
LINE = kind("text of one line", str, fits=lambda text: "\n" not in text)  # shown among others, it would make another
OBJECT, LIST = kind("an object", dict), kind("a list", list)
NUMBER = kind("a finite number", float, int, fits=_is_finite)
POSITIVE = kind("a positive finite number", float, int, fits=lambda value: _is_finite(value) and value > 0)
FROM_0 = kind("a finite number from 0", float, int, fits=lambda value: _is_finite(value) and value >= 0)
# Infinite where a spread is not known.
FIGURE = kind("a number", float, int, fits=lambda value: NUMBER.fits(value) or abs(value) == math.inf)
PAIR = kind("two numbers", list, fits=lambda entries: len(entries) == 2 and all(map(FIGURE.takes, entries)))
NUMBERS = kind("a list of finite numbers", list, fits=_are_numbers)
POSITIVES = kind("a list of positive finite numbers", list, fits=_are_positive)
_THROUGH = or_none(OBJECT)


@dataclass(slots=True)
class Shape:
    """A table of fields as a tree, made by ``shape``."""

    kind: Kind = _THROUGH
    fields: dict[str, Shape] = field(default_factory=dict)
    every: Shape | None = None  # of the values of an object, or the entries of a list
    required: list[str] = field(default_factory=list)
    is_leaf: bool = True

    def check(self, record: Any) -> None:
        """Raise ValueError that names the first field of ``record`` that does not fit."""
        if wrong := self._misfit(record):
            raise ValueError(wrong.removeprefix("."))

    def _misfit(self, value: Any) -> str:
        """Return the path below here and what must be there; '' where all fits."""
        if not self.kind.takes(value):
            return f" must be {self.kind.words}, and is {value!r:.80}"
        if type(value) is dict:
            for name in self.required:
                if name not in value:
                    return f".{name} is missing"
            fields, every = self.fields, self.every
            for name, entry in value.items():
                part = fields.get(name, every)
                if part is not None:
                    types, _, fits = part.kind
                    if part.is_leaf and type(entry) in types and (fits is None or fits(entry)):
                        continue  # without a call for each field, whole logs load in little more time
                    if wrong := part._misfit(entry):
                        return f".{name[:80]}{wrong}"
        elif type(value) is list and self.every:
            for index, entry in enumerate(value):
                if wrong := self.every._misfit(entry):
                    return f"[{index}]{wrong}"
        return ""


def shape(table: Mapping[str, Kind]) -> Shape:
    """Return the tree of a table."""
    root = Shape(OBJECT)
    for path, of in table.items():
        place = root
        for name in path.removesuffix("!").replace("[]", ".[]").split("."):
            above, place = place, _below(place, name)
        place.kind = of
        if path.endswith("!"):
            above.required.append(name)
    return root


def _below(place: Shape, name: str) -> Shape:
    place.is_leaf = False
    if name == "[]" and place.kind is _THROUGH:
        place.kind = or_none(LIST)
    if name not in ("*", "[]"):
        return place.fields.setdefault(name, Shape())
    place.every = place.every or Shape()
    return place.every
