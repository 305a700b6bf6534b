"""The model as a solver sees it: what was answered before a kill is answered again from the log."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from kernelbench.endpoint import MOST_CALLS, About, Endpoint, Message, ModelError
from kernelbench.solvers.log.journal import Call, Diverged, Journal, digest
from kernelbench.solvers.model import answers, tools
from kernelbench.solvers.model.tools import Tool

MOST_TURNS = 16  # model calls of one question with tools: a model that never answers ends here
_MOST_CHARACTERS = 2 << 20  # of a conversation with tools, half a million tokens; each call logs all of it


@dataclass(frozen=True)
class Answer:
    """A model's answer; yield it and its code is evaluated. ``extract`` finds the code in it."""

    call: Call
    kind: str = "py"
    extract: Callable[..., str] = answers.extract

    @property
    def text(self) -> str:
        return self.call.answer

    @property
    def code(self) -> str:
        """The solution in it; raises ``answers.NoCode`` where there is none."""
        return self.extract(self.text, self.kind, finished=self.call.finish_reason != "length")

    @property
    def no_code(self) -> str:
        """Return why there is no solution in it; '' where there is one."""
        try:
            return "" if self.code else "the code is empty"
        except answers.NoCode as error:
            return str(error)


@dataclass(frozen=True)
class _Request:
    number: int  # of the call within its problem
    messages: list[Message]
    sampling: dict[str, Any]
    tags: dict[str, Any]


@dataclass(frozen=True)
class Hooks:
    """Hooks around the calls of a task's model.

    ``enter`` is called before each call, with whether it may come after the last attempt, and raises where there is
    nothing to ask for, and ``ask_anew`` before one that the log has no answer of. ``asking`` is entered around it,
    ``answered`` is told of every new one, ``tags`` gives its tags.
    """

    asking: Callable[[], AbstractContextManager]
    enter: Callable[[bool], None] = lambda after_last: None
    tags: Callable[[], dict[str, Any]] = dict
    answered: Callable[[Call], None] = lambda call: None
    ask_anew: Callable[[], None] = lambda: None


class Llm:
    """The model of one task.

    ``protocol`` is how tools are called where ``ask`` does not say: ``openai`` or ``text``.
    """

    def __init__(
        self,
        problem: str,
        endpoint: Endpoint | None,
        journal: Journal,
        hooks: Hooks,
        *,
        protocol: str = tools.OPENAI,
        extract: Callable[..., str] | None = None,
    ):
        self._extract = extract or getattr(endpoint, "extract", answers.extract)
        self.calls: list[Call] = []  # answered so far, in order
        self.model = endpoint.model if endpoint else None
        self.base_url = endpoint.base_url if endpoint else None
        self._problem, self._endpoint, self._journal = problem, endpoint, journal
        self._hooks = hooks
        self._protocol = protocol
        self._lock = threading.Lock()
        self._asked = 0

    def ask(
        self,
        messages: list[Message] | str,
        kind: str = "py",
        *,
        tools: Sequence[Tool] = (),
        protocol: str | None = None,
        after_last: bool = False,
        **sampling: Any,
    ) -> Answer:
        """One answer to a conversation, or to a single message of the user.

        Parameters
        ----------
        kind
            Kind of the code in the answer: ``py``, ``cu`` or ``cpp``.
        tools
            What the model may call before it answers, up to ``MOST_TURNS`` model calls in all, and ``MOST_CALLS``
            of tools in each answer.
        protocol
            How tools are called: ``openai``, or ``text`` for models that do not know that protocol.
        after_last
            Ask even where no attempts are left, for what is to be learned from the last one.
        sampling
            Fields of the request, such as ``temperature``; those given on the command line win.

        Raises
        ------
        ModelError
            Where the model cannot be asked.
        """
        messages = _messages(messages)
        if not tools:
            return self._answer(self._numbered(messages, sampling, after_last), kind)
        return self._with_tools(messages, kind, list(tools), protocol or self._protocol, after_last, sampling)

    def samples(self, messages: list[Message] | str, count: int, kind: str = "py", **sampling: Any) -> Iterator[Answer]:
        """``count`` answers to the same conversation, asked for at once, in order."""
        futures = [
            in_background(self._answer, self._numbered(_messages(messages), sampling), kind) for _ in range(count)
        ]
        for future in futures:
            yield future.result()

    def _with_tools(self, messages, kind, offered: list[Tool], protocol: str, after_last: bool, sampling) -> Answer:
        if protocol not in tools.PROTOCOLS:
            raise ValueError(f"there is no tool protocol {protocol!r}; use one of {', '.join(tools.PROTOCOLS)}")
        if protocol == tools.TEXT:
            messages = tools.described(messages, offered)
        else:
            sampling = {**sampling, "tools": [tool.to_json() for tool in offered]}
        for turn in range(MOST_TURNS):
            last = turn == MOST_TURNS - 1 or len(json.dumps(messages)) > _MOST_CHARACTERS
            if last:  # it is to answer
                sampling = {**sampling, "tool_choice": "none"} if protocol == tools.OPENAI else sampling
            answer = self._answer(self._numbered(messages, sampling, after_last), kind)
            wanted = answer.call.tool_calls if protocol == tools.OPENAI else tools.calls_in(answer.text)
            wanted = wanted[:MOST_CALLS]
            if last or not wanted:
                break
            said = [self._tool_said(answer.call.number, index, call, offered) for index, call in enumerate(wanted)]
            messages = [*messages, *tools.exchange(protocol, answer.text, wanted, said)]
        return answer

    def _tool_said(self, number: int, index: int, call: dict[str, Any], offered: list[Tool]) -> str:
        return self._journal.fact(self._problem, f"tool:{number}:{index}", lambda: tools.answer_of(call, offered))

    def _numbered(self, messages: list[Message], sampling: dict[str, Any], after_last: bool = False) -> _Request:
        """A request with its number, which tells it from the others after a kill too."""
        if self._endpoint is None:
            raise ModelError("this solver asks a model: name one with --model, and where it is with --base-url")
        self._hooks.enter(after_last)
        with self._lock:
            self._asked += 1
            return _Request(self._asked, messages, self._endpoint.sampling(sampling), dict(self._hooks.tags()))

    def _answer(self, request: _Request, kind: str) -> Answer:
        sent = digest([self._endpoint.model, request.messages, request.sampling])
        with self._hooks.asking():
            call = self._journal.calls.get((self._problem, request.number))
            if call is None:
                self._hooks.ask_anew()
                call = self._asked_now(request, sent)
                self._journal.add_call(call)
                self._hooks.answered(call)
            elif call.request != sent:
                raise Diverged(
                    f"the solver's model call {request.number} is not the one in the log. A solver that is resumed "
                    "must do the same again: draw from task.rng, read no clock, and ask for several answers with "
                    "llm.samples"
                )
        with self._lock:
            self.calls.append(call)
        return Answer(call, kind, self._extract)

    def _asked_now(self, request: _Request, sent: str) -> Call:
        about = About(self._problem, request.number, request.tags)
        done = self._endpoint.complete(request.messages, request.sampling, about)
        prompt, completion = done.spent_tokens
        return Call(
            self._problem, request.number, sent, request.messages, request.sampling, done.text, done.finish_reason,
            {"prompt": prompt, "completion": completion}, self._endpoint.cost_usd(prompt, completion),
            round(done.seconds, 3), done.tries, done.tool_calls, request.tags, len(done.lost),
        )  # fmt: skip


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
