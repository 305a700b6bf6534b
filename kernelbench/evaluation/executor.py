"""Input and output of an executor, and the executors that exist.

An executor turns pairs of problem and solution into a stream of what became of
them. It is one module with one class, which has

- ``device``: the record of the device that it times on, ``devices`` how many of it,
- ``torch_version``: what PyTorch calls itself where it times,
- ``evaluate(pairs, status, workload)``: an iterator over Evaluated and Skipped, one for each pair, as they end;
  ``status("building" | "judging", text)`` tells what goes on now,
- ``close()`` after the last pair, or ``kill()`` when the run is given up,

and its line in ``EXECUTORS``. It is made with the options and whether there is anything to build, for which it may
get ready, and raises EnvironmentUnfit where it cannot work here.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.compile.cache import Cache, CacheError
from harness.problem.module import ProblemFile
from harness.process.owned_folders import sweep
from harness.process.procfs import default_memory_bytes
from harness.result import Result
from harness.solution.discover import Solution
from harness.timing.convergence import CV_TARGET
from kernelbench.evaluation.stored_baselines import Stored

EXECUTORS = {  # by name: one of them needs Ray
    "local": "kernelbench.evaluation.local_executor:Pipeline",
    "ray": "kernelbench.evaluation.ray_cluster.driver:Cluster",
}

_FOR_COMPILERS = re.compile(r"""["#$'`\\();&|<>*?!{}\[\]\x00-\x1f]""")

Pair = tuple[ProblemFile, Solution]
Status = Callable[[str, str], None]
Phase = Callable[[str], None]  # of one solution


class EnvironmentUnfit(Exception):
    """A request that this machine cannot run; the message says what to do."""


@dataclass(frozen=True)
class Options:
    """Options of an evaluation; ``workload`` None is each problem's default, else names after commas, or all."""

    device: str | None = None  # cpu, cuda, cuda:INDEX, several of those after commas, or cuda:all
    workload: str | None = None
    precision: str = "fp32"
    jobs: int | None = None  # builds side by side; without it, as many as suit the cores
    timeout_s: float = 120.0  # of one step of a candidate
    build_timeout_s: float = 900.0
    memory_bytes: int = field(default_factory=default_memory_bytes)
    baselines: tuple[str | Stored, ...] = ("eager",)  # the speedup is over the first
    cv_target: float = CV_TARGET  # of the rule that ends sampling, harness.timing.convergence
    clock_mhz: float | None = None  # that t_SOL is taken at; None is the one observed
    track: str | None = None  # 'kernels' or 'open'; None is 'kernels' on a GPU and 'open' on a CPU
    held_out: int = 0  # workloads that no candidate has seen, for each that is correct
    held_out_seed: int = field(default_factory=lambda: secrets.randbits(62))  # the same for all candidates of a run
    executor: str = "local"
    address: str | None = None  # of the cluster, for executors that have one

    @property
    def paired(self) -> tuple[str, ...]:
        """The baselines that are timed in turn with the candidate, by their names in ``harness.baselines``."""
        return tuple(name for name in self.baselines if isinstance(name, str))

    @property
    def stored(self) -> tuple[Stored, ...]:
        """Return those that were measured before."""
        return tuple(stored for stored in self.baselines if isinstance(stored, Stored))

    def to_config(self) -> dict[str, Any]:
        """Return what a run keeps of them, so that it is known what its results have in common."""
        return {
            "workload": self.workload,
            "precision": self.precision,
            "track": self.track,
            "baselines": [str(baseline) for baseline in self.baselines],
            "clock_mhz": self.clock_mhz,
            "timeout_s": self.timeout_s,
            "memory_bytes": self.memory_bytes,
            "held_out": self.held_out,
        }


@dataclass(frozen=True)
class Evaluated:
    solution: Solution
    result: Result


@dataclass(frozen=True)
class Skipped:
    """A candidate that was not evaluated, through no fault of its own; ``elsewhere``: another device would do.

    With ``every`` the reason lies in the problem, and holds for every solution of it on this workload.
    """

    solution: Solution
    reason: str
    elsewhere: bool = False
    workload: str | None = None  # the one that it was to be evaluated on; None is all of them
    every: bool = False
    changed: bool = False  # its files are not any more what was evaluated


class Executor(Protocol):
    device: dict[str, Any]
    devices: int
    torch_version: str

    def evaluate(
        self, pairs: list[Pair], status: Status, workload: str | None
    ) -> Iterator[Evaluated | Skipped]: ...

    def close(self) -> None: ...

    def kill(self) -> None: ...


@contextlib.contextmanager
def closed_or_killed(opened: Executor) -> Iterator[None]:
    """Around the use of an executor, or of one judge: closed at the end, killed where that does not come."""
    try:
        yield
    except BaseException:
        opened.kill()
        raise
    opened.close()


def open_executor(options: Options, builds: bool) -> Executor:
    """The executor that ``options`` name, ready, and with ``builds`` for those too; raises EnvironmentUnfit.

    What earlier runs left that were killed is removed first.
    """
    if builds:
        _check_fit_for_builds(tempfile.gettempdir())
    sweep()
    with contextlib.suppress(CacheError):  # without a cache, who needs it says so
        Cache().sweep()
    module, _, name = EXECUTORS[options.executor].partition(":")
    return getattr(importlib.import_module(module), name)(options, builds)


def _check_fit_for_builds(folder: str) -> None:
    """Raise EnvironmentUnfit where compilers misread the path of a folder of temporary files, or nothing runs there."""
    if sign := _FOR_COMPILERS.search(folder):
        raise EnvironmentUnfit(
            f"the folder of temporary files, {folder}, has {sign[0]!r} in its path, which compilers or their shells "
            "take for a sign of theirs: set TMPDIR to another folder"
        )
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        raise EnvironmentUnfit(
            f"no program runs from the folder of temporary files, {folder}, which is mounted noexec, and what is built "
            "could not be loaded: set TMPDIR to another folder"
        )


class Shown:
    """Activities of several threads as one line of names for each."""

    def __init__(self, status: Status):
        self._status = status
        self._lock = threading.Lock()
        self._now: dict[str, dict[str, str]] = {"building": {}, "judging": {}}

    def phase_of(self, name: str) -> Phase:
        """Return what tells the phases of one solution."""
        return lambda phase: self._show(name, phase)

    def _show(self, name: str, phase: str) -> None:
        what, _, detail = phase.partition(": ")
        with self._lock:
            for activity, names in self._now.items():
                if activity == what:
                    names[name] = f"{name}: {detail}" if detail else name
                elif names.pop(name, None) is None:
                    continue
                self._status(activity, ", ".join(names.values()))
