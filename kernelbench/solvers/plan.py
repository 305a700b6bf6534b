"""The plan of a solve, its watcher and its outcome."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from harness.result import Result
from kernelbench.endpoint import Endpoint
from kernelbench.evaluation.executor import Skipped
from kernelbench.run import Run
from kernelbench.solvers.prompting.prompts import Prompts
from kernelbench.solvers.schedule.limits import Limits
from kernelbench.solvers.task import Task


class SolverError(Exception):
    """A solver that cannot be used or has failed, and what to do about it."""


class Solver(Protocol):
    name: str
    sha256: str

    def run(self, task: Task, folder: Path) -> None:
        """Make attempts until done; ``folder`` is the run's, for what the solver wants to keep."""


class Watcher:
    """Told what happens; the command line shows it. The default shows nothing. Called from several threads."""

    def started(self, outcome: Outcome, todo: int) -> None: ...

    def moved(self, key: Any, state: str) -> None:
        """One model call or attempt is now asking, building, built or judging, or with '' done."""

    def evaluated(self, result: Result) -> None: ...

    def confirming(self, todo: int) -> None:
        """Announce that the best results of so many problems are measured once more."""

    def said(self, problem: str, text: str) -> None: ...

    def ended(self, problem: str, failure: str | None) -> None: ...


@dataclass(frozen=True)
class Plan:
    """A solver with its budget, model, prompts, settings and order of work.

    ``starting_kernels`` are kind and source by problem; ``schedule`` is one of ``schedule.order``, with its options.
    """

    solver: Solver
    budget: int  # attempts a problem
    endpoint: Endpoint | None = None
    prompts: Prompts = field(default_factory=Prompts)
    settings: dict[str, str] = field(default_factory=dict)
    seed: int = 0
    at_once: int = 16
    schedule: str = "depth"
    limits: Limits = field(default_factory=Limits)
    starting_kernels: dict[str, tuple[str, str]] = field(default_factory=dict)

    def to_config(self) -> dict[str, Any]:
        """Return the order of work, how much of it at once, and where it starts, as a run keeps them; '' for no starts.

        Problems at once are not what a run is known by: it may go on with more.
        """
        kernels = json.dumps(self.starting_kernels, sort_keys=True).encode()
        return {
            "schedule": self.schedule,
            "at_once": self.at_once,
            "limits": {name: limit for name, limit in asdict(self.limits).items() if limit is not None},
            "start_sha256": hashlib.sha256(kernels).hexdigest() if self.starting_kernels else "",
        }


@dataclass
class Outcome:
    """Result of a solve. ``failures`` are problems whose solver did not come to its end, with the reason."""

    run: Run
    device: dict[str, Any]
    problems: list[str]
    replayed: int = 0  # results that were in the log already
    failures: dict[str, str] = field(default_factory=dict)
    stopped: dict[str, str] = field(default_factory=dict)  # problems that got no more work, with the reason
    unconfirmed: list[Skipped] = field(default_factory=list)  # best attempts that could not be measured again
