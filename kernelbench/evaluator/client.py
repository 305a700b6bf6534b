"""The evaluator: one process beside the caller's that evaluates candidates the way ``kb eval`` does.

It keeps builds and judges warm between calls and ends with its caller. The caller gives
it nothing but jobs over a socket, one socket a call, so that several threads may call at
once. A fork of the caller starts an evaluator of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from harness.baselines import BASELINES
from harness.integrity.library_only import TRACKS
from harness.job import encode_problem
from harness.problem.module import Problem, ProblemFile, ProblemId
from harness.process import protocol
from harness.process.spawn import start_server
from harness.result import Result
from harness.solution.discover import SolutionError
from harness.timing.convergence import CV_TARGET
from kernelbench import suite
from kernelbench.evaluation.executor import EXECUTORS

PRECISIONS = ("fp32", "fp16", "bf16")
_TRIES = 2  # an evaluator that dies is the machine's fault: what it owes is asked of a new one, once
_ALIVE_EVERY_S = 1.0  # a fork may hold the other end of a socket open, so its end alone is not waited for
_SEND_S = 60.0  # the other side reads at once
_END_S = 10.0


class EvaluationError(Exception):
    """A candidate could not be evaluated, through no fault of its own."""


class EvaluatorUnavailable(EvaluationError):
    """There is no evaluator now, for any candidate: its process died, or its device is gone."""


@dataclass(frozen=True)
class Job:
    """One candidate: the file at ``path``, or else ``source`` of the kind ``kind``.

    With ``fault`` it is a build error with that message, and ``source`` is only kept by its digest.
    """

    problem: ProblemFile | Problem
    path: Path | None = None
    source: str = ""
    kind: str = "py"
    fault: str = ""
    others: frozenset[Path] = frozenset()  # files beside ``path`` that are solutions by what only the suite knows

    def to_json(self) -> dict[str, Any]:
        return {
            "problem": encode_problem(self.problem),
            "path": self.path and str(self.path),
            "source": self.source,
            "kind": self.kind,
            "fault": self.fault,
            "others": sorted(map(str, self.others)),
        }


@dataclass(frozen=True)
class Conditions:
    """Conditions of an evaluation, with the defaults of ``kb eval``. Raises ValueError for an unknown value.

    Attributes
    ----------
    device
        ``cpu``, ``cuda`` or ``cuda:INDEX``; by default the GPU if there is one, else the CPU.
    workload
        Name of the sizes; by default the problem's for that device.
    timeout_s, build_timeout_s
        Seconds that one step of the candidate, and its build, may take.
    baselines
        Timed in turn with the candidate; the speedup is over the first.
    cv_target
        Coefficient of variation at which timing has converged.
    clock_mhz
        SM clock of t_SOL in MHz; by default the one that is observed.
    track
        ``open`` accepts solutions without kernels of their own; ``kernels`` does not, and is the default on a GPU.
    """

    device: str | None = None
    workload: str | None = None
    precision: str = "fp32"
    timeout_s: float = 120.0
    build_timeout_s: float = 900.0
    baselines: Sequence[str] = ("eager",)
    cv_target: float = CV_TARGET
    clock_mhz: float | None = None
    track: str | None = None
    executor: str = "local"
    address: str | None = None  # of the cluster, for executors that have one

    def __post_init__(self) -> None:
        if not isinstance(self.baselines, (list, tuple)) or not self.baselines:
            raise ValueError(f"baselines must be a tuple of names, got {self.baselines!r}")
        for name in self.baselines:
            _check("baseline", name, BASELINES)
            if self.baselines.count(name) > 1:
                raise ValueError(f"baselines name {name} more than once")
        _check("precision", self.precision, PRECISIONS)
        _check("track", self.track, (None, *TRACKS))
        _check("executor", self.executor, tuple(EXECUTORS))
        for name in ("timeout_s", "build_timeout_s", "cv_target", "clock_mhz"):
            value = getattr(self, name)
            if name == "clock_mhz" and value is None:
                continue
            if value is None or not 0 < value <= sys.float_info.max:
                raise ValueError(f"{name} must be a finite number above 0, got {value}")

    def to_json(self) -> dict[str, Any]:
        device = None if self.device is None else str(self.device)  # a torch.device too
        return {**vars(self), "device": device, "baselines": list(self.baselines)}


def _check(what: str, value: str | None, known: Sequence[str | None]) -> None:
    if value not in known:
        raise ValueError(f"{what} must be one of {', '.join(str(one) for one in known)}, got {value!r}")


def problem_file(
    problem: str | Problem, conditions: Conditions, problem_dir: Path | None = None
) -> ProblemFile | Problem:
    """Return the file of a problem such as ``1/19``, of the suite or of ``problem_dir``.

    Raises ValueError where there is none, and ProblemError where it lacks the workload.
    """
    if isinstance(problem, str):
        (file,) = suite.find(str(ProblemId.parse(problem)), problem_dir)
    elif isinstance(problem, Problem):
        file = ProblemFile(problem.id, problem.name, problem.path)
    else:
        raise ValueError(f"a problem is its id, for example '1/19', or what load_problem returns, not {problem!r:.80}")
    if conditions.workload is not None:
        file.workload_name(conditions.workload, "cpu")
    return file


class Asked(Protocol):
    """An evaluator, from outside."""

    def ask(self, jobs: list[tuple[int, Job]], conditions: Conditions, answers: dict[int, dict[str, Any]]) -> None:
        """Put the answer to each job into ``answers`` by its number; raises Closed or OSError where it dies."""


Outcome = Result | EvaluationError | SolutionError


class _Answers(dict[int, dict[str, Any]]):
    """Answers by the numbers of their jobs; ``told`` hears of each as it comes."""

    def __init__(self, told: Callable[[int, Outcome], None]):
        self._told = told

    def __setitem__(self, index: int, answer: dict[str, Any]) -> None:
        super().__setitem__(index, answer)
        self._told(index, outcome_of(answer))


def evaluate_all(
    jobs: Sequence[Job],
    conditions: Conditions,
    evaluator: Asked | None = None,
    told: Callable[[int, Outcome], None] = lambda index, outcome: None,
) -> list[Outcome]:
    """Evaluate all jobs, several at once; return the result of each, or the error that it ended with, in their order.

    A fault of the machine in one job does not end the others. Without ``evaluator`` it is the one of this process.
    ``told`` hears of each job by its place, as soon as it has ended, and raises no OSError: that is the evaluator's.
    """
    evaluator = evaluator or _evaluator
    answers = _Answers(told)
    death = ""
    for _ in range(_TRIES):
        left = [index for index in range(len(jobs)) if index not in answers]
        if not left:
            break
        try:
            evaluator.ask([(index, jobs[index]) for index in left], conditions, answers)
        except (protocol.Closed, OSError) as error:
            death = f": {error}" if str(error) else ""
    message = f"the evaluator ended {_TRIES} times without an answer{death}; `kb doctor` says what is missing"
    for index in range(len(jobs)):
        if index not in answers:
            answers[index] = {"unevaluated": message, "unavailable": True}
    return [outcome_of(answers[index]) for index in range(len(jobs))]


def outcome_of(answer: dict[str, Any]) -> Outcome:
    """Return what an evaluator's answer stands for."""
    if "result" in answer:
        return Result.from_json(answer["result"])
    if "refused" in answer:
        return SolutionError(answer["refused"])
    kind = EvaluatorUnavailable if answer.get("unavailable") else EvaluationError
    return kind(answer["unevaluated"])


class EvaluatorProcess:
    """The evaluator's process, from outside; started with the first call, and again where it has died.

    Once it is closed it starts no other.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self._process: subprocess.Popen | None = None
        self._control: socket.socket | None = None

    def ask(self, jobs: list[tuple[int, Job]], conditions: Conditions, answers: dict[int, dict[str, Any]]) -> None:
        """Put the answer to each job into ``answers`` by its number; raises Closed or OSError where it dies.

        Without jobs ``answers[None]`` says what it evaluates on, or why it cannot. A caller that stops waiting
        (Ctrl-C) closes the socket, which ends the evaluation.
        """
        connection, process = self._connect()
        with connection:
            connection.settimeout(_SEND_S)
            send_call(connection, jobs, conditions)
            connection.settimeout(_ALIVE_EVERY_S)
            for _ in jobs or [None]:  # without jobs it says what it evaluates on
                answer = _receive(connection, process)
                answers[answer["index"]] = answer

    def _connect(self) -> tuple[socket.socket, subprocess.Popen]:
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            try:
                if self._closed:
                    raise protocol.Closed("it was closed")
                if self._process is None or self._process.poll() is not None:
                    self._start()
                self._hand_over(theirs)
            except BaseException:
                ours.close()
                raise
            return ours, self._process

    def _hand_over(self, connection: socket.socket) -> None:
        try:
            socket.send_fds(self._control, [b"\0"], [connection.fileno()])
        except OSError:  # it is about to end
            self._end()
            self._start()
            socket.send_fds(self._control, [b"\0"], [connection.fileno()])

    def _start(self) -> None:
        self.hang_up()
        self._control, theirs = socket.socketpair()
        self._process = start_server("kernelbench.evaluator.process", theirs, bound=False)

    @property
    def pid(self) -> int | None:
        """Return the number of its process; None where none was started."""
        return self._process and self._process.pid

    def hang_up(self) -> None:
        if self._control:
            self._control.close()

    def close(self) -> None:
        """End it; calls that wait raise Closed, and so do later ones."""
        with self._lock:
            self._closed = True
            self._end()

    def _end(self) -> None:
        self.hang_up()
        if self._process is None:
            return
        try:
            self._process.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def send_call(connection: socket.socket, jobs: list[tuple[int, Job]], conditions: Conditions) -> None:
    """Send one call: its conditions, then its jobs, each with its number."""
    protocol.send(connection, {"conditions": conditions.to_json(), "jobs": len(jobs)})
    for index, job in jobs:
        protocol.send(connection, {"index": index, **job.to_json()})


def _receive(connection: socket.socket, process: subprocess.Popen) -> dict[str, Any]:
    """Return the next message; raises wire.Closed as soon as the process is dead."""
    reader = protocol.Reader()
    while (message := reader.message()) is None:
        dead = process.poll() is not None  # before the last look for what it sent
        try:
            reader.feed(connection.recv(reader.wanted()))
        except TimeoutError:
            if dead:
                raise protocol.Closed from None
    return message


_evaluator = EvaluatorProcess()


def _forget() -> None:
    """Leave the parent's evaluator to the parent: with our copy of its socket it would outlive it."""
    global _evaluator
    with contextlib.suppress(OSError):
        _evaluator.hang_up()
    _evaluator = EvaluatorProcess()


os.register_at_fork(after_in_child=_forget)
atexit.register(lambda: _evaluator.close())
