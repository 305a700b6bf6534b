"""Journal of a run's solvers: everything that is not a function of the journal itself.

- ``calls.jsonl``: a line for each answer of a model
- ``trajectory.jsonl``: a line for each attempt; ``solutions/`` has the sources
- ``facts.jsonl``: readings by name: profiles, builds, checks, the baseline, what tools said, memory cut-offs
- ``memory.jsonl``: the notes that problems share
- ``schedule.jsonl``: the units of work that were granted, in order, with the run's wall time

A line is on the disk before anything is made of it, so a solver that is run again from its start, with the answers
and results of these logs, arrives at the point where it was interrupted. Without a folder all is kept in memory.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.faults import with_disk_room
from harness.json_text import parse_json
from harness.record.fields import PROBLEM
from harness.record.shape import FROM_0, LIST, OBJECT, TEXT, count, or_none, shape
from harness.solution.naming import DIRECTIVE_LINES, directive_words
from kernelbench.endpoint import Message
from kernelbench.run import RunError
from kernelbench.run_files.folder import read_own
from kernelbench.run_files.log import MOST_LOG_BYTES, append_line, begin, whole_lines, write_below
from kernelbench.run_files.sources import ASKED, TRAJECTORY

CALLS, SOLUTIONS = "calls.jsonl", "solutions"
FACTS, MEMORY, GRANTS = "facts.jsonl", "memory.jsonl", "schedule.jsonl"

_OF_A_CALL = {**ASKED, "tokens!": OBJECT, "cost_usd!": or_none(FROM_0), "seconds!": FROM_0, "tags": OBJECT}
_SHAPES = {
    CALLS: shape(
        {
            "problem!": PROBLEM, "number!": count(), "request!": TEXT, "messages!": LIST, "messages[]": OBJECT,
            "sampling!": OBJECT, "answer!": TEXT, "finish_reason!": or_none(TEXT), "tries!": count(),
            "lost_tries": count(), "tool_calls": LIST, "tool_calls[]": OBJECT, **_OF_A_CALL,
        }
    ),
    TRAJECTORY: shape(
        {
            "problem!": PROBLEM, "sample!": count(), "parent!": or_none(count()), "turn!": count(), "prompt!": LIST,
            "prompt[]": OBJECT, "answer!": or_none(TEXT), **_OF_A_CALL,
        }
    ),
    FACTS: shape({"problem!": TEXT, "key!": TEXT}),
    MEMORY: shape({"problem!": TEXT, "number!": count(), "text!": TEXT, "data": OBJECT}),
    GRANTS: shape({"problem!": TEXT, "unit!": count(), "seconds!": FROM_0}),
}  # fmt: skip

_REPEAT = (
    "A solver that is resumed must do the same again, given the same answers and results: draw from task.rng, read no "
    "clock, and take what is no function of these through task.once"
)
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
    tokens: dict[str, int | None]  # prompt, completion, with an estimate of those of lost tries
    cost_usd: float | None
    seconds: float
    tries: int
    tool_calls: list[dict[str, Any]] = field(default_factory=list)  # of the answer: id, name, arguments
    tags: dict[str, Any] = field(default_factory=dict)  # phase, iteration, hypothesis, ...
    lost_tries: int = 0  # whose answers did not come to their end, and may be billed


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
    tags: dict[str, Any] = field(default_factory=dict)  # phase, iteration, hypothesis, ...


@dataclass(frozen=True)
class Fact:
    """One reading that is not a function of the log; ``key`` names it within its problem."""

    problem: str
    key: str
    value: Any  # JSON


@dataclass(frozen=True)
class Note:
    """One entry of the memory that problems share. ``number`` counts those of its problem, from 1."""

    problem: str
    number: int
    text: str
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Grant:
    """One unit of work of a problem; ``seconds`` is the run's wall time then. Without a problem: a stop."""

    problem: str
    unit: int
    seconds: float

    def __post_init__(self) -> None:
        if bool(self.problem) != bool(self.unit):
            raise ValueError("units of a problem count from 1, and a stop has none")


class Diverged(Exception):
    """A solver that is repeated does something else than the log says."""


class Journal:
    """The logs of one run directory, or without ``folder`` of no directory. Methods may be called from several threads.

    ``granted`` has the units of each problem so far, ``seconds_before`` the wall time of the run's earlier lives.
    """

    def __init__(self, folder: Path | None = None):
        self.folder = folder
        self._lock = threading.RLock()
        self._making: dict[tuple[str, str], threading.Lock] = defaultdict(threading.Lock)
        self._sources: dict[tuple[str, int], tuple[str, str]] = {}  # kind and source, without a folder
        self.calls = {(c.problem, c.number): c for c in self._read(CALLS, Call)}
        self.attempts = {(a.problem, a.sample): a for a in self._read(TRAJECTORY, Attempt)}
        self.facts = {(f.problem, f.key): f.value for f in self._read(FACTS, Fact)}
        self.notes: list[Note] = self._read(MEMORY, Note)
        grants = self._read(GRANTS, Grant)
        self.granted: dict[str, int] = {grant.problem: grant.unit for grant in grants if grant.problem}
        self.seconds_before = max((grant.seconds for grant in grants), default=0.0)

    def _read(self, name: str, record: type) -> list:
        if self.folder is None:
            return []
        path = self.folder / name
        try:
            if not os.path.lexists(path):
                begin(path)
            lines, _ = whole_lines(path)
            known = list(map(parse_json, lines))
            for one in known:
                _SHAPES[name].check(one)
            return [record(**one) for one in known]
        except OSError as error:
            raise RunError(f"{path} cannot be read: {error.strerror}; choose another --out") from None
        except (ValueError, TypeError) as error:
            raise RunError(f"{path} is damaged: {error}; choose another --out") from None

    def spent(self, problem: str | None = None) -> list[Call | Attempt]:
        """Return what has costs, of one problem or of all: calls, or the attempts of one whose program has its own."""
        calls: dict[str, list] = defaultdict(list)
        attempts: dict[str, list] = defaultdict(list)
        for of, known in ((calls, self.calls), (attempts, self.attempts)):
            for (one, _), record in known.items():
                of[one].append(record)
        names = [problem] if problem else [*{**calls, **attempts}]
        return [record for name in names for record in calls[name] or attempts[name]]

    def _append(self, name: str, record: Any) -> None:
        line = _line_of(name, record)
        if self.folder is not None:
            with_disk_room(lambda: append_line(self.folder / name, line))

    def add_call(self, call: Call) -> None:
        with self._lock:
            self._append(CALLS, call)
            self.calls[call.problem, call.number] = call

    def fact(self, problem: str, key: str, make: Callable[[], Any]) -> Any:
        """Return the value (JSON) of the log, else what ``make`` returns, which then is in the log."""
        with self._lock:
            making = self._making[problem, key]
        with making:
            if (problem, key) not in self.facts:
                value = json.loads(json.dumps(make()))  # what a resumed run would read
                with self._lock:
                    self._append(FACTS, Fact(problem, key, value))
                    self.facts[problem, key] = value
            return self.facts[problem, key]

    def add_note(self, note: Note) -> None:
        """Add a note, unless the log has it. Raises Diverged where the log has another one of this number."""
        note = Note(**_line_of(MEMORY, note))  # what a resumed run would read
        with self._lock:
            known = next((n for n in self.notes if (n.problem, n.number) == (note.problem, note.number)), None)
            if known is None:
                self._append(MEMORY, note)
                self.notes.append(note)
            elif digest(dataclasses.asdict(known)) != digest(dataclasses.asdict(note)):  # a nan is not itself
                raise Diverged(f"note {note.number} is not the one in {MEMORY}: {_REPEAT}")

    def grant(self, problem: str, unit: int, seconds: float) -> None:
        with self._lock:
            self._append(GRANTS, Grant(problem, unit, round(seconds, 3)))
            self.granted[problem] = unit

    def note_seconds(self, seconds: float) -> None:
        """Keep the run's wall time, for a limit on it that holds over several lives."""
        with self._lock:
            self._append(GRANTS, Grant("", 0, round(seconds, 3)))

    def add_attempt(self, attempt: Attempt, kind: str, source: str) -> tuple[Path | None, bool]:
        """The attempt's file, written unless it is there, and whether it was. The file is None without a folder.

        Raises Diverged where the log holds another source for this attempt.
        """
        key = attempt.problem, attempt.sample
        known = key in self.attempts
        if not known:
            _line_of(TRAJECTORY, attempt)
        if self.folder is None:
            if not known:
                self.attempts[key], self._sources[key] = attempt, (kind, source)
            return None, known
        path = self.path_of(*key, kind)
        source = numbered(_writable(source), *key)
        if known and not (path.exists() and _text(path) == source):
            raise Diverged(f"attempt {attempt.sample} is not the one in {self.folder / TRAJECTORY}. {_REPEAT}")
        if not known:
            name = str(path.relative_to(self.folder))
            with_disk_room(lambda: write_below(self.folder, name, source.encode("utf-8", errors="surrogateescape")))
            with self._lock:
                self._append(TRAJECTORY, attempt)
                self.attempts[key] = attempt
        return path, known

    def recorded(self, problem: str) -> list[tuple[str, str]]:
        """Kind and source of the attempts in the log, from the first on."""
        if self.folder is None:
            return [self._sources[key] for key in sorted(self._sources) if key[0] == problem]
        found = []
        while (problem, len(found) + 1) in self.attempts:
            path = self.path_of(problem, len(found) + 1, "*")
            path = next(path.parent.glob(path.name), None)
            if path is None:
                break
            found.append((path.suffix.removeprefix("."), _text(path)))
        return found

    def path_of(self, problem: str, sample: int, kind: str) -> Path:
        level, number = problem.split("/")
        return self.folder / SOLUTIONS / f"level{level}" / f"{number}_s{sample}.{kind}"


def _line_of(name: str, record: Any) -> dict[str, Any]:
    """Return a record as it is read again. Raises ValueError for one that is not: a solver may say anything."""
    try:
        line = parse_json(json.dumps(dataclasses.asdict(record)))
        _SHAPES[name].check(line)
        return line
    except (ValueError, TypeError) as error:
        raise ValueError(f"this cannot be kept in {name}: {error}") from None


def digest(request: Any) -> str:
    """Return the SHA-256 of a request's JSON."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def numbered(source: str, problem: str, sample: int) -> str:
    """``source`` whose ``kb:`` comments, if it has some, name this problem and sample: they win over file names.

    The same as before if it is such a source already: what was kept is read and written again.
    """
    lines = source.splitlines(keepends=True)
    for index, line in enumerate(lines[:DIRECTIVE_LINES]):
        if words := directive_words(line):
            kept = [word for word in words if not word.startswith(("problem=", "sample="))]
            before, after = line[: line.index("kb:")], " */" if line.rstrip().endswith("*/") else ""
            if not after and kept and kept[-1].endswith("*/"):  # which the next one takes for the comment's end
                kept[-1], after = kept[-1].removesuffix("*/"), " */"
            end = line[len(line.splitlines()[0]) :]  # which may be a form feed: what follows is no word of this comment
            said = " ".join(["kb:", f"problem={problem}", f"sample={sample}", *filter(None, kept)])
            lines[index] = f"{before}{said}{after}{end}"
    return "".join(lines)


def _text(path: Path) -> str:
    """A kept source; RunError where it is no plain file, or larger than a log that has the answer it is from."""
    try:
        return read_own(path, MOST_LOG_BYTES).decode("utf-8", errors="surrogateescape")
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}; choose another --out") from None


def _writable(source: str) -> str:
    """``source`` with escapes in the place of characters that no file can hold."""
    return _NO_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", source)
