"""Tools that a model may call while it answers, by OpenAI's protocol or in plain text.

Each call of the model is in ``calls.jsonl``, and what a tool said in ``facts.jsonl``: nothing runs twice. A tool that
raises ValueError, or is called with wrong arguments, answers with the message, and the model may try again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.json_text import parse_writable_json
from kernelbench.endpoint import Message

OPENAI, TEXT = "openai", "text"
PROTOCOLS = (OPENAI, TEXT)

_BLOCK = re.compile(r"```tool[ \t]*\n(.*?)\n?```", re.DOTALL)
_MOST_CHARACTERS = 20_000  # of one tool's answer, about 5,000 tokens: more crowds out the problem

_TYPES = {
    "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,), "array": (list,), "object": (dict,),
}  # fmt: skip

_INSTRUCTIONS = """You may call tools before you give your answer. To call one, end your message with a block like this,
and wait for its result:

```tool
{"name": "NAME", "arguments": {"ARGUMENT": "VALUE"}}
```

The tools:
"""


@dataclass(frozen=True)
class Tool:
    """A function that a model may call. ``parameters`` is a JSON schema of the arguments."""

    name: str
    description: str
    run: Callable[..., str]
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})

    def to_json(self) -> dict[str, Any]:
        """Return the tool as a request of OpenAI's protocol has it."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


def described(messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
    """Return a conversation whose first message also explains the tools, for a model without OpenAI's protocol."""
    listed = [f"- {tool.name}: {tool.description} Arguments: {json.dumps(tool.parameters)}" for tool in tools]
    first, *rest = messages
    return [{**first, "content": f"{first['content']}\n\n{_INSTRUCTIONS}" + "\n".join(listed)}, *rest]


def calls_in(text: str) -> list[dict[str, Any]]:
    """Return the tool calls of a plain-text answer, as of ``Call.tool_calls``; a block that is no JSON is one too."""
    found = []
    for number, block in enumerate(_BLOCK.findall(text), 1):
        try:
            wanted = parse_writable_json(block)
            name, arguments = str(wanted["name"]), wanted.get("arguments", {})
        except (ValueError, TypeError, LookupError, AttributeError):
            name, arguments = "", block
        found.append({"id": f"text_{number}", "name": name, "arguments": arguments})
    return found


def answer_of(call: dict[str, Any], tools: Sequence[Tool]) -> str:
    """Run one tool call; return what the tool says, or why it could not be called, up to ``_MOST_CHARACTERS``."""
    said = _said(call, tools)
    return said if len(said) <= _MOST_CHARACTERS else said[:_MOST_CHARACTERS] + "\n[the rest is left out]"


def _said(call: dict[str, Any], tools: Sequence[Tool]) -> str:
    tool = next((tool for tool in tools if tool.name == call["name"]), None)
    if tool is None:
        return f"error: there is no tool {call['name']!r}; there are {', '.join(tool.name for tool in tools)}"
    arguments = call["arguments"]
    try:
        arguments = parse_writable_json(arguments or "{}") if isinstance(arguments, str) else arguments
        if not isinstance(arguments, dict):
            raise ValueError("arguments must be a JSON object")
        for name, value in arguments.items():
            wanted = tool.parameters.get("properties", {}).get(name, {}).get("type")
            if wanted in _TYPES and type(value) not in _TYPES[wanted]:
                raise ValueError(f"{name} must be of type {wanted}")
        return tool.run(**arguments)
    except (ValueError, TypeError) as error:
        return f"error: {tool.name}: {error}"


def exchange(protocol: str, answer: str, calls: list[dict[str, Any]], said: list[str]) -> list[Message]:
    """Return the messages that follow a conversation: the model's answer with its tool calls, and what they said."""
    if protocol == TEXT:
        results = "\n\n".join(f"Result of {call['name'] or 'your block'}:\n{text}" for call, text in zip(calls, said))
        return [{"role": "assistant", "content": answer}, {"role": "user", "content": results}]
    asked = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": call["arguments"]},
        }
        for call in calls
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": text} for call, text in zip(calls, said)]
    return [{"role": "assistant", "content": answer, "tool_calls": asked}, *results]
