"""Journal of a run's solvers: every answer of a model, every attempt, every source.

``calls.jsonl`` has a line for each model call, ``trajectory.jsonl`` one for each attempt,
``solutions/`` the sources. A line is on the disk before anything is made of it, so a solver
that is run again from its start, with the answers and results of these logs, arrives at the
point where it was interrupted.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.solution.discover import DIRECTIVE_LINES, directive_words
from kernelbench.endpoint import Message
from kernelbench.run import RunError, append_line, whole_lines, write_whole
from kernelbench.run_sources import TRAJECTORY

CALLS, SOLUTIONS = "calls.jsonl", "solutions"

_NO_CHARACTERS = re.compile("[\ud800-\udc7f\udd00-\udfff]")  # the others stand for bytes that are no UTF-8


@dataclass(frozen=True)
class Call:
    """One answer of a model. ``number`` counts the calls of its problem, from 1."""

    problem: str
    number: int
    request: str  # digest of everything that was sent
    messages: list[Message]
    sampling: dict[str, Any]
    answer: str
    finish_reason: str | None
    tokens: dict[str, int | None]  # prompt, completion
    cost_usd: float | None
    seconds: float
    tries: int


@dataclass(frozen=True)
class Attempt:
    """One line of the trajectory. ``parent`` is the sample that this one was made from."""

    problem: str
    sample: int
    parent: int | None
    turn: int
    prompt: list[Message]
    answer: str | None
    tokens: dict[str, int | None]  # of all calls since the attempt before
    cost_usd: float | None
    seconds: float  # of those calls


class Diverged(Exception):
    """A solver that is repeated does something else than the log says."""


class Journal:
    """The logs of one run directory; ``add_call`` and ``add_attempt`` may be called from several threads."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._lock = threading.Lock()
        self.calls = {(c.problem, c.number): c for c in self._read(CALLS, Call)}
        self.attempts = {(a.problem, a.sample): a for a in self._read(TRAJECTORY, Attempt)}

    def _read(self, name: str, record: type) -> list:
        path = self.folder / name
        try:
            path.touch()
            lines, _ = whole_lines(path, repair=True)
            return [record(**json.loads(line)) for line in lines]
        except (ValueError, TypeError) as error:
            raise RunError(f"{path} is damaged: {error}; choose another --out") from None

    def add_call(self, call: Call) -> None:
        with self._lock:
            append_line(self.folder / CALLS, dataclasses.asdict(call))
            self.calls[call.problem, call.number] = call

    def add_attempt(self, attempt: Attempt, kind: str, source: str) -> tuple[Path, bool]:
        """The attempt's file, written unless it is there, and whether it was.

        Raises Diverged where the log holds another source for this attempt.
        """
        path = self.path_of(attempt.problem, attempt.sample, kind)
        source = numbered(_writable(source), attempt.problem, attempt.sample)
        known = (attempt.problem, attempt.sample) in self.attempts
        if known and not (path.exists() and path.read_text(encoding="utf-8", errors="surrogateescape") == source):
            raise Diverged(
                f"attempt {attempt.sample} is not the one in {self.folder / TRAJECTORY}. A solver that is resumed "
                "must do the same again, given the same answers and results: draw from task.rng, and read no clock"
            )
        if not known:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, source.encode("utf-8", errors="surrogateescape"))
            with self._lock:
                append_line(self.folder / TRAJECTORY, dataclasses.asdict(attempt))
                self.attempts[attempt.problem, attempt.sample] = attempt
        return path, known

    def recorded(self, problem: str) -> list[tuple[str, str]]:
        """Kind and source of the attempts in the log, from the first on."""
        found = []
        while (problem, len(found) + 1) in self.attempts:
            path = self.path_of(problem, len(found) + 1, "*")
            path = next(path.parent.glob(path.name), None)
            if path is None:
                break
            found.append((path.suffix.removeprefix("."), path.read_text(encoding="utf-8", errors="surrogateescape")))
        return found

    def path_of(self, problem: str, sample: int, kind: str) -> Path:
        level, number = problem.split("/")
        return self.folder / SOLUTIONS / f"level{level}" / f"{number}_s{sample}.{kind}"


def digest(request: Any) -> str:
    """Return the SHA-256 of a request's JSON."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def numbered(source: str, problem: str, sample: int) -> str:
    """``source`` whose ``kb:`` comments, if it has some, name this problem and sample: they win over file names."""
    lines = source.splitlines(keepends=True)
    for index, line in enumerate(lines[:DIRECTIVE_LINES]):
        if words := directive_words(line):
            kept = [word for word in words if not word.startswith(("problem=", "sample="))]
            before, after = line[: line.index("kb:")], " */" if line.rstrip().endswith("*/") else ""
            end = line[len(line.rstrip("\r\n")) :]
            lines[index] = f"{before}{' '.join(['kb:', f'problem={problem}', f'sample={sample}', *kept])}{after}{end}"
    return "".join(lines)


def _writable(source: str) -> str:
    """``source`` with escapes in the place of characters that no file can hold."""
    return _NO_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", source)
