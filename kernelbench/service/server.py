"""The service's process: opens queue, tokens, evaluator and port, and serves until it is told to end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from kernelbench.evaluation.executor import EnvironmentUnfit
from kernelbench.evaluator.client import Conditions, EvaluatorProcess
from kernelbench.service.app import Service
from kernelbench.service.dispatcher import Dispatcher, describe
from kernelbench.service.metrics import Metrics
from kernelbench.service.store import QUEUE, Store, StoreError
from kernelbench.service.submission import Intake
from kernelbench.service.tokens import TokenError, Tokens

TOKENS = "tokens"
_HEAD_S = 30.0  # to send a request's head in, and between two requests
_CONNECTIONS = 512  # at once; the next are told to come later
_END_S = 5  # for requests in flight when the service is told to end


@dataclass(frozen=True)
class Settings:
    """Settings of a service: the queue's place, its address, how many may wait, and on what it evaluates."""

    folder: Path
    host: str
    port: int
    most: int  # submissions that are queued or run
    intake: Intake


class _Protocol(H11Protocol):
    """HTTP/1.1 that closes a connection whose request does not begin, or whose head does not end, in time."""

    _looking: asyncio.TimerHandle | None = None  # it holds the connection and what was read of it

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._looking:
            self._looking.cancel()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        before = self.cycle
        if self._looking:
            self._looking.cancel()

        def look() -> None:
            if self.cycle is before and not self.transport.is_closing():
                self.transport.close()

        self._looking = self.loop.call_later(_HEAD_S, look)


def serve(settings: Settings, ready: Callable[[str, dict[str, Any]], None]) -> None:
    """Serve until a signal ends it; ``ready`` is told the URL and what it evaluates on.

    Raises StoreError, TokenError, EnvironmentUnfit and OSError where it cannot begin.
    """
    _make_private(settings.folder)
    tokens = Tokens(settings.folder / TOKENS)
    store = Store(settings.folder, settings.most)
    evaluator = EvaluatorProcess()
    try:
        with socket.create_server((settings.host, settings.port), backlog=_CONNECTIONS) as listener:
            given = settings.intake
            conditions = Conditions(given.device, executor=given.executor, address=given.address)
            bench = describe(conditions, evaluator)
            intake = replace(given, device_type=bench["device"]["type"])
            metrics = Metrics(store.counts)
            dispatcher = Dispatcher(store, intake, evaluator, metrics, bench)
            app = Service(store, intake, tokens, dispatcher, metrics).app()
            ready(f"http://{settings.host}:{listener.getsockname()[1]}", bench)
            _run(app, listener)
    finally:
        evaluator.close()
        store.close()


def _run(app: Any, listener: socket.socket) -> None:
    config = uvicorn.Config(
        app, http=_Protocol, ws="none", lifespan="on", log_level="error", access_log=False, server_header=False,
        limit_concurrency=_CONNECTIONS, timeout_keep_alive=int(_HEAD_S), timeout_graceful_shutdown=_END_S,
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[listener])


def _make_private(folder: Path) -> None:
    """Make the folder, or take one with a queue, for this user alone. Raises StoreError.

    Others may use a folder of another kind, such as `.`, and would be locked out.
    """
    try:
        new = not folder.exists()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if new or (folder / QUEUE).exists():
            folder.chmod(0o700)
        elif folder.stat().st_mode & 0o077:
            raise StoreError(f"others can enter {folder}: choose a new folder, or chmod 700 {folder}")
    except OSError as error:
        raise StoreError(f"cannot use {folder}: {error.strerror}") from error


__all__ = ["EnvironmentUnfit", "Settings", "StoreError", "TokenError", "serve"]
