"""One call of an operator, as a mutation sees and changes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor


class Inapplicable(Exception):
    """A mutation that has nothing to change in this call."""


@dataclass
class Call:
    """One operator call: the overload, and its arguments by the names of the schema."""

    func: Any
    arguments: dict[str, Any]

    @property
    def name(self) -> str:
        return self.func.overloadpacket.__name__

    def run(self, /, **changed: Any) -> Any:  # an operator may call an argument self, too
        """The call, with some arguments changed."""
        positional, named = [], {}
        for argument in self.func._schema.arguments:
            if argument.name not in self.arguments and argument.name not in changed:
                continue
            value = changed.get(argument.name, self.arguments.get(argument.name))
            if argument.kwarg_only:
                named[argument.name] = value
            else:
                positional.append(value)
        return self.func(*positional, **named)

    @property
    def first(self) -> Any:
        """The first argument, which is what most operators work on."""
        return next(iter(self.arguments.values()), None)

    @property
    def tensors(self) -> list[Tensor]:
        return [value for value in self.arguments.values() if isinstance(value, Tensor)]


def need(condition: Any) -> None:
    """Raise Inapplicable unless ``condition`` holds."""
    if not condition:
        raise Inapplicable


def refuse() -> Any:
    """Raise Inapplicable, in an expression."""
    raise Inapplicable


def leading(result: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return ``result`` with its first tensor changed; norms and pools return several."""
    if isinstance(result, Tensor):
        return change(result)
    return (change(result[0]), *result[1:])
