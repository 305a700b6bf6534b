"""The record of an audit, and the file that keeps the records of a suite. Imports no torch."""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.json_text import parse_json
from harness.limits import MAX_ARCHIVE_BYTES
from harness.problem.module import ProblemError, ProblemFile
from harness.record.fields import PROBLEM
from harness.record.shape import LIST, NUMBER, OBJECT, TEXT, count, or_none, shape
from harness.solution.includes import read_bytes
from kernelbench.run_files.log import write_whole

FILE = "audit.jsonl"  # beside the problems that it is about
METHOD = 2  # counts changes of draws, criterion, soundness, answers or mutants: earlier records are stale
_PUBLISHED = "published inputs, initial weights"
_AUDIT = shape(
    {
        "problem!": PROBLEM, "name!": TEXT, "sha256!": TEXT, "workload!": TEXT, "sizes!": OBJECT, "operators": OBJECT,
        "flops": or_none(count()), "bytes": or_none(count()), "published_flops": or_none(count()),
        "published_bytes": or_none(count()), "outputs": LIST, "outputs[]": LIST, "outputs[][]": count(),
        "operators.*": count(), "trials[]": TEXT, "answers.*[]": TEXT, "explained.*": TEXT, "survivors[]": TEXT,
        "without_effect[]": TEXT, "mutants": count(), "killed": count(), "killed_as_published": count(),
        "equivalent": count(), "trials": LIST,
        "answers": OBJECT, "answers.*": LIST, "explained": OBJECT, "survivors": LIST, "without_effect": LIST,
        "error": TEXT, "method": count(), "seconds": NUMBER,
    }
)  # fmt: skip


@dataclass
class Audit:
    """Audit record of one workload. ``grade`` sums it up."""

    problem: str
    name: str
    sha256: str  # of the module
    workload: str
    sizes: dict[str, Any]
    operators: dict[str, int] = field(default_factory=dict)  # aten operator -> calls in a forward
    flops: int | None = None
    bytes: int | None = None
    published_flops: int | None = None  # of the first workload
    published_bytes: int | None = None
    outputs: list[list[int]] = field(default_factory=list)  # shapes
    finite: bool = False
    deterministic: bool = False
    shapes_as_declared: bool = False
    flops_as_declared: bool = False  # by the table in problems/README.md; True where nothing is declared
    trials: list[str] = field(default_factory=list)
    without_effect: list[str] = field(default_factory=list)  # inputs and parameters that change nothing
    answers: dict[str, list[str]] = field(default_factory=dict)  # trivial answer -> trials that it passes
    explained: dict[str, str] = field(default_factory=dict)  # trivial answers that the module explains
    mutants: int = 0
    killed: int = 0
    killed_as_published: int = 0  # by the published draw alone
    equivalent: int = 0  # mutants that compute the same function; they do not count
    survivors: list[str] = field(default_factory=list)
    method: int = METHOD
    device: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    error: str = ""  # why nothing could be found out

    @property
    def score(self) -> float | None:
        """Killed mutants as a share of those that compute another function; None where there are none."""
        return self.killed / self.mutants if self.mutants else None

    @property
    def passing(self) -> list[str]:
        """Trivial answers that pass every trial."""
        return [name for name, passed in self.answers.items() if len(passed) == len(self.trials)]

    @property
    def passing_as_published(self) -> list[str]:
        """Return those that would pass if candidates were checked on the published draw only."""
        return [name for name, passed in self.answers.items() if _PUBLISHED in passed]

    @property
    def grade(self) -> str:
        """A, B, C or F.

        A: nothing trivial passes, and the score is 0.95 or more. B: as A from 0.8. C: what passes is
        explained by the module. F: anything else.
        """
        if self.error:
            return "F"
        fit = self.finite and self.deterministic and self.shapes_as_declared and self.flops_as_declared
        score = 1.0 if self.score is None else self.score
        if not fit or score < 0.8 or set(self.passing) - set(self.explained):
            return "F"
        if self.passing:
            return "C"
        return "A" if score >= 0.95 else "B"

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "score": self.score, "grade": self.grade}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Audit:
        """Inverse of ``to_json``. Raises ValueError for values of other types."""
        _AUDIT.check(record)
        names = {f.name for f in dataclasses.fields(cls)}
        return cls(**{key: value for key, value in record.items() if key in names})


class AuditFile:
    """The records of a suite, a line each, in order of problem and workload. Raises ProblemError where one is none."""

    def __init__(self, path: Path):
        self.path = path
        self._records: dict[str, dict[str, Audit]] = {}  # by problem, by workload
        if not path.exists():
            return
        try:
            lines = read_bytes(path, MAX_ARCHIVE_BYTES).splitlines()
        except OSError as error:
            raise ProblemError(f"{path} cannot be read: {error.strerror}") from None
        for number, line in enumerate(lines, start=1):
            try:
                self._keep(Audit.from_json(parse_json(line)))
            except ValueError:  # without what is there: a run of others may name any folder, and have a link in its own
                message = f"{path}, line {number}, is no audit: make it anew with kb problems audit"
                raise ProblemError(message) from None

    def get(self, file: ProblemFile, workload: str | None = None) -> Audit | None:
        """The record of a problem as it is now; None where there is none, or only one of another text or method.

        Without ``workload``, the first one's that holds.
        """
        records = self._records.get(str(file.id), {})
        if not (found := [record for name, record in records.items() if workload in (None, name)]):
            return None
        try:
            sha256 = hashlib.sha256(read_bytes(file.path)).hexdigest()
        except OSError:  # no plain file, or larger than a source
            return None
        return next((record for record in found if (record.sha256, record.method) == (sha256, METHOD)), None)

    def put(self, *records: Audit) -> None:
        """Keep records, on disk before this returns, beside those that others have put there meanwhile.

        Without any, it is found out whether they can be kept. Raises OSError where there is no place for the file.
        """
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            self._records = AuditFile(self.path)._records
            for record in records:
                self._keep(record)
            self._write()
        finally:
            os.close(folder)

    def _write(self) -> None:
        problems = sorted(self._records, key=lambda problem: tuple(map(int, problem.split("/"))))
        records = [record for problem in problems for _, record in sorted(self._records[problem].items())]
        write_whole(self.path, "".join(json.dumps(record.to_json()) + "\n" for record in records))

    def _keep(self, record: Audit) -> None:
        self._records.setdefault(record.problem, {})[record.workload] = record
