"""Room on the disk for what a run writes, while candidates are evaluated that may fill it."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from typing import TypeVar

_TRIES, _WAIT_S = 10, 1.0  # a candidate that takes too much of the disk is ended within seconds
_FULL = (errno.ENOSPC, errno.EDQUOT)

T = TypeVar("T")


def with_room(write: Callable[[], T]) -> T:
    """Return ``write()``, which leaves nothing behind where it fails; where the disk is full, wait for room.

    Raises what ``write`` raises the last time: OSError, or an error that has one as its cause.
    """
    for left in reversed(range(_TRIES)):
        try:
            return write()
        except Exception as error:
            reason = error if isinstance(error, OSError) else error.__cause__
            if not left or getattr(reason, "errno", None) not in _FULL:
                raise
            time.sleep(_WAIT_S)
    raise AssertionError("a last try returns or raises")
