"""An archive of solutions with claims, as its reader gives it: text and numbers, none of which is trusted."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from harness.limits import MAX_SOURCE_BYTES
from harness.problem.module import ProblemId
from harness.solution.includes import read_head


class ArchiveError(Exception):
    """An archive that cannot be imported: where it is wrong, and what to do."""


@dataclass(frozen=True)
class ReadOptions:
    """Facts that a person adds to an archive that lacks them."""

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


def text_of(folder: Path, path: Path) -> tuple[str | None, str]:
    """Return the text of a file of the archive in ``folder``, or None and why it is not read.

    An archive may hold links out of it, pipes, and files of any size.
    """
    try:
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(os.path.realpath(folder)):
            return None, "lies outside of the archive's folder"
        data, size = read_head(real, MAX_SOURCE_BYTES)
    except (OSError, ValueError) as error:
        return None, f"cannot be read: {getattr(error, 'strerror', None) or error}"
    if size > MAX_SOURCE_BYTES:
        return None, f"has {size:,} bytes; the most is {MAX_SOURCE_BYTES:,}"
    return data.decode("utf-8", errors="replace"), ""
