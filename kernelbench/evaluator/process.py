"""The evaluator's side of ``kernelbench.evaluator.client``: answer calls with builds and judges that stay warm.

This process imports no torch. Judges and builds are those of ``kb eval``, opened at the
first call and opened anew only for other conditions or where the machine failed.
"""

from __future__ import annotations

import contextlib
import select
import signal
import socket
import sys
import tempfile
import threading
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from harness.job import decode_problem
from harness.problem.module import ProblemFile
from harness.process import owned_folders, protocol
from harness.process.procfs import remove_tree
from harness.result import CandidateFailure, Status
from harness.solution.discover import Solution, SolutionError, read_solution
from kernelbench.evaluation.executor import EnvironmentUnfit, Evaluated, Options, Skipped
from kernelbench.evaluation.judge_process import open_judges
from kernelbench.evaluation.local_executor import Pipeline

_POLL_S = 0.2


def serve(fd: int) -> None:
    """Serve each socket that comes over this one, until its other end is closed: then its caller has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's to handle
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    control = socket.socket(fileno=fd)
    benches = _Benches()
    owned_folders.sweep()
    with owned_folders.scratch() as folder:
        try:
            while (received := socket.recv_fds(control, 1, 1))[0]:
                call = _Call(socket.socket(fileno=received[1][0]), benches, folder)
                threading.Thread(target=call.serve, daemon=True).start()
        finally:
            benches.kill()


class _Bench:
    """Builds and judges for one set of conditions."""

    def __init__(self, conditions: dict[str, Any]):
        self.conditions, self.users = conditions, 0
        options = Options(**{**conditions, "baselines": tuple(conditions["baselines"])})
        self._judges = open_judges(options)
        self._pipeline = Pipeline(options, builds=False, judges=self._judges)  # builds start with the first one
        self._open = contextlib.ExitStack()
        self._versions: dict[Path, tuple[int, int]] = {}
        self.device_type: str = self._pipeline.device["type"]
        self.line = self._open.enter_context(self._pipeline.line(at_once=1))

    def accepts(self, conditions: dict[str, Any], files: list[ProblemFile]) -> bool:
        """Return whether it may evaluate these problems, and remember them if so.

        A judge loads a problem once, so a file that has changed since needs another judge.
        """
        if conditions != self.conditions or any(judge.lost for judge in self._judges):
            return False
        versions = {file.path: _version(file.path) for file in files}
        if any(self._versions.get(path, version) != version for path, version in versions.items()):
            return False
        self._versions |= versions
        return True

    def kill(self) -> None:
        self._open.close()
        self._pipeline.kill()


def _version(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0  # the judge says that it cannot be read
    return status.st_mtime_ns, status.st_size


class _Benches:
    """Keeps the bench of the latest call warm; one for other conditions replaces it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: _Bench | None = None
        self._open: set[_Bench] = set()
        # a judge ends with the thread that started it, so that is one that stays
        self._opener = ThreadPoolExecutor(1)

    def take(self, conditions: dict[str, Any], files: list[ProblemFile]) -> _Bench:
        """Return a bench to be given back. Raises EnvironmentUnfit where this machine cannot do it."""
        with self._lock:
            if self._kept is None or not self._kept.accepts(conditions, files):
                self._put_away()
                self._kept = self._opener.submit(_Bench, conditions).result()
                self._open.add(self._kept)
                self._kept.accepts(conditions, files)
            self._kept.users += 1
            return self._kept

    def give_back(self, bench: _Bench, fit: bool) -> None:
        """Take it back; one that is not ``fit`` to go on is ended when nobody uses it any more."""
        with self._lock:
            bench.users -= 1
            if bench is self._kept and not fit:
                self._put_away()
            elif bench is not self._kept:
                self._end(bench)

    def _put_away(self) -> None:
        bench, self._kept = self._kept, None
        if bench:
            self._end(bench)

    def _end(self, bench: _Bench) -> None:
        if not bench.users:
            self._open.discard(bench)
            bench.kill()

    def kill(self) -> None:
        for bench in list(self._open):
            bench.kill()


class _Call:
    """One call: jobs under the same conditions, each answered as soon as it is done."""

    def __init__(self, connection: socket.socket, benches: _Benches, folder: Path):
        self._connection, self._benches, self._folder = connection, benches, folder

    def serve(self) -> None:
        with self._connection, contextlib.suppress(protocol.Closed, OSError):  # the caller does not wait any more
            hello = protocol.receive(self._connection)
            jobs = [protocol.receive(self._connection) for _ in range(hello["jobs"])]
            try:
                folder = Path(tempfile.mkdtemp(dir=self._folder))
                bench = self._benches.take(hello["conditions"], [decode_problem(job["problem"]) for job in jobs])
            except (EnvironmentUnfit, OSError, RuntimeError) as error:
                for job in jobs:
                    self._send(job, {"unevaluated": str(error)})
                return
            fit = False
            try:
                fit = self._evaluate(jobs, bench, folder)
            finally:
                remove_tree(folder)
                self._benches.give_back(bench, fit)

    def _evaluate(self, jobs: list[dict[str, Any]], bench: _Bench, folder: Path) -> bool:
        """Answer each job; return whether the bench may go on. Raises wire.Closed where the caller hangs up."""
        pending: dict[Future, dict[str, Any]] = {}
        for job, answer in zip(jobs, self._submitted(jobs, bench, folder)):
            if isinstance(answer, Future):
                pending[answer] = job
            else:
                self._send(job, answer)
        fit = True
        while pending:
            done, _ = wait(pending, timeout=_POLL_S, return_when=FIRST_COMPLETED)
            for ended in done:
                fit = fit and ended.exception() is None
                self._send(pending.pop(ended), _answer(ended))
            if not done and _hung_up(self._connection):
                raise protocol.Closed
        return fit

    def _submitted(self, jobs: list[dict[str, Any]], bench: _Bench, folder: Path) -> list[Future | dict[str, Any]]:
        """Start all that can be evaluated; return a future, or the answer, for each."""
        answers: list[Future | dict[str, Any]] = []
        work, places = [], []
        for place, job in enumerate(jobs):
            file = decode_problem(job["problem"])
            try:
                solution = _read(job, file, folder / str(place))
            except (SolutionError, OSError) as error:
                answers.append({"refused": str(error)} if job["path"] else {"unevaluated": str(error)})
                continue
            if lacking := solution.lacks(bench.device_type):
                answers.append({"unevaluated": f"{solution.name}: {lacking}"})
            elif job["fault"]:
                failure = CandidateFailure(Status.BUILD_ERROR, job["fault"])
                answers.append(bench.line.submit(file, solution, failure=failure))
            else:
                answers.append({})
                work.append((file, solution, lambda text: None))
                places.append(place)
        for place, future in zip(places, bench.line.submit_all(work)):
            answers[place] = future
        return answers

    def _send(self, job: dict[str, Any], answer: dict[str, Any]) -> None:
        protocol.send(self._connection, {"index": job["index"], **answer})


def _read(job: dict[str, Any], file: ProblemFile, folder: Path) -> Solution:
    """Return the solution of a job.

    A source in a folder of its own includes nobody else's, and its comments decide nothing: they are the candidate's.
    """
    if job["path"]:
        return read_solution(Path(job["path"]), problem=file.id)
    folder.mkdir()
    path = folder / f"candidate.{job['kind']}"
    path.write_bytes(job["source"].encode(errors="backslashreplace"))
    return read_solution(path, problem=file.id, settings=False)


def _answer(ended: Future) -> dict[str, Any]:
    if error := ended.exception():
        return {"unevaluated": f"{type(error).__name__}: {error}"}
    item: Evaluated | Skipped = ended.result()
    return {"result": item.result.to_json()} if isinstance(item, Evaluated) else {"unevaluated": item.reason}


def _hung_up(connection: socket.socket) -> bool:
    """Return whether the other end is closed: after its jobs it sends nothing more."""
    return bool(select.select([connection], [], [], 0)[0])
