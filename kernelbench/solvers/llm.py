"""The model as a solver sees it: what was answered before a kill is answered again from the log."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from kernelbench.endpoint import Endpoint, Message, ModelError
from kernelbench.solvers import answers
from kernelbench.solvers.journal import Call, Diverged, Journal, digest


@dataclass(frozen=True)
class Answer:
    """A model's answer; yield it and its code is evaluated."""

    call: Call
    kind: str = "py"

    @property
    def text(self) -> str:
        return self.call.answer

    @property
    def code(self) -> str:
        """The solution in it; raises ``answers.NoCode`` where there is none."""
        return answers.extract(self.text, self.kind, finished=self.call.finish_reason != "length")


class Llm:
    """The model of one task; ``asking`` is entered for every call."""

    def __init__(
        self,
        problem: str,
        endpoint: Endpoint | None,
        journal: Journal,
        asking: Callable[[], AbstractContextManager],
    ):
        self.calls: list[Call] = []  # answered so far, in order
        self.model = endpoint.model if endpoint else None
        self.base_url = endpoint.base_url if endpoint else None
        self._problem, self._endpoint, self._journal = problem, endpoint, journal
        self._asking = asking
        self._lock = threading.Lock()
        self._asked = 0

    def ask(self, messages: list[Message] | str, kind: str = "py", **sampling: Any) -> Answer:
        """One answer to a conversation, or to a single message of the user.

        ``sampling`` are fields of the request, such as ``temperature``; those given on the command
        line win. ``kind`` is what the code in the answer is: ``py``, ``cu`` or ``cpp``. Raises
        ModelError where the model cannot be asked.
        """
        return self._answer(*self._numbered(_messages(messages), sampling), kind)

    def samples(self, messages: list[Message] | str, count: int, kind: str = "py", **sampling: Any) -> Iterator[Answer]:
        """``count`` answers to the same conversation, asked for at once, in order."""
        futures = [
            in_background(self._answer, *self._numbered(_messages(messages), sampling), kind) for _ in range(count)
        ]
        for future in futures:
            yield future.result()

    def _numbered(self, messages: list[Message], sampling: dict[str, Any]) -> tuple[int, list[Message], dict]:
        """A request with its number, which tells it from the others after a kill too."""
        if self._endpoint is None:
            raise ModelError("this solver asks a model: name one with --model, and where it is with --base-url")
        with self._lock:
            self._asked += 1
            return self._asked, messages, self._endpoint.sampling(sampling)

    def _answer(self, number: int, messages: list[Message], sampling: dict[str, Any], kind: str) -> Answer:
        request = digest([self._endpoint.model, messages, sampling])
        with self._asking():
            call = self._journal.calls.get((self._problem, number))
            if call is None:
                done = self._endpoint.complete(messages, sampling)
                call = Call(
                    self._problem, number, request, messages, sampling, done.text, done.finish_reason,
                    {"prompt": done.prompt_tokens, "completion": done.completion_tokens},
                    self._endpoint.cost_usd(done.prompt_tokens, done.completion_tokens),
                    round(done.seconds, 3), done.tries,
                )  # fmt: skip
                self._journal.add_call(call)
            elif call.request != request:
                raise Diverged(
                    f"the solver's model call {number} is not the one in the log. A solver that is resumed must do the "
                    "same again: draw from task.rng, read no clock, and ask for several answers with llm.samples"
                )
        with self._lock:
            self.calls.append(call)
        return Answer(call, kind)


def in_background(function: Callable, *arguments: Any) -> Future:
    """The future of a call in a thread that no exit of the program waits for."""
    future: Future = Future()

    def work() -> None:
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return future


def _messages(messages: list[Message] | str) -> list[Message]:
    return [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
