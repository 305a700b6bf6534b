"""Messages between processes: JSON with a length in front, over a Unix socket.

Never pickle: one end of such a socket may be held by a candidate. A message
that is too long, has too many values, is not JSON or not an object raises ``Garbled``.
"""

from __future__ import annotations

import json
import select
import socket
import struct
from collections.abc import Callable
from typing import Any

from harness.json_text import parse_json

MAX_BYTES = 16 << 20
MAX_VALUES = 200_000  # in one message, which may take 30 times as much memory as its text; answers have thousands
_LENGTH = struct.Struct("!I")


class Garbled(Exception):
    """The peer sent something that is no message."""


class Closed(EOFError):
    """The peer closed the connection."""


def send(connection: socket.socket, message: dict[str, Any]) -> None:
    """Send one message: its length, then JSON."""
    connection.sendall(encoded(message))


def send_at_once(connection: socket.socket, data: memoryview) -> int:
    """Return how many bytes of ``data`` there was room for; the peer need not read them yet."""
    connection.settimeout(0.0)
    try:
        return connection.send(data)
    except OSError:  # no room, or nobody is there
        return 0


def encoded(message: dict[str, Any]) -> bytes:
    """One message as it is sent."""
    data = json.dumps(message).encode()
    return _LENGTH.pack(len(data)) + data


def receive(connection: socket.socket, begin: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """The next message; blocks, and calls ``begin`` when there are bytes of it. Raises Closed or Garbled."""
    reader = Reader()
    data = connection.recv(reader.wanted())
    begin()
    while True:
        reader.feed(data)
        if (message := reader.message()) is not None:
            return message
        data = connection.recv(reader.wanted())


def has_more(connection: socket.socket, timeout_s: float) -> bool:
    """Return whether something arrives within so many seconds. Of ``select`` no descriptor may be above 1023."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(1000 * timeout_s))


class Reader:
    """Puts messages together from the pieces in which they arrive."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def wanted(self) -> int:
        """Return how many bytes complete the message at hand, so that none of the next one is taken."""
        if len(self._buffer) < _LENGTH.size:
            return _LENGTH.size - len(self._buffer)
        return min(self._length() + _LENGTH.size - len(self._buffer), 1 << 20)

    def take(self, connection: socket.socket) -> dict[str, Any] | None:
        """Take in what has arrived; return the message once it is whole."""
        try:
            self.feed(connection.recv(self.wanted()))
        except (BlockingIOError, TimeoutError):  # the system tells of urgent data, and gives none (MSG_OOB)
            return None
        return self.message()

    def feed(self, data: bytes) -> None:
        if not data:
            raise Closed
        self._buffer += data
        if len(self._buffer) >= _LENGTH.size and self._length() > MAX_BYTES:
            raise Garbled(f"a message of {self._length()} bytes")

    def message(self) -> dict[str, Any] | None:
        """The message, once it is whole."""
        if len(self._buffer) < _LENGTH.size or len(self._buffer) < _LENGTH.size + self._length():
            return None
        body = bytes(self._buffer[_LENGTH.size :])
        self._buffer.clear()
        if _values(body) > MAX_VALUES and _values(_without_texts(body)) > MAX_VALUES:
            raise Garbled(f"a message of more than {MAX_VALUES:,} values")
        try:
            message = parse_json(body)
        except ValueError as error:
            raise Garbled("not JSON") from error
        if not isinstance(message, dict):
            raise Garbled("not an object")
        return message

    def _length(self) -> int:
        return _LENGTH.unpack_from(self._buffer)[0]


def _values(body: bytes) -> int:
    """Return how many values, but for a first one, the lists and objects of a message have; texts may add more."""
    return sum(map(body.count, (b",", b"[", b"{")))


def _without_texts(body: bytes) -> bytes:
    """Return a message without what its texts say, in linear time. Raises Garbled where they are too many."""
    body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if body.count(b'"') > 4 * MAX_VALUES:  # a name and a text each have two
        raise Garbled(f"a message of more than {MAX_VALUES:,} texts")
    return b"".join(body.split(b'"')[::2])
