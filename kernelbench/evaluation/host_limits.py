"""Resources that builds and timings of one host share: its cores and its memory."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import ClassVar


class TimingLock:
    """Keeps compilers off the cores that time a candidate, unless these are ``shared``: the candidate is on a GPU.

    All locks of a process count, for its queues have the same cores: whoever chooses the options of a request to a
    service would else build in one queue what disturbs its timing in another.
    """

    _changed = threading.Condition()
    _all: ClassVar[set[TimingLock]] = set()

    def __init__(self, shared: bool):
        self._shared = shared
        self._announced = 0  # builds that run or wait
        self._timing = 0  # judges at work; which of them has the CPU is for its lock to say
        if not shared:
            with self._changed:
                self._all.add(self)

    def share(self) -> None:
        """Release those that wait, here and for what this queue had to do."""
        with self._changed:
            self._shared = True
            self._all.discard(self)
            self._changed.notify_all()

    def announce(self, builds: int) -> None:
        """Announce so many builds, which go before the next timing."""
        with self._changed:
            self._announced += builds

    @contextlib.contextmanager
    def building(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: self._shared or not any(lock._timing for lock in self._all))
        try:
            yield
        finally:
            with self._changed:
                self._announced -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def timing(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: self._shared or not any(lock._announced for lock in self._all))
            self._timing += 1
        try:
            yield
        finally:
            with self._changed:
                self._timing -= 1
                self._changed.notify_all()


class MemoryBudget:
    """Memory of the host that builds may take together; one alone may take any amount."""

    def __init__(self, limit_bytes: int):
        self._limit = limit_bytes
        self._taken = self._holders = self._begun = 0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def taken(self, size: int | None) -> Iterator[Callable[[], bool]]:
        """Hold ``size`` bytes, or for None all that there are; waits until they fit.

        Gives a function that says whether others have held some meanwhile. Who wants all waits for those too who hold
        none, and they for it: what they do costs more than memory.
        """
        alone, size = size is None, self._limit + 1 if size is None else size
        with self._changed:
            self._changed.wait_for(lambda: self._holders == 0 or not alone and self._taken + size <= self._limit)
            self._taken += size
            self._holders += 1
            self._begun += 1
            beside, number = self._holders > 1, self._begun
        try:
            yield lambda: beside or self._begun > number
        finally:
            with self._changed:
                self._taken -= size
                self._holders -= 1
                self._changed.notify_all()
