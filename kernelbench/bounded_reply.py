"""A limit to what an endpoint may send in reply to one request, and to how long it may take over it.

The client limits the time between two pieces only, and keeps all of them. So an endless reply filled the memory, and
one byte a second, of a header too, was waited for without an end. The limits are of what the connection is read for,
and it serves one request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

MOST_BYTES = 64 << 20  # of a stream: a million tokens are 4 MiB, and each comes with some 300 bytes around it
MOST_WHOLE_BYTES = 8 << 20  # of what is one JSON text, which may take thirty times as much memory
HEADERS = {"Accept-Encoding": "identity", "Connection": "close"}  # compression would hide the size
_CONNECTED = ("connect_tcp.complete", "connect_unix_socket.complete", "start_tls.complete")


class TooMuch(Exception):
    """A reply beyond the limits."""


class _Limits:
    """Limits of one reply, over all streams of its connection: a proxy's, and the one that is encrypted in it."""

    def __init__(self, longest_s: float, most_bytes: int):
        self._longest_s, self._most_bytes = longest_s, most_bytes
        self._end, self._taken = time.monotonic() + longest_s, 0

    def see(self, event: str, of_event: dict[str, Any]) -> None:
        """Limit what is read from a stream that was opened; a function of httpx's extension ``trace``."""
        if event.endswith(_CONNECTED):
            stream = of_event["return_value"]
            stream.read = self._limited(stream.read)

    def _limited(self, read: Callable[..., bytes]) -> Callable[..., bytes]:
        def limited(max_bytes: int, timeout: float | None = None) -> bytes:
            left_s = max(1e-3, self._end - time.monotonic())
            try:
                data = read(max_bytes, left_s if timeout is None else min(timeout, left_s))
            finally:
                if time.monotonic() > self._end:
                    raise TooMuch(f"its reply took longer than {self._longest_s:g} s") from None
            self._taken += len(data)
            if self._taken > self._most_bytes:
                raise TooMuch(f"its reply has more than {self._most_bytes:,} bytes")
            return data

        return limited


def hooks(longest_s: float, most_bytes: int) -> dict[str, list[Callable[[Any], None]]]:
    """Return hooks of httpx for requests with ``HEADERS``: limits of the seconds and bytes that a reply may take.

    TooMuch is raised while a reply is read.
    """

    def bound(request: Any) -> None:
        request.extensions["trace"] = _Limits(longest_s, most_bytes).see

    def take_plain(response: Any) -> None:
        response.encoding = "utf-8"  # it may name another, some of whose decoders take the square of their text
        if response.headers.get("content-encoding", "identity") != "identity":
            raise TooMuch("its reply is compressed, and was not to be")

    return {"request": [bound], "response": [take_plain]}


def lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the lines of a stream. JSON may hold what else ends a line of text, as U+2028."""
    line = bytearray()
    for piece in pieces:
        first, *following = piece.replace(b"\r", b"\n").split(b"\n")
        line += first
        for part in following:
            yield line.decode("utf-8", "replace")
            line = bytearray(part)
    yield line.decode("utf-8", "replace")
