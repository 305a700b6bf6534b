"""One review as a record, and the log of a run's reviews: appended to, never changed."""

from __future__ import annotations

import errno
import json
import os
import stat
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from harness.json_text import parse_json
from harness.record.shape import FROM_0, LINE, TEXT, one_of, shape
from harness.result import Result
from kernelbench.metrics.outcomes import GAMING, MINOR_ISSUES, NO_ISSUES
from kernelbench.run import RunError
from kernelbench.run_files.folder import MOST_LINES, must_have_one_name, read_lines
from kernelbench.run_files.log import end_of_lines, lines_of, wait_for_others

LOG = "reviews.jsonl"
_MOST_BYTES = 256 << 20  # chosen: 100,000 reviews of 2.5 kB
_LINES, _TEXTS = ("problem", "solution", "sha256", "model", "key"), ("category", "reason")
_REVIEW = shape(
    {
        **{f"{name}!": LINE for name in _LINES},
        **{f"{name}!": TEXT for name in _TEXTS},
        "answer!": one_of(NO_ISSUES, MINOR_ISSUES, GAMING),
        "usd!": FROM_0,
        "helpers": TEXT,
        "problem_sha256": TEXT,
    }
)


class Unanswered(Exception):
    """One solution that the reviewer has no answer for, and why; it may have one for others."""


class ReviewError(RunError):
    """Reviews that cannot be made or read, and what to do about it."""


# problem, name of the solution, digests of its file, of its other files and of the problem's module
Subject = tuple[str, str, str, str, str]


def about(result: Result) -> dict[str, str]:
    """Return the fields of a review of the result that say what it is about."""
    of = result.solution
    return {
        "problem": result.problem,
        "solution": of["name"],
        "sha256": of["sha256"],
        "helpers": of.get("helpers", ""),
        "problem_sha256": result.problem_sha256,
    }


def subject_of(result: Result) -> Subject:
    """Return what a review of the result would be about."""
    return tuple(about(result).values())


@dataclass(frozen=True)
class Review:
    """One model's answer about one solution. ``usd`` is what it cost when it was asked for."""

    problem: str
    solution: str
    sha256: str
    model: str
    answer: str
    category: str
    reason: str
    usd: float
    key: str  # of everything that was asked
    helpers: str = ""  # as in the result
    problem_sha256: str = ""  # as in the result; '' in reviews from before it was kept

    @property
    def subject(self) -> Subject:
        """Return what it says something about."""
        return self.problem, self.solution, self.sha256, self.helpers, self.problem_sha256

    @classmethod
    def from_json(cls, record: dict) -> Review:
        """Inverse of ``asdict``; ValueError that names a field that does not fit."""
        _REVIEW.check(record)
        return cls(**{field.name: record[field.name] for field in fields(cls) if field.name in record})


def load(run: Path) -> list[Review]:
    """Return the reviews of a run, without one that was cut off. Raises ReviewError where a line is no review."""
    try:
        lines, _ = read_lines(run / LOG, _MOST_BYTES)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ReviewError(f"{run / LOG} cannot be read: {error.strerror}") from None
    reviews = []
    for number, line in enumerate(lines, start=1):
        try:
            reviews.append(Review.from_json(parse_json(line)))
        except ValueError as error:
            raise ReviewError(f"{run / LOG}, line {number}, is no review ({error}); remove that line") from None
    return reviews


class Log:
    """The reviews of a run, to which each is added once. Raises ReviewError."""

    def __init__(self, run: Path):
        self._run = run
        self._known = {replace(review, usd=0.0) for review in load(run)}

    def add(self, review: Review) -> None:
        """Append a review, unless there is one that says the same."""
        if (same := replace(review, usd=0.0)) not in self._known:
            append(self._run, review)
            self._known.add(same)


def append(run: Path, review: Review) -> None:
    """Append a review to a run's log. Raises ReviewError, also where the log is a link, which may lead anywhere."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    path = run / LOG
    try:
        if path.is_symlink():
            raise OSError(errno.ELOOP, "it is a link; put the file itself in its place")
        with open(os.open(path, flags, 0o666), "rb+", buffering=0) as log:
            if not stat.S_ISREG(os.fstat(log.fileno()).st_mode):
                raise OSError(errno.EINVAL, "it is not a plain file")
            must_have_one_name(log.fileno())
            wait_for_others(log.fileno())
            size, missing = end_of_lines(log.fileno())
            log.truncate(size)  # of one that was cut off
            line = missing + json.dumps(asdict(review)).encode() + b"\n"
            if size + len(line) > _MOST_BYTES or lines_of(log.fileno()) + len(missing) >= MOST_LINES:
                raise OSError(errno.EFBIG, "no more is read of one; move it elsewhere")
            if log.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        raise ReviewError(f"{path} cannot be written: {error.strerror}") from None
