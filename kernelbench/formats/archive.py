"""An archive of solutions with claims, as its reader gives it: text and numbers, none of which is trusted."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harness.problem.module import ProblemId


class ArchiveError(Exception):
    """An archive that cannot be imported: where it is wrong, and what to do."""


@dataclass(frozen=True)
class ReadOptions:
    """What a person adds to an archive that does not say it itself."""

    level: int | None = None
    baseline: Path | None = None
    problem_dir: Path | None = None  # what an archive that names problems by their texts is read against


@dataclass(frozen=True)
class Kernel:
    """One solution of an archive, with what is claimed of it."""

    problem: ProblemId
    source: str
    suffix: str = ".py"
    sample: int | None = None  # None: the next free one of its problem
    speedups: dict[str, float] = field(default_factory=dict)
    status: str | None = None
    ms: float | None = None
    origin: str = ""


@dataclass
class Archive:
    """The content of an archive. ``left_out`` has place and reason of what is no solution."""

    kernels: list[Kernel] = field(default_factory=list)
    problems: dict[ProblemId, str] = field(default_factory=dict)  # definitions of its own
    names: dict[ProblemId, str] = field(default_factory=dict)  # of problems of another suite
    left_out: list[tuple[str, str]] = field(default_factory=list)
