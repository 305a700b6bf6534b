"""Builds on all cores, one judge a device: from solutions to a stream of results.

The process that runs this imports no torch. It owns the results log and starts
the judge (a process of its own, which owns the device) and the builds.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

from harness import wire
from harness.build import Artefact, BuildContext, CacheError, build
from harness.build.artefact import ToolchainError
from harness.codec import encode_artefact, encode_problem, encode_solution
from harness.problem import ProblemFile
from harness.process import ForkServer, default_memory_bytes, start_server
from harness.result import CandidateFailure, Result
from harness.solution import Solution


class EnvironmentUnfit(Exception):
    """This machine cannot run what was asked for; the message says what to do."""


@dataclass(frozen=True)
class Options:
    """How to evaluate; ``workload`` None is each problem's default for the device."""

    device: str | None = None
    workload: str | None = None
    precision: str = "fp32"
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    timeout_s: float = 120.0  # of one step of a candidate
    build_timeout_s: float = 900.0
    memory_bytes: int = field(default_factory=default_memory_bytes)


@dataclass(frozen=True)
class Evaluated:
    solution: Solution
    result: Result


@dataclass(frozen=True)
class Skipped:
    """Not evaluated, through no fault of the candidate's."""

    solution: Solution
    reason: str


class Judge:
    """The judge's process, from outside; started once, started again if it dies."""

    def __init__(self, options: Options):
        self._options = options
        self._start()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        self._process = start_server("harness.judge.server", theirs)
        self._connection = ours
        options = self._options
        hello = {
            "device": options.device,
            "precision": options.precision,
            "timeout_s": options.timeout_s,
            "memory_bytes": options.memory_bytes,
            "build_timeout_s": options.build_timeout_s,
        }
        try:
            wire.send(ours, hello)
            answer = wire.receive(ours)
        except (wire.Closed, OSError):
            raise EnvironmentUnfit("the judge's process does not start; `kb doctor` says what is missing") from None
        if "unavailable" in answer:
            raise EnvironmentUnfit(answer["unavailable"])
        self.device: dict[str, Any] = answer["device"]
        self.arch: str | None = answer["arch"]
        self.torch_version: str = answer["torch"]

    def ask(self, job: dict[str, Any], phase: Callable[[str], None]) -> dict[str, Any]:
        """The judge's answer to a job; a judge that dies of it is replaced, and the job stays unevaluated."""
        try:
            wire.send(self._connection, job)
            while "phase" in (answer := wire.receive(self._connection)):
                phase(answer["phase"])
            return answer
        except (wire.Closed, OSError):
            code = self._process.wait()
            self._start()
            return {"unevaluated": f"the judge's process died (exit status {code}) in this evaluation"}

    def close(self) -> None:
        self._connection.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()


def evaluate_all(
    pairs: list[tuple[ProblemFile, Solution]],
    options: Options,
    judge: Judge,
    status: Callable[[str, str], None] = lambda what, text: None,
) -> Iterator[Evaluated | Skipped]:
    """Evaluate every pair; yields as they end. ``status("building"|"judge", text)`` tells what goes on now.

    On a GPU builds and evaluations overlap; on a CPU everything is built first,
    because a compiler on the same cores would spoil the timings.
    """
    ready, pairs = _fitting(pairs, judge.device["type"])
    yield from ready
    if not pairs:
        return
    problems = {solution: file for file, solution in pairs}
    jobs = max(1, options.jobs)
    with ForkServer() as server, ThreadPoolExecutor(jobs) as pool:
        context = BuildContext(
            server, judge.arch, judge.torch_version, options.build_timeout_s, options.memory_bytes,
            jobs=max(1, (os.cpu_count() or 1) // min(jobs, len(problems))),
        )  # fmt: skip
        building: dict[Future, Solution] = {}
        names: set[str] = set()

        def work(solution: Solution) -> Artefact:
            names.add(solution.name)
            status("building", ", ".join(sorted(names)))
            try:
                return build(solution, context)
            finally:
                names.discard(solution.name)
                status("building", ", ".join(sorted(names)))

        try:
            for solution in problems:
                building[pool.submit(work, solution)] = solution
            built: Any = as_completed(building)
            if judge.device["type"] == "cpu":
                built = sorted(built, key=lambda future: list(problems).index(building[future]))
            for future in built:
                solution = building[future]
                yield _judged(future, problems[solution], solution, options, judge, status)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            server.close()  # ends the builds that run, which the pool would wait for
            raise


def _fitting(pairs, device_type: str) -> tuple[list[Skipped], list]:
    """Put aside what is for another kind of device."""
    skipped, fitting = [], []
    for file, solution in pairs:
        if solution.device in ("any", device_type):
            fitting.append((file, solution))
        else:
            needs = "a GPU" if solution.device == "cuda" else "host memory: use --device cpu"
            skipped.append(Skipped(solution, f"{solution.language} solution, needs {needs}"))
    return skipped, fitting


def _judged(future, file, solution, options, judge, status) -> Evaluated | Skipped:
    job = {"problem": encode_problem(file), "workload": options.workload, "solution": encode_solution(solution)}
    try:
        job["artefact"] = encode_artefact(future.result())
    except (ToolchainError, CacheError) as error:
        return Skipped(solution, str(error))
    except CandidateFailure as failure:
        job["failure"] = {"status": failure.status.value, "message": failure.message, "log": failure.log}
    status("judging", solution.name)
    answer = judge.ask(job, lambda text: status("judging", f"{solution.name}: {text}"))
    status("judging", "")
    if "result" in answer:
        return Evaluated(solution, Result.from_json(answer["result"]))
    return Skipped(solution, answer["unevaluated"])
