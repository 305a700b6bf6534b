"""The page of a run that may still be going: a server for this machine's browser, and the log that it follows."""

from __future__ import annotations

import contextlib
import errno
import hmac
import os
import secrets
import socket
import sys
import threading
import traceback
import uuid
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, urlsplit

from harness.json_text import parse_json
from harness.problem.module import ProblemError
from harness.result import Result
from harness.solution.includes import open_plain, too_large
from kernelbench import escaping
from kernelbench.report import page, records
from kernelbench.report.overview import overview
from kernelbench.review.labels import NONE, key_of, of_run
from kernelbench.run import LOG, Run, RunError
from kernelbench.run_files.folder import is_whole
from kernelbench.run_files.log import MOST_LOG_BYTES
from kernelbench.run_files.sources import TRAJECTORY, attempts_in, reference_of
from kernelbench.run_files.unevaluated import UNEVALUATED, parse
from kernelbench.suite import SelectorError

_HOSTS = ("127.0.0.1", "localhost")
_MOST_CONNECTIONS = 64  # a browser has six


class Tail:
    """The lines of a file that grows: each once, and only when it is whole; the last may lack its end."""

    def __init__(self, path: Path):
        self._path = path
        self._offset = 0
        self._last = b""

    def replaced(self) -> bool:
        """Return whether the line that was read last is no longer where it was. Raises OSError as ``lines`` does."""
        if not self._path.exists():
            return False
        with self._open() as (file, _):
            file.seek(self._offset - len(self._last))
            return file.read(len(self._last)) != self._last

    @contextlib.contextmanager
    def _open(self) -> Iterator[tuple[BinaryIO, int]]:
        """The file and its size."""
        with open_plain(self._path.parent.resolve() / self._path.name, in_place=True) as file:  # no link of others
            size = os.fstat(file.fileno()).st_size
            if size > MOST_LOG_BYTES:
                raise OSError(errno.EFBIG, too_large(size, MOST_LOG_BYTES), str(self._path))
            yield file, size

    def lines(self) -> Iterator[bytes]:
        """A line whose reader raises comes again. Raises OSError for what is no plain file, or too large for a log."""
        with self._open() as (file, size):
            file.seek(self._offset)
            data = file.read(max(0, size - self._offset))  # what is written meanwhile comes next time
        *whole, rest = data.split(b"\n")
        lacks_its_end = self._last and not self._last.endswith(b"\n")
        for line in (*(line + b"\n" for line in whole), *filter(is_whole, filter(None, [rest]))):
            if line != b"\n" or not lacks_its_end:
                yield line.removesuffix(b"\n")
            lacks_its_end = False
            self._last = line
            self._offset += len(line)


class Follower:
    """A run read again and again: ``update`` takes in what was written since.

    A result's number is its place in the log. A log or a list that was replaced starts a new ``generation``.
    """

    def __init__(self, path: Path):
        self._start(path)
        self.update()

    def _start(self, path: Path) -> None:
        self.run = Run.load(path)  # for its configuration: ``update`` reads the log
        self.run.results.clear()
        self.run.unevaluated.clear()
        self.generation = uuid.uuid4().hex
        self._log, self._trajectory, self._unevaluated = (Tail(path / name) for name in (LOG, TRAJECTORY, UNEVALUATED))
        self.attempts: list[dict[str, Any]] = []

    def update(self) -> None:
        """Raises RunError where the log is gone or holds what is no result; what was read before is kept."""
        try:
            if any(tail.replaced() for tail in (self._log, self._trajectory, self._unevaluated)):
                self._start(self.run.path)
            for line in self._log.lines():
                self.run.results.append(Result.from_json(parse_json(line)))
            if (self.run.path / TRAJECTORY).exists():
                self.attempts += attempts_in(self._trajectory.lines())
            if (self.run.path / UNEVALUATED).exists():
                self.run.unevaluated += parse(self._unevaluated.lines())
        except OSError as error:
            raise RunError(f"cannot read {error.filename}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError) as error:
            number = len(self.run.results) + 1
            raise RunError(f"{self.run.path / LOG}, line {number}, is no result: {error}") from None


class Feed:
    """Answers to what the page asks for, from several threads.

    ``count`` is how many lines of the log there are, ``unevaluated`` how many of ``unevaluated.jsonl``.
    """

    def __init__(self, path: Path):
        self._follower = Follower(path)
        self._lock = threading.Lock()
        self._overview: tuple[Any, dict[str, Any]] | None = None

    def page(self) -> str:
        with self._lock:
            return page.render({"live": True, **self._since(0)})

    def data(self, since: int, generation: str, unevaluated: int = 0) -> dict[str, Any] | None:
        """New rows, numbers of those before that count no more, and all figures; None for nothing. Raises RunError."""
        with self._lock:
            self._follower.update()
            reset = generation != self._follower.generation
            if not reset and (since, unevaluated) == self._lengths():
                return None
            return {"reset": reset, **self._since(0 if reset else since)}

    def detail(self, number: int) -> dict[str, Any] | None:
        """None where there is no such result."""
        with self._lock:
            run = self._follower.run
            if not 0 <= number < len(run.results):
                return None
            result = run.results[number]
            attempts = records.by_sample(self._follower.attempts)
        reference = reference_of(run, result.problem)
        return {**records.detail(result), **records.texts(run, result, attempts), "reference": reference}

    def _since(self, start: int) -> dict[str, Any]:
        run, generation = self._follower.run, self._follower.generation
        count, unevaluated = self._lengths()
        version = generation, count, unevaluated
        if self._overview is None or self._overview[0] != version:
            self._overview = version, overview([run])
        label_of = of_run(run)
        counting = {id(result) for result in run.latest()}
        return {
            "generation": generation,
            "count": count,
            "unevaluated": unevaluated,
            "overview": self._overview[1],
            "rows": [
                records.row(result, number, 0, label_of.get(key_of(result), NONE))
                for number, result in enumerate(run.results[start:], start)
                if id(result) in counting
            ],
            "gone": [number for number, result in enumerate(run.results[:start]) if id(result) not in counting],
            "attempts": records.outline(self._follower.attempts, 0),
        }

    def _lengths(self) -> tuple[int, int]:
        return len(self._follower.run.results), len(self._follower.run.unevaluated)


class Server(ThreadingHTTPServer):
    """Answers on 127.0.0.1; ``port`` 0 takes a free one. OSError where the port is taken.

    The address has a secret in it: other users of this machine reach the port, too. Of more than
    ``_MOST_CONNECTIONS`` the oldest is ended: who connects and says nothing keeps nobody waiting.
    """

    daemon_threads = True
    request_queue_size = 128  # of five, Python's own, a sixth connection at once waits a second to be tried again

    def __init__(self, feed: Feed, port: int):
        super().__init__(("127.0.0.1", port), _Handler)
        self.feed = feed
        self.folder = f"/{secrets.token_urlsafe(24)}/"
        self._open: dict[socket.socket, None] = {}  # in order
        self._lock = threading.Lock()

    def process_request(self, request: socket.socket, client_address: Any) -> None:
        """Answer in a thread of its own."""
        with self._lock:
            self._open[request] = None
            if len(self._open) > _MOST_CONNECTIONS:
                oldest = next(iter(self._open))
                del self._open[oldest]
                with contextlib.suppress(OSError):  # it may have ended by itself
                    oldest.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: socket.socket) -> None:
        """End a connection that was answered, or could not be."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: socket.socket, client_address: Any) -> None:
        """Say nothing of a connection that its other side, or a newer one, ended."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            print(escaping.terminal(traceback.format_exc()), file=sys.stderr)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}{self.folder}"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        if self.headers.get("Host", "").partition(":")[0] not in _HOSTS:  # a foreign name that leads here
            self._answer(HTTPStatus.FORBIDDEN, "text/plain", "this server answers to 127.0.0.1 only\n")
            return
        folder = self.server.folder
        if not hmac.compare_digest(self.path[: len(folder)].encode(), folder.encode()):
            text = "the address of the run is the one that `kb serve` prints, as a whole\n"
            self._answer(HTTPStatus.FORBIDDEN, "text/plain", text)
            return
        try:
            address = urlsplit(self.path[len(folder) - 1 :])
            if address.path == "/":
                self._answer(HTTPStatus.OK, "text/html", self.server.feed.page())
            elif address.path == "/data":
                query = {key: values[0] for key, values in parse_qs(address.query).items()}
                since, unevaluated = (max(0, int(query.get(name, 0))) for name in ("since", "unevaluated"))
                self._json(self.server.feed.data(since, query.get("generation", ""), unevaluated))
            elif address.path.startswith("/detail/"):
                found = self.server.feed.detail(int(address.path.removeprefix("/detail/")))
                self._json(found) if found else self.send_error(HTTPStatus.NOT_FOUND)
            else:
                self.send_error(HTTPStatus.NOT_FOUND)
        except ValueError:
            self.send_error(HTTPStatus.BAD_REQUEST)
        except (RunError, SelectorError, ProblemError) as error:
            self._json({"error": str(error)})
        except (BrokenPipeError, ConnectionResetError):
            pass  # the browser has gone on

    def _json(self, data: dict[str, Any] | None) -> None:
        if data is None:
            self._answer(HTTPStatus.NO_CONTENT, "application/json", "")
        else:
            self._answer(HTTPStatus.OK, "application/json", page.to_json(data))

    def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Security-Policy", page.policy(live=True))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        if status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if status != HTTPStatus.NO_CONTENT:
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing for a request."""
