"""Wall time of an evaluation by stage."""

from __future__ import annotations

import time


class Stages:
    """``seconds`` by stage; a stage lasts until the next one begins, or until ``end``."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._current: str | None = None
        self._begin = 0.0

    def begin(self, name: str) -> None:
        self.end()
        self._current, self._begin = name, time.perf_counter()

    def end(self) -> None:
        if self._current is not None:
            spent = self.seconds.get(self._current, 0.0) + time.perf_counter() - self._begin
            self.seconds[self._current] = round(spent, 4)
        self._current = None
