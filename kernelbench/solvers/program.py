"""A solver as a program in any language, which finds its task in files and leaves its candidates as files.

It runs in a folder of its own with ``task.json``, ``problem.py``, ``prompt.md`` and starters. What it puts
there as ``attempt_1.py`` (``.cu``, ``.cpp``) is evaluated, and ``feedback_1.json`` (the record of
``kb eval``) and ``feedback_1.txt`` (the same to be read) appear; then ``attempt_2``. ``attempt_1.json``,
put there before, goes into the trajectory: parent, turn, prompt, answer, tokens, cost_usd, seconds.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any, BinaryIO

from harness.faults import with_disk_room
from harness.json_text import parse_json
from harness.limits import MAX_JSON_BYTES, MAX_SOURCE_BYTES
from harness.record.shape import FROM_0, LIST, OBJECT, TEXT, or_none, shape
from harness.result import Result
from harness.solution.discover import SUFFIXES
from harness.solution.includes import open_plain, read_head
from kernelbench import escaping
from kernelbench.metrics import settled
from kernelbench.run_files.folder import WORKSPACES, must_have_one_name, read_own
from kernelbench.run_files.log import write_below
from kernelbench.run_files.sources import ORIGIN
from kernelbench.solvers.candidate import Candidate, Talk
from kernelbench.solvers.plan import SolverError
from kernelbench.solvers.prompting import feedback
from kernelbench.solvers.task import Task

# As the journal takes them: what it would refuse is refused before anything is written.
_ORIGIN = shape({**ORIGIN, "tokens": OBJECT, "seconds": FROM_0, "tags": OBJECT, "prompt": LIST, "prompt[]": OBJECT,
                 "answer": or_none(TEXT)})  # fmt: skip

_POLL_S = 0.05
_SETTLED_S = 0.15  # without a change, and a file that was not moved into place counts as written
_GOODBYE_S = 5.0
_LOG_BYTES = 2000
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# The program, with all that it starts, ends with us, however we end: then nobody has the other end of this one's input.
_LAUNCH = f"""
import os, select, signal, sys
program = os.fork()
if program == 0:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.execvp(sys.argv[1], sys.argv[1:])
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a program may send it to all of its group
ended = os.pidfd_open(program)
if ended not in select.select([0, ended], [], [])[0]:
    os.killpg(0, signal.SIGTERM)
    select.select([ended], [], [], {_GOODBYE_S})
    os.killpg(0, signal.SIGKILL)  # also what outlived the program
sys.exit(os.waitstatus_to_exitcode(os.waitpid(program, 0)[1]) & 0xFF)
"""


class Program:
    """Raises SolverError where there is no such program."""

    def __init__(self, command: str):
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise SolverError(f"--solver-command is no command line: {error}") from None
        if not words:
            raise SolverError("--solver-command is empty")
        if os.sep in words[0]:  # as for a shell: a name alone is looked for on the PATH
            if not Path(words[0]).is_file():
                raise SolverError(f"there is no program {words[0]}")
            words[0] = str(Path(words[0]).resolve())
        elif shutil.which(words[0]) is None:
            here = f"; for the one in this folder write ./{words[0]}" if Path(words[0]).is_file() else ""
            raise SolverError(f"there is no program {words[0]} on the PATH{here}")
        if not os.access(shutil.which(words[0]) or words[0], os.X_OK):
            raise SolverError(f"{words[0]} is not executable: chmod +x {words[0]}")
        self.name, self._words = command, words
        self.sha256 = _digest(words)

    def run(self, task: Task, folder: Path) -> None:
        workspace = folder / WORKSPACES / task.id.replace("/", "_")
        workspace.mkdir(parents=True, exist_ok=True)
        evaluating = {
            number: task.start(Candidate(source, kind)) for number, (kind, source) in enumerate(task.recorded, 1)
        }
        task.end_replay()
        _report(workspace, evaluating, task)
        _furnish(workspace, task)
        with _opened(workspace / "log.txt") as log:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _LAUNCH, *self._words],
                cwd=workspace, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        try:
            self._serve(process, workspace, evaluating, task)
        finally:
            _put(workspace, "done", "")
            _end(process)

    def _serve(self, process: subprocess.Popen, workspace: Path, evaluating: dict[int, Future], task: Task) -> None:
        """Serve until the program ends or the budget is spent, and all feedback is given."""
        seen: dict[Path, tuple[Any, float]] = {}
        while True:
            ended = _has_ended(process)  # before the look at its files, which are then the last
            while task.budget > 0 and (path := _attempt(workspace, len(task.sources) + 1, ended, seen)):
                number = len(task.sources) + 1
                evaluating[number] = task.start(_candidate(path))
            _report(workspace, evaluating, task)
            if not evaluating and (ended or task.budget <= 0):
                break
            time.sleep(_POLL_S)
        if ended and process.returncode:
            raise SolverError(
                f"{self.name} ended with exit status {process.returncode}:\n{_tail(workspace / 'log.txt')}"
            )


def _furnish(workspace: Path, task: Task) -> None:
    """Everything that the program may want to read."""
    from kernelbench import starter  # imports torch

    (workspace / "done").unlink(missing_ok=True)
    put = functools.partial(_put, workspace)
    put("problem.py", task.source)
    put("prompt.md", task.prompt()[0]["content"] + "\n")
    files = {"problem": "problem.py", "prompt": "prompt.md"}
    for kind in task.kinds:
        with contextlib.suppress(ValueError):  # host C++ has no name for some types
            put(f"starter.{kind}", starter.of(task.workload, kind, task.precision))
            files[f"starter_{kind}"] = f"starter.{kind}"
    for name, text in {"hardware": task.hardware, "sol": task.sol}.items():
        if text:
            files[name] = f"{name}.md"
            put(f"{name}.md", text + "\n")
    facts = {
        "problem": task.id,
        "name": task.name,
        "budget": task.total_budget,
        "attempts": len(task.sources),
        "workload": task.workload.name,
        "sizes": task.sizes,
        "precision": task.precision,
        "device": task.device,
        "kinds": task.kinds,
        "signature": task.signature.declaration(),
        "seed": task.seed,
        "settings": task.options,
        "model": task.llm.model,
        "base_url": task.llm.base_url,
        "files": files,
    }
    put("task.json", json.dumps(facts, indent=2) + "\n")


def _opened(log: Path) -> BinaryIO:
    try:
        file = open(os.open(log, _APPEND, 0o666), "ab")
        must_have_one_name(file.fileno())
        return file
    except OSError as error:
        raise SolverError(f"cannot write {log}: {error.strerror}") from None


def _put(workspace: Path, name: str, text: str) -> None:
    """Write a file that is there whole; a link in its place, which may be of others, is replaced.

    Raises SolverError where the workspace itself has become a link, or is gone.
    """
    try:
        with_disk_room(lambda: write_below(workspace.parents[1], f"{WORKSPACES}/{workspace.name}/{name}", text))
    except OSError as error:
        raise SolverError(f"cannot write {workspace / name}: {error.strerror}") from None


def _attempt(workspace: Path, number: int, ended: bool, seen: dict[Path, tuple[Any, float]]) -> Path | None:
    """The file of an attempt, once it is complete: ``seen`` has what files were like, and since when.

    Their own times may be of another clock, or of a file that was copied.
    """
    for suffix in SUFFIXES:
        path = workspace / f"attempt_{number}{suffix}"
        if not path.exists():
            continue
        now = path.stat()
        like = now.st_ino, now.st_size, now.st_mtime_ns
        before, since = seen.get(path, (None, 0.0))
        if before != like:
            seen[path] = like, time.monotonic()
        if ended or before == like and time.monotonic() - since >= _SETTLED_S:
            return path
    return None


def _candidate(path: Path) -> Candidate:
    """Return a candidate with what ``attempt_N.json`` says of it, if that is there."""
    origin = {}
    described = path.with_suffix(".json")
    if described.exists():
        try:
            origin = parse_json(_text(described, "strict"))
            _ORIGIN.check(origin)
            talk = Talk(**{key: origin[key] for key in Talk.__dataclass_fields__ if key in origin})
        except (ValueError, TypeError) as error:
            raise SolverError(f"{described} is no description of an attempt: {error}") from None
    else:
        talk = Talk()
    return Candidate(_text(path), path.suffix.removeprefix("."), origin.get("parent"), origin.get("turn"), talk)


def _text(path: Path, errors: str = "surrogateescape") -> str:
    """Return the file that the program left. Raises SolverError where it is no plain file or too large."""
    try:
        return read_own(path, MAX_JSON_BYTES).decode("utf-8", errors=errors)
    except OSError as error:
        raise SolverError(f"{path} cannot be read: {error.strerror}") from None


def _report(workspace: Path, evaluating: dict[int, Future], task: Task) -> None:
    """Feedback for what is evaluated by now; the JSON file comes last, so it may be waited for."""
    for number, future in list(evaluating.items()):
        if future.done():
            result: Result = future.result()
            parts = (feedback.execution(result), feedback.profile(result), f"attempts left: {task.budget}")
            text = "\n".join(filter(None, parts)) + "\n"
            _put(workspace, f"feedback_{number}.txt", escaping.terminal(text))  # a program may print them
            record = result.to_json() | {"settled": settled.to_json(result)}
            _put(workspace, f"feedback_{number}.json", escaping.json_line(record) + "\n")
            del evaluating[number]
            if not evaluating:
                task.end_attempts()


def _end(process: subprocess.Popen) -> None:
    """Time to see ``done``, then the hard way."""
    until = time.monotonic() + _GOODBYE_S
    while not _has_ended(process) and time.monotonic() < until:
        time.sleep(_POLL_S)
    process.stdin.close()  # the launcher ends it, and all of its group
    while not _has_ended(process):
        time.sleep(_POLL_S)


def _has_ended(process: subprocess.Popen) -> bool:
    """Return whether the program has ended; what it started and left ends then, while the group's number is its own."""
    if process.returncode is None and process.poll() is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode is not None


def _digest(words: list[str]) -> str:
    """Return the digest of the program's files: its script may be an argument of an interpreter. Raises SolverError.

    Of a large one, such as weights, its begin and its size count: who lists a plan of others does not wait for it.
    """
    content = []
    for word in words:
        try:
            is_file = os.path.isfile(word)  # of what can be no path, as a script of one line, Path's own raises
            data, size = read_head(Path(word), MAX_SOURCE_BYTES) if is_file else (os.fsencode(word), 0)
        except OSError as error:
            raise SolverError(f"cannot read {word}: {error.strerror}") from None
        content.append(data + f" of {size}".encode() if size > MAX_SOURCE_BYTES else data)
    return hashlib.sha256(b"\0".join(content)).hexdigest()


def _tail(path: Path) -> str:
    """The end of a log, of which a program may write any amount."""
    with open_plain(path) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _LOG_BYTES))
        return file.read(_LOG_BYTES).decode("utf-8", errors="replace").strip()
