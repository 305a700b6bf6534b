"""A run directory: the configuration, and an append-only log with one result a line.

Every other file in it is a view that can be made again from the log.
"""

from __future__ import annotations

import datetime
import fcntl
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from harness.json_text import parse_json
from harness.problem.module import ProblemFile
from harness.record.shape import LINE, NUMBER, OBJECT, count, kind, list_of, or_none, shape
from harness.result import Result
from harness.solution.discover import Solution
from harness.solution.includes import digest_of
from kernelbench import __version__
from kernelbench.metrics import workloads
from kernelbench.run_files import unevaluated
from kernelbench.run_files.folder import first_in, foreign, read_own
from kernelbench.run_files.log import (
    FullLog,
    RunError,
    WriteError,
    append_line,
    begin,
    whole_lines,
    write_all_new,
    write_whole,
)

CONFIG = "config.json"
LOG = "results.jsonl"

# What must agree for results to stand in one log.
_IDENTITY = ("solutions", "problem_dir", "workload", "precision", "device", "track", "baselines", "clock_mhz")
_IDENTITY += ("threads", "held_out", "solver", "solver_sha256", "model", "seed", "settings", "schedule", "start_sha256")
_OF_SOLVERS = ("calls.jsonl", "trajectory.jsonl", "facts.jsonl")  # logs of what solvers asked, made and measured
# What a configuration says that was written before there was a choice.
_BEFORE = {"schedule": "depth", "start_sha256": "", "held_out": 0}

_TEXTS = ("problems", "device", "workload", "precision", "track", "started", "kernelbench")
_TEXTS += ("solver", "solver_sha256", "model", "schedule", "start_sha256", "base_url")
_MOST_CONFIG_BYTES = 1 << 20
# Of their figures, over each baseline, there are intervals: a leaderboard of so many takes two gigabytes.
MOST_PROBLEMS = 5_000
_MOST_NAMES = {"problems": MOST_PROBLEMS, "baselines": 16}
_PATH_BYTES, _NAME_BYTES = 4095, 255  # PATH_MAX without its end, and NAME_MAX, of Linux


def _is_path(text: str) -> bool:
    path = text.encode(errors="surrogateescape")
    return len(path) <= _PATH_BYTES and b"\0" not in path and all(len(n) <= _NAME_BYTES for n in path.split(b"/"))


_CONFIG = shape(
    {
        **{name: or_none(kind("a path", str, fits=_is_path)) for name in ("solutions", "problem_dir")},
        **{name: or_none(LINE) for name in _TEXTS},
        **{name: or_none(count()) for name in ("at_once", "held_out", "threads")},
        "baselines": or_none(list_of(LINE)),
        "clock_mhz": or_none(NUMBER),
        "seed": or_none(count()),
        "settings": or_none(OBJECT),
        "workloads": or_none(OBJECT),
        "workloads.*": list_of(LINE),
    }
)


@dataclass
class Run:
    """An open run directory. ``results`` are those already in the log, in order."""

    path: Path
    config: dict[str, Any]
    results: list[Result]
    torn: bool = False  # the log ended in a half-written line, which was dropped
    unevaluated: list[dict[str, Any]] = field(default_factory=list)  # see ``run_files.unevaluated``
    _writer: IO | None = None  # holds the lock of who may write
    _named: dict[str, set[str]] = field(default_factory=dict, repr=False)  # of the results, once one is appended
    _by_solution: tuple[Any, dict] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def create(cls, path: Path, config: dict[str, Any], results: Sequence[Result] = ()) -> Run:
        """A new run, with ``results`` in its log.

        RunError where ``path`` holds one already, or anything else, which would be taken for its own.
        """
        if os.path.exists(path) and not os.path.isdir(path):  # of a closed folder Python 3.11's own raise
            raise RunError(f"{path} is a file, and a run is a directory; choose another --out")
        if os.path.exists(path / CONFIG):
            raise RunError(f"{path} holds a run already; continue it with --resume, or choose another --out")
        if os.path.lexists(path / LOG):
            raise RunError(f"{path} has a {LOG} and no {CONFIG} that says of what; choose another --out")
        if others := first_in(path):
            raise RunError(f"{path} has {others}, and a new run begins in an empty folder; choose another --out")
        log = "".join(json.dumps(result.to_json()) + "\n" for result in results)
        try:
            # the configuration last, with which it is a run
            write_all_new(path, {**({LOG: log} if log else {}), CONFIG: _text(config)})
            begin(path / LOG)
        except FileExistsError:
            raise RunError(f"{path} holds a run by now, of another kb; choose another --out") from None
        except OSError as error:
            raise WriteError(f"cannot make a run directory in {path}: {error.strerror}") from error
        return cls(path, config, [*results])

    @classmethod
    def resume(cls, path: Path, config: dict[str, Any]) -> Run:
        """Continue the run in ``path``, or start it; RunError where it has results of another configuration.

        So where a solver has worked for it: what it asked and measured is of that configuration too.
        """
        if not os.path.exists(path / CONFIG):
            return cls.create(path, config)
        run = cls.load(path)
        different = [key for key in _IDENTITY if not _same(key, _of(run.config, key), _of(config, key))]
        if different and (run.results or any(map(_has_content, map(path.joinpath, _OF_SOLVERS)))):
            details = ", ".join(f"{key} was {run.config.get(key)!r} and is {config.get(key)!r}" for key in different)
            raise RunError(f"{path} is a run of another configuration: {details}; choose another --out")
        if different:
            run.config = config
        run.config["problems"] = config.get("problems")  # what counts is for the last command to say
        if names := config.get("workloads"):  # those of problems that it does not select stay
            run.config["workloads"] = (run.config.get("workloads") or {}) | names
        run.write(CONFIG, _text(run.config))
        for record in unevaluated.bounded(run.unevaluated, len(run.results)):
            unevaluated.append(path, run.unevaluated, record)
        return run

    @classmethod
    def open(cls, path: Path, config: dict[str, Any], resume: bool, results: Sequence[Result] = ()) -> Run:
        """A new run with ``results``, or with ``resume`` the one that is there; ``config`` with what made it, and when.

        Nobody else may open it until ``close``, or the end of this process.
        """
        started = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
        config = {**config, "started": started, "kernelbench": __version__}
        if others := foreign(path):
            raise RunError(f"{others}: choose another --out")
        run = None if resume and os.path.exists(path / CONFIG) else cls.create(path, config, results)
        writer = only_writer(path / LOG)
        run = run or cls.resume(path, config)
        run._writer = writer
        return run

    @classmethod
    def load(cls, path: Path) -> Run:
        """Return the run in ``path``; RunError where there is none, or the log is damaged but for its end."""
        if os.path.exists(path) and not os.path.isdir(path):  # of a closed folder Python 3.11's own raise
            raise RunError(f"{path} is a file, and a run is a directory")
        try:
            config = parse_json(read_own(path / CONFIG, _MOST_CONFIG_BYTES).decode())
            lines, torn = whole_lines(path / LOG)
        except FileNotFoundError as error:
            raise RunError(f"{path} is no run directory: it has no {Path(error.filename).name}") from None
        except OSError as error:
            raise RunError(f"{error.filename} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise RunError(f"{path / CONFIG} is not JSON ({error}): put back what it was, or start a new run") from None
        try:
            _CONFIG.check(config)
        except ValueError as error:
            message = f"{path / CONFIG} is no configuration ({error}): put back what it was, or start a new run"
            raise RunError(message) from None
        results = []
        for number, line in enumerate(lines, start=1):
            try:
                results.append(Result.from_json(parse_json(line)))
            except (ValueError, KeyError, TypeError) as error:
                raise RunError(
                    f"{path / LOG}, line {number}, is no result ({error}): without that line the run can be used, "
                    "and with --resume what it was of is evaluated again"
                ) from None
        for what, names in _names_in(results).items():
            if len(names) > _MOST_NAMES[what]:
                message = f"{path} has results of {len(names):,} {what}, and at most {_MOST_NAMES[what]:,} are read"
                raise RunError(message)
        return cls(path, config, results, torn, unevaluated.read(path))

    def close(self) -> None:
        """Let others write into it."""
        if self._writer:
            self._writer.close()
            self._writer = None

    def append(self, result: Result) -> None:
        """Write one result and make sure that it is on the disk.

        Raises WriteError, also for more problems or baselines than are read of a run.
        """
        self._named = self._named or _names_in(self.results)
        more = {what: self._named[what] | names for what, names in _names_in([result]).items()}
        for what, names in more.items():
            if len(names) > _MOST_NAMES[what]:
                raise FullLog(f"{self.path} has results of {_MOST_NAMES[what]:,} {what}: go on in another directory")
        append_line(self.path / LOG, result.to_json())
        self._named = more
        self.results.append(result)

    def write(self, name: str, content: bytes | str) -> None:
        """Write a file of the run that is there whole or as it was before."""
        try:
            write_whole(self.path / name, content)
        except OSError as error:
            reason = f"cannot write {error.filename}: {error.strerror}"
            raise WriteError(f"{reason}; put it right and continue with --resume") from error

    def missing(self, cases: list[tuple[Solution, str]]) -> list[tuple[Solution, str]]:
        """Solutions and workloads without a result of the solution's present content, as ``latest`` has them."""
        known = {(r.problem, r.solution["name"], *content_of(r), r.workload.get("name")) for r in self.latest()}
        return [(s, name) for s, name in cases if (str(s.problem), s.name, s.sha256, s.helpers, name) not in known]

    def of_other_problems(self, files: Iterable[ProblemFile]) -> list[Result]:
        """Return those of ``latest`` whose problem, one of ``files``, is not the one any more that they are of.

        One that cannot be read counts as changed.
        """
        known = [result for result in self.latest() if result.problem_sha256]
        problems = {result.problem for result in known}
        present = {str(file.id): _digest_if_any(file.path) for file in files if str(file.id) in problems}
        return [r for r in known if present.get(r.problem, r.problem_sha256) != r.problem_sha256]

    def latest(self) -> list[Result]:
        """The last result of each (problem, solution file, workload) that counts, in order of problem and sample."""
        return sorted(_last(self._counted()), key=result_order)

    def latest_of(self, problem: str, name: str) -> list[Result]:
        """Return the results of ``latest`` that one solution has."""
        version = len(self.results), len(self.unevaluated)
        if self._by_solution is None or self._by_solution[0] != version:
            found: dict[tuple[str, str], list[Result]] = {}
            for result in self.latest():
                found.setdefault((result.problem, result.solution["name"]), []).append(result)
            self._by_solution = version, found
        return self._by_solution[1].get((problem, name), [])

    def measured_first(self) -> list[Result]:
        """Return the results of ``latest`` as they were before a second measurement, in the order of the log."""
        return self._without_parts(_last(result for result in self._counted() if result.confirms is None))

    def _counted(self) -> list[Result]:
        """Return the results but those of an older content of the file than its last, and those that were withdrawn."""
        since = unevaluated.withdrawn(self.unevaluated)
        left = [r for place, r in enumerate(self.results) if place >= since.get((r.problem, r.solution["name"]), 0)]
        content = {(r.problem, r.solution["name"]): content_of(r) for r in left}
        return [r for r in left if content_of(r) == content[r.problem, r.solution["name"]]]

    def solutions(self) -> list[Result]:
        """Return ``whole`` with all workloads of a solution as one result."""
        return workloads.together(self.whole())

    def whole(self) -> list[Result]:
        """Return ``latest`` without the solutions that were skipped on one of their workloads, or not evaluated yet."""
        return self._without_parts(self.latest())

    def _without_parts(self, results: list[Result]) -> list[Result]:
        parts = self._in_part(results)
        return [result for result in results if (result.problem, result.solution["name"]) not in parts]

    def _in_part(self, latest: list[Result]) -> set[tuple[str, str]]:
        """Return problem and name of solutions that have results on a part of their workloads only, all right."""
        done: dict[tuple[str, str], set[str]] = {}
        for result in latest:
            done.setdefault((result.problem, result.solution["name"]), set()).add(result.workload.get("name", ""))
        failed = {(result.problem, result.solution["name"]) for result in latest if not result.correct}
        wanted = workloads.of_run(self.config, latest)
        begun = {of for of, names in done.items() if wanted.get(of[0], set()) - names} - failed
        return begun | unevaluated.in_part(latest, self.unevaluated)


def _last(results: Iterable[Result]) -> list[Result]:
    return list({(r.problem, r.solution["name"], r.workload.get("name")): r for r in results}.values())


def _names_in(results: Iterable[Result]) -> dict[str, set[str]]:
    """Return the names that results have of what a run may have only so many of."""
    problems, baselines = set(), set()
    for result in results:
        problems.add(result.problem)
        baselines.update(result.baselines)
    return {"problems": problems, "baselines": baselines}


def _digest_if_any(path: Path) -> str:
    try:
        return digest_of(path)
    except OSError:
        return ""


def _has_content(log: Path) -> bool:
    return log.exists() and log.stat().st_size > 0


def _text(config: dict[str, Any]) -> str:
    """Return a configuration as it is written. Raises RunError for more than is read of one."""
    text = json.dumps(config, indent=2) + "\n"
    if len(text) > _MOST_CONFIG_BYTES:
        raise RunError(f"{CONFIG} would have {len(text):,} bytes, and at most {_MOST_CONFIG_BYTES:,} are read of one")
    return text


def _of(config: dict[str, Any], key: str) -> Any:
    return config.get(key, _BEFORE.get(key))


def _same(key: str, one: Any, other: Any) -> bool:
    """Return whether two configurations agree in ``key``; a folder may be called by several names."""
    if key == "threads" and None in (one, other):  # an older run does not say them
        return True
    if one == other or key not in ("solutions", "problem_dir") or None in (one, other):
        return one == other
    return os.path.realpath(one) == os.path.realpath(other)


def only_writer(log: Path) -> IO | None:
    """The log, locked as long as it is open; RunError where somebody else has it, None where it cannot be.

    One that is not there yet is made: of two who begin or continue one run without a log, one writes.
    """
    flags = os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = open(os.open(log, flags, 0o666), "rb")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RunError(f"another kb is writing into {log.parent}; wait for its end, or choose another --out") from None
    except OSError:
        return None  # what is no log, which loading it reports, or a file system without locks
    return file


def content_of(result: Result) -> tuple[str, str]:
    """Return what a solution was when it was evaluated: its file, and those that it takes in."""
    return result.solution["sha256"], result.solution.get("helpers", "")


def result_order(result: Result) -> tuple[int, int, int]:
    """Return the sort key of a result: level, number, sample."""
    level, number = map(int, result.problem.split("/"))
    return level, number, result.solution["sample"]
