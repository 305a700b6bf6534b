"""The service over HTTP, with Starlette: routes, access, limits and errors. Every error is JSON with a code."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
import sqlite3
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from harness.json_text import parse_json
from kernelbench import __version__
from kernelbench.service.dispatcher import Dispatcher
from kernelbench.service.metrics import Metrics
from kernelbench.service.store import QUEUED, RUNNING, Full, Store
from kernelbench.service.submission import BadSubmission, Intake
from kernelbench.service.tokens import TokenError, Tokens

MAX_BODY_BYTES = 8 << 20  # a source of 2^20 characters, each with at most 6 bytes in JSON, and room for the rest
_MOST_READ_BYTES = 4 * MAX_BODY_BYTES  # of a body that is refused: who hears of it must have sent it all
_BODIES = 4  # of one client that are read at once; the others are not taken from the network
BODY_S = 30.0  # to send a body in
MAX_WAIT_S = 30.0  # of one request for answers
MAX_IDS = 1_000  # in one request for answers
MAX_ANSWERS = 32  # in one reply: a record has about 50 KB
_USUAL_S = 4.0  # of an evaluation, for advice on when to come back


class Refused(Exception):
    """A request that is refused."""

    def __init__(self, status: int, code: str, message: str, **headers: str):
        super().__init__(message)
        self.status, self.code, self.headers = status, code, headers


class Service:
    """The routes and what they share."""

    def __init__(self, store: Store, intake: Intake, tokens: Tokens, dispatcher: Dispatcher, metrics: Metrics):
        self._store, self._intake, self._tokens = store, intake, tokens
        self._dispatcher, self._metrics = dispatcher, metrics
        self._waiting: dict[str, set[asyncio.Event]] = defaultdict(set)  # by client
        self._parsing = asyncio.Lock()
        self._bodies = defaultdict(lambda: asyncio.Semaphore(_BODIES))  # by client

    def app(self) -> Starlette:
        """Return the ASGI application."""
        routes = [
            Route("/v1/health", self._health),
            Route("/v1/evaluations", self._submit, methods=["POST"]),
            Route("/v1/answers", self._answers, methods=["POST"]),
            Route("/v1/metrics", self._figures),
        ]
        handlers = {
            Refused: self._refused, HTTPException: self._unknown_route, ClientDisconnect: self._hung_up,
            sqlite3.OperationalError: self._unwritable,
        }  # fmt: skip
        return Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()

        def ended(client: str, name: str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._wake, client)

        self._dispatcher.ended = ended
        self._dispatcher.start()
        yield
        self._dispatcher.close()

    def _wake(self, client: str) -> None:
        for event in self._waiting.get(client, ()):
            event.set()

    async def _health(self, request: Request) -> Response:
        """Say that the service is there, to anybody."""
        return JSONResponse({"kernelbench": __version__}, headers=_without_a_body(request))

    async def _submit(self, request: Request) -> Response:
        """Accept one submission; the same one again, after a lost reply, is accepted as the first was."""
        client = self._client(request)
        body = await self._json(request, client)
        try:
            submission = await run_in_threadpool(self._intake.accept, body, client)
            new = await run_in_threadpool(self._store.add, submission)
        except BadSubmission as error:
            raise Refused(422, error.code, str(error)) from None
        except Full:
            raise await self._full() from None
        if new:
            self._metrics.accepted.inc()
            await run_in_threadpool(self._dispatcher.wake)
        return JSONResponse({"id": submission.id, "new": new}, status_code=202)

    async def _full(self) -> Refused:
        counts = await run_in_threadpool(self._store.counts)
        seconds = math.ceil(_USUAL_S * counts[RUNNING] / self._dispatcher.devices)
        text = f"the queue is full ({counts[QUEUED]} wait): try again in {seconds} s"
        return Refused(429, "queue_full", text, **{"Retry-After": str(max(1, seconds))})

    async def _answers(self, request: Request) -> Response:
        """Return answers of this client's submissions, waiting up to ``wait_s`` until there is one."""
        client = self._client(request)
        ids, wait_s = _wanted(await self._json(request, client))
        event = asyncio.Event()
        self._waiting[client].add(event)
        try:
            end = asyncio.get_running_loop().time() + wait_s
            while True:
                event.clear()
                found, waiting, unknown = await run_in_threadpool(self._store.answers, client, ids, MAX_ANSWERS)
                left = end - asyncio.get_running_loop().time()
                if found or unknown or left <= 0 or await request.is_disconnected():
                    # in ASCII: a record may have halves of characters, and figures that are infinite
                    text = json.dumps({"answers": found, "waiting": waiting, "unknown": unknown})
                    return Response(text, media_type="application/json")
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(event.wait(), left)
        finally:
            self._waiting[client].discard(event)

    async def _figures(self, request: Request) -> Response:
        """Return the metrics for Prometheus."""
        self._client(request)
        return Response(await run_in_threadpool(self._metrics.text), media_type="text/plain; version=0.0.4")

    def _client(self, request: Request) -> str:
        """Return who asks. Nothing of a stranger's body is read."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            client = self._tokens.client(token.strip()) if scheme.lower() == "bearer" else None
        except (TokenError, OSError) as error:
            logging.getLogger(__name__).warning("the file of tokens cannot be used: %s", error)
            raise Refused(503, "no_tokens", "the service's file of tokens cannot be used; its log says why") from None
        if client is None:
            text = "send `Authorization: Bearer TOKEN` with a token of this service"
            raise Refused(401, "no_access", text, **{"WWW-Authenticate": "Bearer", "Connection": "close"})
        return client

    async def _json(self, request: Request, client: str) -> Any:
        """Return the body, read within limits. Bodies of one client wait for their turn, so that others have theirs."""
        async with self._bodies[client]:
            return await self._body(request)

    async def _body(self, request: Request) -> Any:
        too_large = Refused(413, "too_large", f"a body may have {MAX_BODY_BYTES:,} bytes", **{"Connection": "close"})
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > _MOST_READ_BYTES:
            raise too_large
        try:
            data = await asyncio.wait_for(_read(request), BODY_S)
        except asyncio.TimeoutError:
            text = f"the body did not come within {BODY_S:g} s"
            raise Refused(408, "too_slow", text, **{"Connection": "close"}) from None
        if data is None:
            raise too_large
        try:
            async with self._parsing:  # one after the other, and the loop goes on meanwhile
                return await run_in_threadpool(parse_json, data)
        except ValueError as error:
            raise Refused(400, "no_json", f"the body is no JSON: {error}") from None

    async def _unwritable(self, request: Request, error: Exception) -> Response:
        """Have the client try again: its disk is full, or somebody else holds the queue."""
        return _error(503, "queue_unwritable", f"cannot write the queue: {error}; trying again may help")

    async def _refused(self, request: Request, error: Refused) -> Response:
        self._metrics.refused.labels(error.code).inc()
        return _error(error.status, error.code, str(error), error.headers)

    async def _unknown_route(self, request: Request, error: HTTPException) -> Response:
        text = f"{request.method} {request.url.path}: {error.detail}"
        return _error(error.status_code, "no_such_route", text, _without_a_body(request))

    async def _hung_up(self, request: Request, error: ClientDisconnect) -> Response:
        return Response(status_code=400)  # nobody reads it


def _without_a_body(request: Request) -> dict[str, str]:
    """Return the headers of an answer to anybody: a body that nobody reads would be taken from the network."""
    return {"Connection": "close"} if {"content-length", "transfer-encoding"} & {*request.headers} else {}


def _is_id(name: Any) -> bool:
    return isinstance(name, str) and name.isascii()


def _wanted(body: Any) -> tuple[list[str], float]:
    """Return ids and how long to wait for one of them, of a request for answers."""
    ids = body.get("ids") if isinstance(body, dict) else None
    if not isinstance(ids, list) or not 0 < len(ids) <= MAX_IDS or not all(map(_is_id, ids)):
        raise Refused(422, "bad_ids", f"ids must be a list of 1 to {MAX_IDS} ids")
    wait_s = body.get("wait_s", 0)
    if not isinstance(wait_s, (int, float)) or not 0 <= wait_s <= MAX_WAIT_S:
        raise Refused(422, "bad_wait", f"wait_s must be a number from 0 to {MAX_WAIT_S:g}")
    return list(dict.fromkeys(ids)), wait_s


def _error(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": {"code": code, "message": message}}, status_code=status, headers=headers)


async def _read(request: Request) -> bytes | None:
    """Return the body; None where it is larger than it may be."""
    data, taken = bytearray(), 0
    async for piece in request.stream():
        taken += len(piece)
        if taken <= MAX_BODY_BYTES:
            data += piece
        elif taken > _MOST_READ_BYTES:
            return None
    return bytes(data) if taken <= MAX_BODY_BYTES else None
