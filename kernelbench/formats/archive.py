"""An archive of solutions with claims, as its reader gives it: text and numbers, none of which is trusted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness.limits import MAX_ARCHIVE_BYTES, MAX_ENTRIES, MAX_SOURCE_BYTES
from harness.problem.module import ProblemId
from harness.solution.includes import existing, open_plain, read_head

_LONGEST_LINE = 3 * MAX_SOURCE_BYTES  # bytes of a reference, a solution, and what JSON adds to them


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
    bytes: int = 0  # of all sources together

    def add(self, kernel: Kernel) -> None:
        """Take a solution in. Raises ArchiveError where it makes the archive too large."""
        self.bytes += len(kernel.source.encode(errors="replace"))
        if self.bytes > MAX_ARCHIVE_BYTES:
            raise ArchiveError(
                f"its solutions have more than {MAX_ARCHIVE_BYTES:,} bytes together, which {kernel.origin} "
                "exceeds; divide the archive"
            )
        self.kernels.append(kernel)


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines of a file that are not blank, with their ends.

    Raises ArchiveError where it cannot be read, or has more or longer lines than an archive has.
    """
    taken = lines = 0
    try:
        with open_plain(path) as file:
            for number, data in enumerate(iter(lambda: file.readline(_LONGEST_LINE + 1), b""), start=1):
                taken += len(data)
                lines += bool(data.strip())
                if len(data) > _LONGEST_LINE or taken > MAX_ARCHIVE_BYTES or lines > MAX_ENTRIES:
                    raise ArchiveError(
                        f"{path}, line {number}: the most are {MAX_ENTRIES:,} lines of {_LONGEST_LINE:,} bytes, "
                        f"{MAX_ARCHIVE_BYTES:,} together; divide the archive"
                    )
                if data.strip():
                    yield number, data.decode("utf-8-sig" if number == 1 else "utf-8", errors="replace")
    except OSError as error:
        raise ArchiveError(f"cannot read {path}: {error.strerror}") from None


def first_line(path: Path) -> str:
    """Return the first line of a file that is not blank, by which its format is known; '' where there is none."""
    with contextlib.suppress(ArchiveError):
        for _, line in lines_of(path):
            return line
    return ""


def text_of(folder: Path, path: Path) -> tuple[str | None, str]:
    """Return the text of a file of the archive in ``folder``, or None and why it is not read.

    An archive may hold links out of it, pipes, and files of any size.
    """
    try:
        real = existing(path)
        if not real.is_relative_to(os.path.realpath(folder)):
            return None, "lies outside of the archive's folder"
        data, size = read_head(real, MAX_SOURCE_BYTES, in_place=True)
    except (OSError, ValueError) as error:
        return None, f"cannot be read: {getattr(error, 'strerror', None) or error}"
    if size > MAX_SOURCE_BYTES:
        return None, f"has {size:,} bytes; the most is {MAX_SOURCE_BYTES:,}"
    return data.decode("utf-8", errors="replace"), ""
