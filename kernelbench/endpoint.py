"""A language model behind any endpoint that speaks OpenAI's chat-completions protocol.

The official package makes the requests. What it leaves to its users is here: answers
that are cut or garbled are asked for again too, and a rate limit holds back all threads,
not only the one that met it.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from harness.json_text import parse_json
from kernelbench import bounded_reply
from kernelbench.completion import Completion, Try

_MOST_CHARACTERS = 1 << 20  # of an answer, with its tool calls; a quarter of a million tokens
MOST_CALLS = 32  # of tools in one answer; later ones are left out, as if the model had not made them
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 60.0
_TIMES_WAITED = 4  # a whole answer may take so many times what is waited for a piece of it
_LONGEST_ASKED_S = 600.0  # by a Retry-After header; who asks for more is asked again by hand
_MOST_SAID = 2000  # characters of an error, which an endpoint may fill as it likes
# Variables that the package sends the values of, whatever the address: they are meant for OpenAI's own.
_OF_OPENAI = ("OPENAI_CUSTOM_HEADERS", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY")
_HIGHEST_PRICE = 1e9  # of a million tokens, which more than anything asks for
_DIGITS = 12  # of a cost in USD
_TRIES = 8  # of one request; with the waits between them some two minutes
_TRANSIENT = (408, 409, 425, 429)  # and all from 500 on

Message = dict[str, Any]  # role, content; of tools also tool_calls or tool_call_id


def checked_prices(prices: Sequence[float]) -> tuple[float, float]:
    """Return the prices of prompts and of answers; ValueError where they are none."""
    if len(prices) != 2 or not all(0 <= price <= _HIGHEST_PRICE for price in prices):
        most = f"{_HIGHEST_PRICE:,.0f} USD"
        raise ValueError(f"a price must be two numbers, of prompts and of answers, each from 0 to {most}")
    prompt, completion = map(float, prices)
    return prompt, completion


def address_of(base_url: str | None) -> str | None:
    """Return the address that is asked, None for the package's own; ValueError for a password in it: it is kept."""
    address = base_url or os.environ.get("OPENAI_BASE_URL") or None
    if "@" in (address or ""):
        raise ValueError("the address of a model holds a name or a password: put a key into a variable instead")
    return address


class ModelError(Exception):
    """A model that cannot be asked, and what to do about it."""

    lost_tries = 0  # of the request, that may be billed


class RequestRefused(ModelError):
    """A model that does not take this request, and may take others: it is too long, for example."""


@dataclass(frozen=True)
class About:
    """Origin of a request: the problem, the number of its call, the tags of the caller."""

    problem: str
    number: int
    tags: dict[str, Any]


class _Garbled(Exception):
    """An answer that is not of the protocol."""


@contextlib.contextmanager
def _hidden(*names: str) -> Iterator[None]:
    """Take variables out of the environment for a while."""
    held = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(held)


class Endpoint:
    """One model. ``prices`` are USD for a million tokens of prompt and of completion; without them costs are unknown.

    ``fields`` go into every request and win over what a solver asks for; None leaves a field out.
    The key is read from the environment variable ``key_variable`` and kept nowhere. ``tries`` of one request may be set
    to fewer, where somebody waits.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        *,
        key_variable: str = "OPENAI_API_KEY",
        prices: tuple[float, float] | None = None,
        fields: dict[str, Any] | None = None,
        at_once: int = 16,
        timeout_s: float = 900.0,
        stream: bool = False,
    ):
        try:
            import openai
        except ImportError:
            raise ModelError("asking a model needs the openai package: pip install 'kernelbench[llm]'") from None
        try:
            base_url = address_of(base_url)
        except ValueError as error:  # which does not repeat the password
            raise ModelError(str(error)) from None
        key = os.environ.get(key_variable)
        if not key and base_url is None:
            raise ModelError(f"{key_variable} is not set: put the key there, or name an endpoint with --base-url")
        most_bytes = bounded_reply.MOST_BYTES if stream else bounded_reply.MOST_WHOLE_BYTES
        http_client = openai.DefaultHttpxClient(
            event_hooks=bounded_reply.hooks(_TIMES_WAITED * timeout_s, most_bytes),
            follow_redirects=False,  # which would send prompts to whatever address an endpoint names
        )
        try:
            with _hidden(*_OF_OPENAI) if base_url else contextlib.nullcontext():
                self._client = openai.OpenAI(
                    base_url=base_url, api_key=key or "none", max_retries=0, timeout=timeout_s,
                    default_headers=bounded_reply.HEADERS, http_client=http_client,
                )  # fmt: skip
        except Exception as error:  # of its transport, which has a class of its own for each version
            raise ModelError(f"{base_url!r:.200} is no address of an endpoint: {error}") from None
        self.model, self.base_url = model, str(self._client.base_url)
        self.fields = fields or {}
        self._key_variable, self._prices = key_variable, checked_prices(prices) if prices else None
        self.tries = _TRIES
        self._stream = stream
        self._places = threading.BoundedSemaphore(at_once)
        self._not_before = 0.0

    def sampling(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The fields of a request in which a solver asks for ``asked``."""
        return {name: value for name, value in {**asked, **self.fields}.items() if value is not None}

    def complete(
        self, messages: list[Message], sampling: dict[str, Any], about: About | None = None, *,
        most_billed: int | None = None,
    ) -> Completion:  # fmt: skip
        """The answer, after as many tries as it takes; ModelError where more would not help.

        ``about`` is for models that are simulated; nothing of it is sent. At most ``most_billed`` tries may be billed.
        """
        lost: list[Try] = []
        try:
            return self._tried(messages, sampling, lost, most_billed)
        except ModelError as error:
            error.lost_tries = len(lost)
            raise

    def _tried(self, messages, sampling, lost: list[Try], most: int | None) -> Completion:
        begin = time.monotonic()
        for number in range(1, self.tries + 1):
            one = Try()
            with self._places:
                time.sleep(max(0.0, self._not_before - time.monotonic()))
                try:
                    text, finish_reason, tool_calls = self._request(messages, sampling, one)
                except (TypeError, AttributeError, NameError):
                    raise  # ours, not the endpoint's
                except Exception as error:
                    lost += [one] if one.may_be_billed(error) else []
                    self._raise_if_final(error)
                    asked_s, failure = self._asked_wait_s(error), error
                else:
                    seconds = time.monotonic() - begin
                    return Completion(text, finish_reason, *one.tokens, seconds, number, tool_calls, lost)
            if len(lost) == most:
                break
            if number < self.tries:
                self._wait_after(failure, number, asked_s)
        raise ModelError(f"{self.base_url} gave no answer in {number} tries; the last one: {_described(failure)}")

    def cost_usd(self, prompt_tokens: float | None, completion_tokens: float | None) -> float | None:
        """None where the tokens or the prices are unknown."""
        counts = (prompt_tokens, completion_tokens)
        if self._prices is None or None in counts:
            return None
        return round(sum(count * price for count, price in zip(counts, self._prices)) / 1e6, _DIGITS)

    def close(self) -> None:
        self._client.close()

    def _request(self, messages, sampling, one: Try) -> tuple[str, str | None, list[dict[str, Any]]]:
        """Text, reason of its end and tool calls of one reply, as an endpoint sent them; ``one`` gets its usage.

        The package's objects of a reply take 600 times its size, and some of its fields for arguments of functions.
        """
        if self._stream:
            return self._streamed(messages, sampling, one)
        create = self._client.chat.completions.with_raw_response.create
        text = create(model=self.model, messages=messages, extra_body=sampling).http_response.text
        try:
            answer = parse_json(text)
            choice = answer["choices"][0]
            one.has_begun, one.usage = True, answer.get("usage")
            said = _text(choice["message"].get("content"))
            asked = (choice["message"].get("tool_calls") or [])[:MOST_CALLS]
            called = _bounded(said, [_tool_call(call) for call in asked])
            return said, _text(choice.get("finish_reason")) or None, called
        except (AttributeError, LookupError, TypeError):
            raise _Garbled(f"an answer without choices: {text[:200]!r}") from None

    def _streamed(self, messages, sampling, one: Try) -> tuple[str, str | None, list[dict[str, Any]]]:
        pieces, finish_reason = [], None
        called: dict[int, dict[str, Any]] = {}
        options = {"stream": True, "stream_options": {"include_usage": True}}
        create = self._client.chat.completions.with_streaming_response.create
        with create(model=self.model, messages=messages, extra_body=sampling, **options) as response:
            for text in _events(bounded_reply.lines(response.iter_bytes())):
                try:
                    chunk = parse_json(text)
                    if chunk.get("error"):
                        raise _Garbled(f"an error in the middle of its answer: {text[:200]!r}")
                    one.usage = chunk.get("usage") or one.usage
                    for choice in chunk.get("choices") or []:
                        one.has_begun = True
                        pieces.append(_text(choice["delta"].get("content")))
                        for part in choice["delta"].get("tool_calls") or []:
                            _add_part(called, part)
                        finish_reason = _text(choice.get("finish_reason")) or finish_reason
                except (AttributeError, LookupError, TypeError):
                    raise _Garbled(f"a piece of another form: {text[:200]!r}") from None
        if finish_reason is None:
            raise _Garbled("a stream that ended in the middle of its answer")
        text = "".join(pieces)
        calls = [{**call, "arguments": "".join(call["arguments"])} for _, call in sorted(called.items())]
        return text, finish_reason, _bounded(text, calls)

    def _raise_if_final(self, error: Exception) -> None:
        if isinstance(error.__cause__ or error, bounded_reply.TooMuch):
            raise ModelError(f"{self.base_url} is no endpoint to work with: {error.__cause__ or error}") from None
        status = getattr(error, "status_code", None)
        if status in (401, 403):
            raise ModelError(
                f"{self.base_url} refuses the key in {self._key_variable} (HTTP {status}): {_described(error)}"
            ) from None
        if status == 404:
            raise ModelError(
                f"{self.base_url} has no model '{self.model}', or no chat completions at this address: "
                f"{_described(error)}"
            ) from None
        if getattr(error, "code", None) == "insufficient_quota":
            raise ModelError(f"{self.base_url}: the account's quota is used up: {_described(error)}") from None
        if status is not None and status < 500 and status not in _TRANSIENT:
            raise RequestRefused(f"{self.base_url} refuses the request (HTTP {status}): {_described(error)}") from None

    def _asked_wait_s(self, error: Exception) -> float | None:
        """Return the seconds that the endpoint asks to wait; ModelError where that is longer than anybody waits."""
        asked = _retry_after_s(error)
        if asked is not None and asked > _LONGEST_ASKED_S:
            raise ModelError(
                f"{self.base_url} asks to wait {asked:,.0f} s, and at most {_LONGEST_ASKED_S:.0f} s are waited: "
                f"go on later; it said {_described(error)}"
            ) from None
        return asked

    def _wait_after(self, error: Exception, number: int, asked: float | None) -> None:
        """Wait as long as the endpoint asks, else about twice as long each time."""
        if getattr(error, "status_code", None) == 429 and asked is not None:
            self._not_before = max(self._not_before, time.monotonic() + asked)
            return
        longest = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** (number - 1))
        time.sleep(asked if asked is not None else random.uniform(longest / 2, longest))


def _text(value: Any) -> str:
    """Return a text of an answer, '' for None, with marks for halves of characters, which nobody can write.

    Raises _Garbled for what is no text.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _Garbled(f"an answer with a {type(value).__name__} for a text")
    if len(value) > _MOST_CHARACTERS:
        raise _Garbled(f"an answer of {len(value):,} characters; at most {_MOST_CHARACTERS:,} are kept")
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _bounded(text: str, called: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tool calls of an answer; raises _Garbled where they and its ``text`` are too long together."""
    characters = len(text) + sum(len(part) for call in called for part in call.values())
    if characters > _MOST_CHARACTERS:
        raise _Garbled(f"an answer of {characters:,} characters; at most {_MOST_CHARACTERS:,} are kept")
    return called


def _events(lines: Iterable[str]) -> Iterator[str]:
    """Yield the data of a stream of events, each of which has one line of it."""
    for line in lines:
        if line.startswith("data:"):
            data = line.removeprefix("data:").strip()
            if data == "[DONE]":
                return
            if len(data) > bounded_reply.MOST_WHOLE_BYTES:
                raise _Garbled(f"a piece of {len(data):,} characters")
            yield data


def _tool_call(call: Any) -> dict[str, Any]:
    function = call["function"]
    return {
        "id": _text(call.get("id")), "name": _text(function.get("name")), "arguments": _text(function.get("arguments")),
    }  # fmt: skip


def _add_part(called: dict[int, dict[str, Any]], part: Any) -> None:
    """Add a streamed piece of a tool call: its first piece has id and name, all have pieces of the arguments."""
    if type(part["index"]) is not int:
        raise _Garbled("a tool call without a number")
    if part["index"] not in called and len(called) >= MOST_CALLS:
        return  # each takes far more memory than its bytes, and no more are made
    call = called.setdefault(part["index"], {"id": "", "name": "", "arguments": []})
    call["id"] = _text(part.get("id")) or call["id"]
    if function := part.get("function"):
        call["name"] = _text(function.get("name")) or call["name"]
        call["arguments"].append(_text(function.get("arguments")))


def _retry_after_s(error: Exception) -> float | None:
    """Seconds that the Retry-After header asks for; it holds a number or a date."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    value = headers.get("retry-after")
    if value is None:
        return None
    with contextlib.suppress(ValueError):
        return max(0.0, float(value)) if not math.isnan(float(value)) else None
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _described(error: Exception) -> str:
    cause = f" ({error.__cause__})" if error.__cause__ else ""
    said = f"{type(error).__name__}: {error}{cause}"
    return said if len(said) <= _MOST_SAID else f"{said[:_MOST_SAID]} ... ({len(said):,} characters)"
