"""One call of an evaluator: jobs under the same conditions, each answered as soon as it is done."""

from __future__ import annotations

import contextlib
import socket
import tempfile
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.job import decode_problem
from harness.problem.module import ProblemFile
from harness.process import protocol
from harness.process.owned_folders import remove_tree
from harness.result import CandidateFailure, Status
from harness.solution.discover import Solution, SolutionError, read_solution
from harness.solution.private_copy import Changed, PrivateCopies
from harness.solution.unchanged import CHANGED, Stamp, stamp
from kernelbench.evaluation.executor import EnvironmentUnfit, Evaluated, Skipped
from kernelbench.evaluation.local_executor import Order
from kernelbench.evaluator.bench import Bench, Benches

_POLL_S = 0.2

Send = Callable[[dict[str, Any]], None]


class Call:
    """One call on an open connection; ``folder`` is for sources that come as text."""

    def __init__(self, connection: socket.socket, benches: Benches, folder: Path):
        self._connection, self._benches, self._folder = connection, benches, folder
        self._stamps: dict[int, tuple[Solution, Stamp]] = {}  # of files that jobs name, as they were read

    def serve(self) -> None:
        """Answer the jobs of one call, or say what there is to evaluate with where it has none."""
        with self._connection, contextlib.suppress(protocol.Closed, OSError):  # the caller does not wait any more
            hello = protocol.receive(self._connection)
            jobs = [protocol.receive(self._connection) for _ in range(hello["jobs"])]
            self.answer(jobs, hello["conditions"], lambda answer: protocol.send(self._connection, answer))

    def answer(self, jobs: list[dict[str, Any]], conditions: dict[str, Any], send: Send) -> None:
        """Give ``send`` the answer to each job as it ends; raises Closed where the caller hangs up meanwhile."""
        try:
            folder = Path(tempfile.mkdtemp(dir=self._folder))
            bench = self._benches.take(conditions, [decode_problem(job["problem"]) for job in jobs])
        except (EnvironmentUnfit, OSError, RuntimeError) as error:
            for job in jobs or [{"index": None}]:
                send({"index": job["index"], "unevaluated": str(error), "unavailable": True})
            return
        fit, abandoned = True, True
        try:
            if not jobs:
                send({"index": None, "bench": bench.describe()})
            fit = self._evaluate(jobs, self._submitted(jobs, bench, conditions["workload"], folder), send)
            abandoned = False
        finally:
            remove_tree(folder)
            self._benches.give_back(bench, fit, abandoned)

    def _evaluate(self, jobs: list[dict[str, Any]], answers: list[Future | dict[str, Any]], send: Send) -> bool:
        """Send each answer; return whether the bench may go on."""
        pending: dict[Future, dict[str, Any]] = {}
        for job, answer in zip(jobs, answers):
            if isinstance(answer, Future):
                pending[answer] = job
            else:
                send({"index": job["index"], **answer})
        fit = True
        while pending:
            done, _ = wait(pending, timeout=_POLL_S, return_when=FIRST_COMPLETED)
            for ended in done:
                fit = fit and ended.exception() is None
                index = pending.pop(ended)["index"]
                send({"index": index, **self._answer(index, ended)})
            if not done and _hung_up(self._connection):
                raise protocol.Closed
        return fit

    def _submitted(
        self, jobs: list[dict[str, Any]], bench: Bench, workload: str | None, folder: Path
    ) -> list[Future | dict[str, Any]]:
        """Start all that can be evaluated; return a future, or the answer, for each."""
        answers: list[Future | dict[str, Any]] = []
        orders, places = [], []
        for place, job in enumerate(jobs):
            file = decode_problem(job["problem"])
            try:
                solution = self._read(job, file, folder / str(place))
            except (SolutionError, OSError) as error:
                # a moment's fault may be gone at the next call, and the caller can mend nothing
                lasting = isinstance(error, (SolutionError, PermissionError)) and not isinstance(error, Changed)
                answers.append({"refused" if job["path"] and lasting else "unevaluated": str(error)})
                continue
            if fault := job["fault"] or _choice(job, solution, bench):
                failure = CandidateFailure(Status.BUILD_ERROR, fault)
                answers += bench.line.order([Order(file, solution, failure=failure, workload=workload)])
            elif lacking := solution.lacks(bench.device_type):
                answers.append({"unevaluated": f"{solution.name}: {lacking}"})
            else:
                answers.append({})
                orders.append(Order(file, solution, workload=workload))
                places.append(place)
        for place, future in zip(places, bench.line.order(orders)):
            answers[place] = future
        return answers


    def _read(self, job: dict[str, Any], file: ProblemFile, folder: Path) -> Solution:
        """Return the solution of a job, in ``folder``.

        A source in a folder of its own includes nobody else's, and its comments decide nothing: they are the
        candidate's.
        """
        if job["path"]:
            solution = read_solution(Path(job["path"]), problem=file.id)
            solution = replace(solution, neighbours=frozenset(map(Path, job["others"])))
            self._stamps[job["index"]] = solution, stamp(solution)
            return PrivateCopies(folder).of(solution)
        folder.mkdir()
        path = folder / f"candidate.{job['kind']}"
        path.write_bytes(job["source"].encode(errors="backslashreplace"))
        return read_solution(path, problem=file.id, settings=False)

    def _answer(self, index: int, ended: Future) -> dict[str, Any]:
        """Return what became of a job; a result of a file that was written meanwhile is none."""
        if error := ended.exception():
            return {"unevaluated": f"{type(error).__name__}: {error}"}
        item: Evaluated | Skipped = ended.result()
        if isinstance(item, Skipped):
            return {"unevaluated": item.reason}
        if index in self._stamps and stamp(self._stamps[index][0]) != self._stamps[index][1]:
            return {"unevaluated": CHANGED}
        return {"result": item.result.to_json()}


def _choice(job: dict[str, Any], solution: Solution, bench: Bench) -> str:
    """Return what the author of a source chose that this machine does not have, a device or a language; '' for nothing.

    As one that is not evaluated it would count nowhere, so that its author could withdraw it. The kind of a source is
    the caller's choice, and so are files.
    """
    if job["path"]:
        return ""
    lacking = solution.lacks(bench.device_type) if job["kind"] == "py" else ""
    return lacking or bench.missing(solution.language)


def _hung_up(connection: socket.socket) -> bool:
    """Return whether the other end is closed: after its jobs it sends nothing more."""
    return protocol.has_more(connection, 0.0)
