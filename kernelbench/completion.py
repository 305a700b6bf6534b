"""The answer to one request to a model, and the tokens that all tries of the request took.

A stream is cut, an answer comes too late or is longer than may be kept: it was generated all the same, and is usually
billed. Endpoints tell the usage at the end of an answer, so that of a lost one it is mostly not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

# Errors after a request was sent in whole, by name: the package's transport has other classes in each version.
_WHILE_READ = ("ReadTimeout", "ReadError", "RemoteProtocolError", "TooMuch")


@dataclass
class Try:
    """Facts about one try: whether its answer has begun, and the usage that the endpoint told."""

    has_begun: bool = False
    usage: Any = None

    @property
    def tokens(self) -> tuple[int | None, int | None]:
        """Tokens of the prompt and of the answer; None where the endpoint gives none that can be one."""
        return self._count("prompt_tokens"), self._count("completion_tokens")

    def _count(self, name: str) -> int | None:
        count = self.usage.get(name) if isinstance(self.usage, dict) else None
        return count if type(count) is int and 0 <= count < 1 << 53 else None

    def may_be_billed(self, error: Exception) -> bool:
        """Return whether an answer may have been generated in a try that ended with ``error``.

        Its answer had begun, or the request was sent in whole and the reply did not come, or not to its end. Endpoints
        that reply with an HTTP error have generated nothing.
        """
        return self.has_begun or any(type(one).__name__ in _WHILE_READ for one in (error, error.__cause__))


@dataclass(frozen=True)
class Completion:
    text: str
    finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    seconds: float  # with all tries and waits
    tries: int
    tool_calls: list[dict[str, Any]] = field(default_factory=list)  # id, name, arguments as JSON text
    lost: list[Try] = field(default_factory=list)  # without an answer, that may be billed

    @property
    def spent_tokens(self) -> tuple[int | None, int | None]:
        """Tokens of prompts and of answers, those of lost tries too; None where those of the answer are not known.

        A lost try whose tokens are not known counts as many as the answer: it was asked for the same.
        """
        prompts, answers = zip(*(one.tokens for one in self.lost)) if self.lost else ((), ())
        return _total(self.prompt_tokens, prompts), _total(self.completion_tokens, answers)


def _total(answered: int | None, lost: Iterable[int | None]) -> int | None:
    if answered is None:
        return None
    return answered + sum(answered if count is None else count for count in lost)
