"""A reward for reinforcement learning: one candidate's source in, one number with its variance and its label out.

Safe to call from many processes at once, however they were started. Every calling
process gets an evaluator, a fresh process that does what ``kernelbench.evaluate`` does:
neither PyTorch's threads nor CUDA survive a fork, so the caller's own are never used.
What is timed holds the device for itself, so that concurrent calls do not spoil each
other's times.
"""

from __future__ import annotations

import atexit
import functools
import os
import socket
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import wire
from harness.result import Result
from harness.server import start_server
from harness.solution import SUFFIXES
from kernelbench import suite
from kernelbench.intervals import log_speedup_variance

CORRECT = 0.3  # for being correct at all, so that a slow kernel is better than none
MAX_SPEEDUP = 10.0


@dataclass(frozen=True)
class Reward:
    """``label`` is the result's status: ``ok``, or how the candidate failed (``build_error``, ``wrong_value``, ...).

    ``variance`` is that of ``value`` from the noise of the timing; 0 for what was not timed,
    or lies above the highest speedup that is rewarded.
    """

    value: float
    variance: float
    label: str
    message: str  # for the author of the candidate
    result: Result


class EvaluationError(Exception):
    """A candidate could not be evaluated, through no fault of its own."""


def reward(
    problem: str, source: str, *, kind: str = "py", max_speedup: float = MAX_SPEEDUP, **conditions: Any
) -> Reward:
    """Evaluate ``source`` and say what it is worth.

    value = 0.3 + min(speedup, max_speedup) for a correct candidate and 0 for every
    failure, rejected ones included: the reward of Kevin (Baronio et al., 2025), with a bound
    so that one outlier cannot rule a batch. variance = speedup^2 Var(log speedup), by
    the delta method, from the samples of candidate and baseline.

    ``kind`` is ``py``, ``cu`` or ``cpp``; ``conditions`` are those of ``kernelbench.evaluate``
    (``device``, ``workload``, ``precision``, ``timeout_s``, ``build_timeout_s``). A failing
    candidate is a label, never an exception. Raises ValueError for a problem or a kind
    that there is not, and EvaluationError where the machine or the reference is at
    fault: no policy should learn from that.
    """
    if f".{kind}" not in SUFFIXES:
        raise ValueError(f"'{kind}' is no kind of solution; use one of py, cu, cpp")
    suite.find(problem)
    with tempfile.TemporaryDirectory(prefix="kb-reward-") as folder:
        path = Path(folder) / f"candidate.{kind}"
        path.write_text(source)
        job = {"problem": problem, "solution": str(path), **conditions}
        return shaped(_evaluator(os.getpid()).evaluate(job), max_speedup)


def shaped(result: Result, max_speedup: float = MAX_SPEEDUP) -> Reward:
    """The reward of a result that there is already."""
    label = result.status.value
    if not result.correct:
        return Reward(0.0, 0.0, label, result.message, result)
    speedup = result.speedup
    variance = 0.0 if speedup >= max_speedup else speedup**2 * (log_speedup_variance(result) or 0.0)
    return Reward(CORRECT + min(speedup, max_speedup), variance, label, result.message, result)


class _Evaluator:
    """A process that evaluates for this one, from outside; started again if it ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None

    def evaluate(self, job: dict[str, Any]) -> Result:
        with self._lock:
            try:
                if self._connection is None:
                    self._connection, theirs = socket.socketpair()
                    self._process = start_server(__name__, theirs)
                wire.send(self._connection, job)
                answer = wire.receive(self._connection)
            except (wire.Closed, OSError):
                self._stop()
                raise EvaluationError("the evaluator's process died; `kb doctor` says whether PyTorch loads") from None
            except BaseException:  # an answer that nobody waits for any more must not be taken for the next one
                self._stop()
                raise
        if "error" in answer:
            raise EvaluationError(answer["error"])
        return Result.from_json(answer["result"])

    def close(self, process: int) -> None:
        if os.getpid() == process and self._connection is not None:  # a fork inherits what is registered
            self._stop()

    def _stop(self) -> None:
        self._connection.close()
        self._connection = None
        self._process.kill()
        self._process.wait()


@functools.cache
def _evaluator(process: int) -> _Evaluator:
    """One for each process: one that was forked must not share its parent's, hence the number."""
    evaluator = _Evaluator()
    atexit.register(evaluator.close, process)
    return evaluator


def serve(fd: int) -> None:
    """The evaluator's side: answer jobs until the other end closes the socket."""
    from kernelbench import api  # imports torch

    connection = socket.socket(fileno=fd)
    while True:
        try:
            job = wire.receive(connection)
        except wire.Closed:
            return
        try:
            answer = {"result": api.evaluate(**job).to_json()}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        wire.send(connection, answer)
