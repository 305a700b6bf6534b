"""A model's answer as data: JSON that is asked for, read and checked. A malformed one costs a further turn.

What cannot be read after ``repairs`` further turns is None, and the strategy goes on without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from harness.json_text import parse_writable_json
from kernelbench.endpoint import Message

if TYPE_CHECKING:
    from kernelbench.solvers.task import Task

Value = TypeVar("Value")

_BLOCK = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?```", re.DOTALL)
REPAIR = (
    "That could not be read: {reason}. Answer again with the whole answer as one JSON object in a ```json block, in "
    "the form that was asked for, and nothing else."
)


_MOST_SAID = 2000  # characters of what was wrong, which may quote an answer


class Malformed(ValueError):
    """An answer that is not of the form that was asked for; the message is for the model."""


def ask_json(
    task: Task,
    messages: list[Message],
    read: Callable[[dict[str, Any]], Value],
    *,
    repairs: int = 2,
    **asking: Any,
) -> Value | None:
    """Return what ``read`` makes of the JSON object in the model's answer; None where no answer could be read.

    Parameters
    ----------
    read
        Takes the object apart; raises Malformed, KeyError, TypeError, ValueError or OverflowError where it is
        another one.
    repairs
        Further turns, in each of which the model is told what was wrong.
    asking
        What ``task.llm.ask`` takes beside the conversation.
    """
    for turn in range(repairs + 1):
        answer = task.llm.ask(messages, **asking)
        try:
            return read(object_in(answer.text))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            reason = (f"there is no {error}" if isinstance(error, KeyError) else str(error))[:_MOST_SAID]
            task.say(f"malformed answer ({'no more turns' if turn == repairs else 'asking again'}): {reason}")
            messages = [
                *messages,
                {"role": "assistant", "content": answer.text},
                {"role": "user", "content": REPAIR.format(reason=reason)},
            ]
    return None


def object_in(text: str) -> dict[str, Any]:
    """Return the JSON object of an answer: the last block that holds one, else the text itself. Raises Malformed."""
    begin, end = text.find("{"), text.rfind("}")
    reason = "there is no JSON object in it"
    for candidate in [*reversed(_BLOCK.findall(text)), text[begin : end + 1] if begin >= 0 else ""]:
        try:
            found = parse_writable_json(candidate)
        except ValueError as error:
            reason = f"it is not JSON: {error}" if candidate.strip() else reason
            continue
        if isinstance(found, dict):
            return found
        reason = "it is JSON, but no object"
    raise Malformed(reason)
