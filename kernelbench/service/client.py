"""The service from Python: ``kernelbench.reward`` and ``rewards``, evaluated elsewhere. Needs the extra ``client``.

What is said between client and service is one generator, which a blocking and an asynchronous method drive. Every
submission has an id of its own, so that one whose reply was lost can be sent again without being evaluated twice.
"""

from __future__ import annotations

import asyncio
import functools
import os
import re
import secrets
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from typing import Any

from harness.problem.module import ProblemError
from harness.result import Result
from harness.solution.discover import SUFFIXES
from kernelbench.evaluator.client import EvaluationError, outcome_of
from kernelbench.rl import MAX_SPEEDUP, Reward, bands_of, fault_of, fields_of, shaped

try:
    import httpx2
except ImportError as error:
    raise ImportError("Evaluator needs httpx2: pip install 'kernelbench[client]'") from error

TOKEN_VARIABLE = "KERNELBENCH_TOKEN"
_WAIT_S = 20.0  # of one request for answers
_TIMEOUT = httpx2.Timeout(30.0, read=_WAIT_S + 30.0)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 10.0  # between tries to reach a service that restarts
_MAX_IDS = 500  # in one request for answers
_BUSY = 429  # and all from 500 on may be otherwise soon: a proxy says them of a service that restarts

Step = tuple[str, dict[str, Any]] | float  # what to post and where, or how long to pause
Worth = Callable[[Result], Reward]
Talk = Generator[Step, Any, Any]


class Evaluator:
    """An evaluation service at ``url``, to be used from any number of threads or tasks.

    Parameters
    ----------
    token
        Of the service; by default the environment variable ``KERNELBENCH_TOKEN``.
    priority
        From 0 to 9; what has a higher one is evaluated first.
    patience_s
        Seconds without any sign of the service after which its candidates are given up (EvaluationError).

    Raises ValueError where there is no token.
    """

    def __init__(self, url: str, token: str | None = None, *, priority: int = 0, patience_s: float = 600.0):
        token = token or os.environ.get(TOKEN_VARIABLE)
        if not token:
            raise ValueError(f"the service needs a token: Evaluator(url, token=...), or set {TOKEN_VARIABLE}")
        self._url, self._priority, self._patience_s = url.rstrip("/"), priority, patience_s
        self._headers = {"Authorization": f"Bearer {token}"}
        self._client = httpx2.Client(headers=self._headers, timeout=_TIMEOUT)

    def reward(self, problem: str, source: str, **options: Any) -> Reward:
        """Return what ``kernelbench.reward`` returns, evaluated by the service.

        Raises what that raises, and PermissionError where the service does not know the token.
        """
        return _only(self.rewards([(problem, source)], **options))

    def rewards(
        self,
        candidates: Iterable[tuple[str, str] | Mapping[str, Any]],
        *,
        kind: str = "py",
        max_speedup: float = MAX_SPEEDUP,
        exclude: Collection[str] = (),
        **conditions: Any,
    ) -> list[Reward | EvaluationError]:
        """Return what ``kernelbench.rewards`` returns, evaluated by the service.

        Whether a problem exists is for the service to say: what comes before it in the batch is evaluated then.
        """
        worth = functools.partial(shaped, max_speedup=max_speedup, exclude=bands_of(exclude))
        talk = self._talk(list(candidates), kind, worth, conditions)
        reply = None
        while True:
            try:
                step = talk.send(reply)
            except StopIteration as end:
                return end.value
            if isinstance(step, float):
                reply = time.sleep(step)
                continue
            try:
                reply = self._client.post(self._url + step[0], json=step[1])
            except httpx2.TransportError as error:
                reply = error

    async def areward(self, problem: str, source: str, **options: Any) -> Reward:
        """Return what ``reward`` returns, without blocking."""
        return _only(await self.arewards([(problem, source)], **options))

    async def arewards(
        self,
        candidates: Iterable[tuple[str, str] | Mapping[str, Any]],
        *,
        kind: str = "py",
        max_speedup: float = MAX_SPEEDUP,
        exclude: Collection[str] = (),
        **conditions: Any,
    ) -> list[Reward | EvaluationError]:
        """Return what ``rewards`` returns, without blocking."""
        worth = functools.partial(shaped, max_speedup=max_speedup, exclude=bands_of(exclude))
        talk = self._talk(list(candidates), kind, worth, conditions)
        reply = None
        async with httpx2.AsyncClient(headers=self._headers, timeout=_TIMEOUT) as client:
            while True:
                try:
                    step = talk.send(reply)
                except StopIteration as end:
                    return end.value
                if isinstance(step, float):
                    reply = await asyncio.sleep(step)
                    continue
                try:
                    reply = await client.post(self._url + step[0], json=step[1])
                except httpx2.TransportError as error:
                    reply = error

    def close(self) -> None:
        """Close connections; the service goes on with what it has accepted."""
        self._client.close()

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _talk(self, candidates: Sequence[Any], kind: str, worth: Worth, conditions: dict[str, Any]) -> Talk:
        """Submit all and collect their answers; return a reward or an EvaluationError for each."""
        bodies = [self._body(index, one, kind, conditions) for index, one in enumerate(candidates)]
        answers: dict[str, dict[str, Any]] = {}
        try:
            for body in bodies:
                yield from self._delivered("/v1/evaluations", body)
            yield from self._collected([body["id"] for body in bodies], answers)
        except httpx2.TransportError as error:
            reason = f"no sign of the service at {self._url} for {self._patience_s:g} s: {error}"
            answers |= {body["id"]: {"unevaluated": reason} for body in bodies if body["id"] not in answers}
        outcomes = [outcome_of(answers[body["id"]]) for body in bodies]
        return [worth(outcome) if isinstance(outcome, Result) else outcome for outcome in outcomes]

    def _body(self, index: int, candidate: Any, kind: str, conditions: dict[str, Any]) -> dict[str, Any]:
        try:
            problem, source, kind = fields_of(candidate, kind)
            if not isinstance(problem, str):
                raise ValueError(f"a service takes problems by their id, for example '1/19', not {problem!r:.80}")
            if f".{kind}" not in SUFFIXES:
                raise ValueError(f"'{kind}' is no kind of solution; use one of py, cu, cpp")
        except ValueError as error:
            raise ValueError(f"candidate {index}: {error}") from None
        if conditions.get("device") is not None:
            conditions = {**conditions, "device": str(conditions["device"])}  # a torch.device too
        fault = fault_of(source)
        return {
            "id": secrets.token_hex(16), "problem": problem, "source": "" if fault else source, "kind": kind,
            "fault": fault, "priority": self._priority, "conditions": conditions,
        }  # fmt: skip

    def _collected(self, ids: list[str], answers: dict[str, dict[str, Any]]) -> Talk:
        while waiting := [name for name in ids if name not in answers][:_MAX_IDS]:
            reply = yield from self._delivered("/v1/answers", {"ids": waiting, "wait_s": _WAIT_S})
            answers |= reply["answers"]
            answers |= {name: {"unevaluated": "the service has lost its queue"} for name in reply["unknown"]}

    def _delivered(self, path: str, body: dict[str, Any]) -> Talk:
        """Post until the service takes it; return its reply.

        Raises TransportError where there is no sign of it for too long, and ValueError, ProblemError or
        PermissionError where it refuses.
        """
        pause, since = _FIRST_PAUSE_S, time.monotonic()
        while True:
            response = yield path, body
            wait_s = pause
            if isinstance(response, httpx2.Response):
                if response.status_code != _BUSY and response.status_code < 500:
                    return _content(response)
                if response.status_code == _BUSY:  # it is there
                    since = time.monotonic()
                wait_s = _asked_pause_s(response, pause)
                response = httpx2.TransportError(f"HTTP status {response.status_code}")
            if time.monotonic() - since > self._patience_s:
                raise response
            yield wait_s
            pause = min(_LONGEST_PAUSE_S, 2 * pause)


def _asked_pause_s(response: httpx2.Response, usual: float) -> float:
    """Return the seconds of its Retry-After header; ``usual`` where it has none, or a date, as proxies may send."""
    asked = response.headers.get("Retry-After", "")
    return min(_LONGEST_PAUSE_S, float(asked)) if re.fullmatch(r"\d+(\.\d+)?", asked, re.ASCII) else usual


def _content(response: httpx2.Response) -> dict[str, Any]:
    """Return the reply's content, or raise what its error stands for."""
    if response.is_success:
        return _object(response)
    try:
        error = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        error = {"code": "", "message": f"HTTP status {response.status_code}: is this an evaluation service?"}
    if response.status_code == 401:
        raise PermissionError(error["message"])
    kind = ProblemError if error["code"] == "no_workload" else ValueError
    raise kind(error["message"])


def _object(response: httpx2.Response) -> dict[str, Any]:
    """Return a reply's content; ValueError where it is not of a service's form."""
    try:
        content = response.json()
    except ValueError:
        content = None
    fields = {"answers": dict, "unknown": list} if response.url.path.endswith("/answers") else {"id": str}
    if not isinstance(content, dict) or not all(isinstance(content.get(n), kind) for n, kind in fields.items()):
        raise ValueError(f"{response.url} does not answer as an evaluation service does: {response.text[:200]!r}")
    return content


def _only(graded: list[Reward | EvaluationError]) -> Reward:
    (one,) = graded
    if isinstance(one, EvaluationError):
        raise one
    return one
