"""A limit to what an endpoint may send in reply to one request, and to how long it may take over it.

The client limits the time between two pieces only, and keeps all of them. So an endless reply filled the memory, and
one byte a second was waited for without an end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

MOST_BYTES = 64 << 20  # a million tokens are 4 MiB; streamed, each comes with some 300 bytes around it


class TooMuch(Exception):
    """A reply beyond the limits."""


class _Bounded:
    """A stream of httpx, which its client reads."""

    def __init__(self, stream: Any, longest_s: float):
        self._stream = stream
        self._longest_s = longest_s
        self._end = time.monotonic() + longest_s

    def __iter__(self) -> Iterator[bytes]:
        taken = 0
        for piece in self._stream:
            taken += len(piece)
            if taken > MOST_BYTES:
                raise TooMuch(f"its reply has more than {MOST_BYTES:,} bytes")
            if time.monotonic() > self._end:
                raise TooMuch(f"its reply took longer than {self._longest_s:g} s")
            yield piece

    def close(self) -> None:
        self._stream.close()


def bounding(longest_s: float) -> Callable[[Any], None]:
    """Return a hook of httpx for responses that have no body yet: of each, TooMuch is raised while it is read.

    ``longest_s`` counts from its headers on. The request must not ask for compression, which would hide the size.
    """

    def bound(response: Any) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise TooMuch("its reply is compressed, and was not to be")
        # of httpx, or of httpx2, which openai has used since its version 3; a stream must be one of theirs
        kind = next(base for base in type(response.stream).__mro__ if base.__name__ == "SyncByteStream")
        response.stream = type("Bounded", (_Bounded, kind), {})(response.stream, longest_s)

    return bound
