"""Builds and judges that stay warm between calls, for one set of conditions or several."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from harness.problem.module import ProblemFile
from harness.solution import languages
from harness.solution.unchanged import stamp_of_file
from kernelbench.evaluation.executor import Options
from kernelbench.evaluation.judge_process import open_judges
from kernelbench.evaluation.local_executor import Pipeline, builds_at_once

_PER_JOB = ("workload",)  # conditions that a judge takes with each job


class Bench:
    """Builds and judges for one set of conditions. Raises EnvironmentUnfit where this machine cannot do it."""

    def __init__(self, conditions: dict[str, Any]):
        self.conditions, self.users = _of_judges(conditions), 0
        options = Options(**{**self.conditions, "baselines": tuple(conditions["baselines"])})
        opened = {"local": _Host, "ray": _Cluster}[options.executor](options)
        self._opened, self.line = opened, opened.line
        self._versions: dict[Path, tuple[int, ...]] = {}
        self.device_type: str = opened.device["type"]

    def describe(self) -> dict[str, Any]:
        """Return the device, how many of it, and how many builds go side by side."""
        opened = self._opened
        return {"device": opened.device, "devices": opened.devices, "builds": opened.builds}

    def missing(self, language: str) -> str:
        """Return what the machine lacks of a language, as ``languages.missing`` says; '' where it lacks nothing."""
        return self._opened.missing(language)

    def accepts(self, conditions: dict[str, Any], files: list[ProblemFile]) -> bool:
        """Return whether it may evaluate these problems, and remember them if so.

        A judge loads a problem once, so a file that has changed since needs another judge.
        """
        if _of_judges(conditions) != self.conditions or self._opened.lost():
            return False
        versions = {file.path: stamp_of_file(file.path) for file in files}
        if any(self._versions.get(path, version) != version for path, version in versions.items()):
            return False
        self._versions |= versions
        return True

    def kill(self) -> None:
        """End builds and judges; what is unfinished stays so."""
        self._opened.kill()


class _Host:
    """Builds and judges of this host."""

    def __init__(self, options: Options):
        self._judges = open_judges(options)
        self._pipeline = Pipeline(options, builds=False, judges=self._judges)  # builds start with the first one
        self._open = contextlib.ExitStack()
        self.device, self.devices = self._pipeline.device, self._pipeline.devices
        self.builds = builds_at_once(self.device["type"], self.devices)
        self.line = self._open.enter_context(self._pipeline.line(at_once=1))

    def missing(self, language: str) -> str:
        return languages.missing(language)

    def lost(self) -> bool:
        return any(judge.lost for judge in self._judges)

    def kill(self) -> None:
        self._open.close()
        self._pipeline.kill()


class _Cluster:
    """Builds and judges of a Ray cluster."""

    def __init__(self, options: Options):
        from kernelbench.evaluation.ray_cluster.stream import Stream  # Ray is an extra

        self.line = Stream(options)
        self.device, self.devices, self.builds = self.line.device, self.line.devices, self.line.devices

    def missing(self, language: str) -> str:
        return self.line.missing.get(language, "")

    def lost(self) -> bool:
        return self.line.lost

    def kill(self) -> None:
        self.line.kill()


def _of_judges(conditions: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in conditions.items() if name not in _PER_JOB}


class Benches:
    """Keeps the bench of the latest call warm; one for other conditions replaces it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: Bench | None = None
        self._open: set[Bench] = set()
        # a judge ends with the thread that started it, so that is one that stays
        self._opener = ThreadPoolExecutor(1)

    def take(self, conditions: dict[str, Any], files: list[ProblemFile]) -> Bench:
        """Return a bench to be given back. Raises EnvironmentUnfit where this machine cannot do it."""
        with self._lock:
            if self._kept is None or not self._kept.accepts(conditions, files):
                self._put_away()
                self._kept = self._opener.submit(Bench, conditions).result()
                self._open.add(self._kept)
                self._kept.accepts(conditions, files)
            self._kept.users += 1
            return self._kept

    def give_back(self, bench: Bench, fit: bool = True, abandoned: bool = False) -> None:
        """Take it back.

        One that is not ``fit`` to go on is ended when nobody uses it any more. So is one that was ``abandoned``
        in the middle of an evaluation, unless others use it: they would lose theirs.
        """
        with self._lock:
            bench.users -= 1
            if bench is self._kept and (not fit or (abandoned and not bench.users)):
                self._put_away()
            elif bench is not self._kept:
                self._end(bench)

    def _put_away(self) -> None:
        bench, self._kept = self._kept, None
        if bench:
            self._end(bench)

    def _end(self, bench: Bench) -> None:
        if not bench.users:
            self._open.discard(bench)
            bench.kill()

    def kill(self) -> None:
        """End all of them."""
        for bench in list(self._open):
            bench.kill()
