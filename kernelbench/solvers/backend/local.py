"""The backend of this machine: builds and devices of ``kb eval``.

Attempts whose code is the same, as ``harness.compile.code_digest`` has it, are evaluated once: the second one's record
is the first one's, with its own source, and says so in ``build.same_code_as``. Only results of this life of the run are
passed on: the log of an earlier one may be of others.
"""

from __future__ import annotations

import dataclasses
import hashlib
import threading
from collections import Counter
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from harness.baselines import EAGER
from harness.compile.artefact import Artefact, ToolchainError
from harness.compile.code_digest import code_digest
from harness.compile.python import runs_when_built
from harness.faults import MachineFault, with_disk_room
from harness.problem.module import ProblemId
from harness.result import CandidateFailure, Result, Status
from harness.solution.discover import Solution, SolutionError, read_solution
from harness.solution.languages import missing
from harness.solution.private_copy import Changed, PrivateCopies
from kernelbench.evaluation.executor import Evaluated, Skipped
from kernelbench.evaluation.judge_process import CHECK, measure, profile
from kernelbench.evaluation.local_executor import BuildQueue, Order
from kernelbench.machine import ncu
from kernelbench.run_files.log import write_below
from kernelbench.solvers.backend.interface import Profile, Trial, Work
from kernelbench.solvers.backend.profiles import profile_of
from kernelbench.solvers.log.journal import SOLUTIONS
from kernelbench.solvers.problem_facts import SuiteProblem
from kernelbench.solvers.task import Unevaluated

TRIALS = "trials"  # folder of a run with sources that were built or checked without an attempt


@dataclasses.dataclass(frozen=True)
class _Same:
    """The answer for code that another attempt has: a future of the result of that one."""

    first: Future


_Key = tuple[str, int, str]  # problem, sample and source of an attempt


def _key(work: Work) -> _Key:
    return work.problem, work.sample, work.source


class LocalBackend:
    """Measures on the devices of ``line``."""

    def __init__(
        self,
        line: BuildQueue,
        problems: dict[str, SuiteProblem],
        device: dict[str, Any],
        folder: Path,
        copies: PrivateCopies,
    ):
        self.device, self.problems = device, problems
        self._line, self._folder, self._copies = line, folder, copies
        self._read_once: dict[_Key, tuple[Solution, CandidateFailure | None]] = {}
        self._used: Counter[_Key] = Counter()  # by how many orders that have not ended
        self._lock = threading.Lock()
        self._by_code: dict[tuple[str, str | None, str], Future] = {}  # problem, workload, digest -> result

    def solution(self, work: Work) -> Solution:
        """Return the private copy of an attempt, while an order of it has not ended."""
        with self._lock:
            return self._copies.of(self._first_read(work)[0])

    def described(self, work: Work) -> Solution:
        """Return an attempt as it was first read: names and digests are those of its copies."""
        with self._lock:
            return self._first_read(work)[0]

    def evaluate(self, work: Work) -> Future:
        """See ``Backend``. Workloads are evaluated one after the other, up to the first that fails."""
        attempt = _Attempt(self, work)
        attempt.next_workload()
        return attempt.ended

    def build(self, work: Work) -> Trial:
        solution, failure = self._copied(work := self._written(work))
        try:
            if failure := failure or self._unfit(solution):
                raise failure
            self._line.build(self.problems[work.problem].file, solution, work.phase).result()
        except CandidateFailure as failed:
            return Trial(failed.status.value, failed.message)
        except (ToolchainError, MachineFault) as fault:
            if isinstance(fault, MachineFault) and runs_when_built(solution):
                return self.check(work)  # which says whether the candidate is to blame
            raise Unevaluated(f"the build could not be tried: {fault}") from fault
        finally:
            self._release(work)
        return Trial(Status.OK.value)

    def check(self, work: Work) -> Trial:
        work = self._written(work)
        for workload in self.problems[work.problem].workload_names:
            item = self.order(work, workload, job=dict(CHECK)).result()
            if isinstance(item, Skipped):
                raise Unevaluated(f"the check could not be made: {item.reason}")
            if not item.result.correct:
                return Trial(item.result.status.value, item.result.message)
        return Trial(Status.OK.value)

    def profile(self, work: Work, result: Result) -> Profile:
        """See ``Backend``. Of an attempt that is not correct there is none."""
        if not result.correct:
            return Profile("none", note=f"not profiled: the attempt is {result.status}")
        job = profile(self._ncu())
        record = self.order(work, self.problems[work.problem].workload_names[0], job=job).result()
        if isinstance(record, Skipped):
            return Profile("none", note=f"not profiled: {record.reason}")
        return profile_of(record, result)

    def baseline(self, problem: str) -> dict[str, Any]:
        facts, total_ms = self.problems[problem], 0.0
        for workload in facts.workload_names:
            order = Order(facts.file, None, workload=workload, job=measure(EAGER))
            (future,) = self._line.order([order])
            record = future.result()
            if isinstance(record, Skipped) or record["error"]:
                reason = record.reason if isinstance(record, Skipped) else record["error"]
                return {"name": EAGER, "median_ms": None, "error": reason}
            total_ms += record["timing"]["median_ms"]
        return {"name": EAGER, "median_ms": total_ms, "error": None}

    def order(self, work: Work, workload: str, **more: Any) -> Future:
        """Order a candidate's evaluation, or another job, on one workload."""
        solution, failure = self._copied(work)
        failure = work.failure or failure or self._unfit(solution)
        order = Order(self.problems[work.problem].file, solution, work.phase, failure, workload, **more)
        (ended,) = self._line.order([order])
        ended.add_done_callback(lambda _: self._release(work))
        return ended

    def first_with(self, code: str, problem: str, workload: str, mine: Future) -> Future:
        """Return the future result of the first attempt with this compiled code, which is ``mine`` if it is new."""
        with self._lock:
            return self._by_code.setdefault((problem, workload, code), mine)

    def forget(self, code: str, problem: str, workload: str) -> None:
        """Let the next attempt with this code be evaluated: the first one was not."""
        with self._lock:
            self._by_code.pop((problem, workload, code), None)

    def _copied(self, work: Work) -> tuple[Solution, CandidateFailure | None]:
        """Return a private copy of an attempt, which ``_release`` gives back, and why it fails already.

        Whoever may write in the run, as the solver's program may, could have another file built than the record names.
        Raises Unevaluated where there is no room for the copy, or the file is another meanwhile.
        """
        with self._lock:
            solution, refused = self._first_read(work)
            try:
                copy = self._copies.of(solution)
            except (Changed, OSError) as error:
                raise Unevaluated(f"attempt {work.sample} could not be copied: {error}") from None
            self._used[_key(work)] += 1
            return copy, refused

    def _release(self, work: Work) -> None:
        """Remove a copy that nobody uses any more: later attempts need the room."""
        with self._lock:
            self._used[_key(work)] -= 1
            if not self._used[_key(work)]:
                del self._used[_key(work)]
                self._copies.release(self._read_once[_key(work)][0])

    def _first_read(self, work: Work) -> tuple[Solution, CandidateFailure | None]:
        """An attempt as it was when it was first read, and why it fails already."""
        if _key(work) not in self._read_once:
            self._read_once[_key(work)] = self._read(work)
        return self._read_once[_key(work)]

    def _read(self, work: Work) -> tuple[Solution, CandidateFailure | None]:
        """Read an attempt, whose comment may ask for what there is not.

        Which attempt it is the journal says, whatever its comment does: its result must not be told of another.
        """
        folder, problem = self._folder / (SOLUTIONS if work.sample else TRIALS), ProblemId.parse(work.problem)
        refused = None
        try:
            solution = read_solution(work.path, folder, problem)
        except SolutionError as error:
            refused = CandidateFailure(Status.BUILD_ERROR, str(error))
            solution = read_solution(work.path, folder, problem, settings=False)
        return dataclasses.replace(solution, sample=work.sample or solution.sample), refused

    def _unfit(self, solution: Solution) -> CandidateFailure | None:
        """Return why a solution cannot run on this device."""
        device = self.device["type"]
        if solution.runs_on(device):
            lacking = missing(solution.language)
            return CandidateFailure(Status.BUILD_ERROR, lacking) if lacking else None
        reason = "this run is on a CPU" if device == "cpu" else "this run is on a GPU, whose memory it cannot read"
        kinds = "py or cu" if device == "cuda" else "py or cpp"
        message = f"a {solution.language} solution cannot run here: {reason}; write {kinds}"
        return CandidateFailure(Status.BUILD_ERROR, message)

    def _ncu(self) -> list[str] | None:
        """Return ncu's command line; None without a GPU or without ncu."""
        try:
            return ncu.command() if self.device["type"] == "cuda" else None
        except ncu.NsightError:
            return None

    def _written(self, work: Work) -> Work:
        """Return a trial with its file."""
        digest = hashlib.sha256(work.source.encode(errors="backslashreplace")).hexdigest()[:16]
        level, number = work.problem.split("/")
        name = f"{TRIALS}/level{level}/{number}_{digest}.{work.kind}"
        with_disk_room(lambda: write_below(self._folder, name, work.source.encode(errors="backslashreplace")))
        return dataclasses.replace(work, path=self._folder / name)


class _Attempt:
    """One attempt's way over its workloads. ``ended`` is a future of the results."""

    def __init__(self, backend: LocalBackend, work: Work):
        self.ended: Future = Future()
        self._backend, self._work = backend, work
        self._names = backend.problems[work.problem].workload_names
        self._parts: list[Result] = []
        self._code = ""

    def next_workload(self) -> None:
        self._mine: Future = Future()  # of the result on this workload, for later attempts with the same code
        try:
            ordered = self._backend.order(self._work, self._workload, known=self._known)
        except Unevaluated as error:
            return self._fail(error)
        ordered.add_done_callback(self._finish)

    @property
    def _workload(self) -> str:
        return self._names[len(self._parts)]

    def _known(self, artefact: Artefact) -> _Same | None:
        """Return the result of the same code, if there was or is an attempt with it."""
        self._code = self._code or code_digest(self._backend.solution(self._work), artefact) or ""
        if not self._code:
            return None
        first = self._backend.first_with(self._code, self._work.problem, self._workload, self._mine)
        return None if first is self._mine else _Same(first)

    def _finish(self, done: Future) -> None:
        try:
            item = done.result()
            if isinstance(item, _Same):
                item.first.add_done_callback(self._copy)
            else:
                self._take(self._result_of(item))
        except BaseException as error:
            self._fail(error)

    def _result_of(self, item: Evaluated | Skipped) -> Result:
        if isinstance(item, Skipped):
            raise Unevaluated(f"attempt {self._work.sample} could not be evaluated: {item.reason}")
        return item.result

    def _copy(self, first: Future) -> None:
        """Take the result of another attempt as this one's."""
        if error := first.exception():
            self._fail(Unevaluated(str(error)))
            return
        other: Result = first.result()
        if not other.correct:  # for a reason that need not be this one's
            self._backend.order(self._work, self._workload).add_done_callback(self._finish)
            return
        record = Result.from_json(other.to_json())
        blank = self._backend.described(self._work)
        record.solution = {**record.solution, "name": blank.name, "sample": blank.sample, "sha256": blank.sha256}
        record.build = {**(record.build or {}), "same_code_as": other.solution["sample"]}
        record.confirms = None
        self._take(record)

    def _take(self, result: Result) -> None:
        if self._code and result.build is not None:
            result.build["code"] = self._code
        mine = self._mine
        self._parts.append(result)
        if result.correct and len(self._parts) < len(self._names):
            self.next_workload()
        else:
            self.ended.set_result(self._parts)
        mine.set_result(result)  # last, so that this attempt is in the log before those that copy it

    def _fail(self, error: BaseException) -> None:
        if self._code:
            self._backend.forget(self._code, self._work.problem, self._workload)
        self._mine.set_exception(error)
        self.ended.set_exception(error)
