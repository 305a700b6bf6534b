"""One run of a solver over several problems: a thread each, in the order that the schedule grants.

There is no saved state: a run that is resumed starts its solvers again, and the journal answers until they arrive
where they were. What the run is made of comes from outside (see ``backend.interface``), so that a simulation runs here
as well as a device does.
"""

from __future__ import annotations

import contextlib
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from harness.result import CandidateFailure, Result, Status
from harness.solution.discover import SUFFIXES, beginning
from kernelbench.endpoint import ModelError
from kernelbench.metrics.workloads import together
from kernelbench.run import RunError, WriteError
from kernelbench.solvers.backend.interface import Backend, ProblemFacts, Work
from kernelbench.solvers.candidate import Candidate, Talk
from kernelbench.solvers.log.journal import Attempt, Call, Diverged, Journal
from kernelbench.solvers.model.answers import NoCode
from kernelbench.solvers.model.llm import Answer, Hooks, Llm, in_background
from kernelbench.solvers.plan import Plan, SolverError, Watcher
from kernelbench.solvers.prompting.prompts import PromptError
from kernelbench.solvers.schedule.dispatcher import Dispatcher, Stopped
from kernelbench.solvers.schedule.order import Standing, schedule_of
from kernelbench.solvers.task import BudgetSpent, Services, Settings, Task, Unevaluated


@dataclass(frozen=True)
class Store:
    """Store of a run.

    ``results`` are those of attempts that are in the log already, one for each workload; ``keep`` takes those of a new
    attempt, before anybody else sees them. ``folder`` is for files of the solvers, None without a disk.
    """

    journal: Journal = field(default_factory=Journal)
    results: Sequence[Result] = ()
    keep: Callable[[Work, list[Result]], None] = lambda work, results: None
    folder: Path | None = None


@dataclass(frozen=True)
class Ended:
    """``failures`` are problems whose solver did not come to its end, ``stopped`` those that got no more work."""

    failures: dict[str, str]
    stopped: dict[str, str]
    tasks: dict[str, Task]


def run(
    plan: Plan, problems: Sequence[ProblemFacts], backend: Backend, store: Store, watcher: Watcher | None = None
) -> Ended:
    """Run the solver on every problem and return when all have ended.

    A solver that fails ends its own problem; what is no affair of one problem is raised.
    """
    return _Session(plan, problems, backend, store, watcher or Watcher()).run()


class _Session:
    def __init__(self, plan: Plan, problems: Sequence[ProblemFacts], backend: Backend, store: Store, watcher: Watcher):
        self._plan, self._backend, self._store, self._watcher = plan, backend, store, watcher
        self._journal = store.journal
        self._problems = {facts.id: facts for facts in problems}
        self._known: dict[tuple[str, int], list[Result]] = {}
        for result in store.results:
            self._known.setdefault((result.problem, result.solution["sample"]), []).append(result)
        self._standings = {facts.id: self._standing(facts) for facts in problems}
        self._dispatcher = Dispatcher(
            list(self._standings.values()), schedule_of(plan.schedule), plan.limits, self._journal, plan.at_once,
            lambda problem: in_background(self._solve, problem),
        )  # fmt: skip
        self._tasks: dict[str, Task] = {}
        self._failures: dict[str, str] = {}
        self._lock = threading.Lock()
        self._charged: dict[str, set[int]] = {}  # model calls that are in the line of an attempt already

    def run(self) -> Ended:
        stopped = self._dispatcher.run()
        return Ended(self._failures, stopped, self._tasks)

    def _standing(self, facts: ProblemFacts) -> Standing:
        """Return what the log says of a problem."""
        standing = Standing(facts.id, self._plan.budget)
        for (problem, _), parts in sorted(self._known.items()):
            if problem == facts.id and self._is_whole(problem, parts):
                standing.results.append(_combined(parts))
        for spent in self._journal.spent(facts.id):
            _charge(standing, spent)
        return standing

    def _is_whole(self, problem: str, parts: list[Result]) -> bool:
        """Return whether an attempt was evaluated on all workloads, or failed on one."""
        workloads = {part.workload.get("name") for part in parts}
        return not all(part.correct for part in parts) or len(workloads) >= len(self._problems[problem].workload_names)

    def _whole(self, problem: str, sample: int) -> list[Result]:
        """Return the results of an attempt that the log has whole; none of another."""
        parts = self._known.get((problem, sample), []) if (problem, sample) in self._journal.attempts else []
        return parts if parts and self._is_whole(problem, parts) else []

    def _solve(self, problem: str) -> None:
        """The life of one problem."""
        try:
            failure = None
            try:
                task = self._tasks[problem] = self._task(self._problems[problem])
                self._check_text(self._problems[problem])
                self._plan.solver.run(task, self._store.folder)
            except (BudgetSpent, Stopped):
                pass
            except WriteError:
                raise
            except (SolverError, ModelError, Diverged, Unevaluated, PromptError, RunError) as error:
                failure = str(error)
            except Exception as error:
                failure = f"the solver failed: {type(error).__name__}: {error}\n{_frames(error)}"
            if failure:
                self._failures[problem] = failure
            self._watcher.ended(problem, failure)
            self._dispatcher.ended(problem)
        except BaseException as error:
            self._dispatcher.ended(problem, error)

    def _check_text(self, facts: ProblemFacts) -> None:
        """Raise SolverError where the problem's text is not the one that the log began with, and would answer for."""
        now = getattr(facts, "sha256", "")  # a simulated one has no text
        if now and self._journal.fact(facts.id, "problem_sha256", lambda: now) != now:
            raise SolverError(f"{facts.id} changed since the run began with it: choose another --out")

    def _task(self, facts: ProblemFacts) -> Task:
        plan, store = self._plan, self._store
        kernel = plan.starting_kernels.get(facts.id)
        settings = Settings(plan.budget, plan.seed, plan.settings, plan.prompts, kernel)
        services = Services(
            self._backend, self._journal, self._submit, self._dispatcher.enter,
            lambda text: self._watcher.said(facts.id, text),
            store.folder,
            lambda: self._dispatcher.seconds, self._dispatcher.forget_grants,
        )  # fmt: skip
        task = Task(facts, settings, services)
        task.llm = Llm(
            task.id, plan.endpoint, self._journal,
            Hooks(
                lambda: self._asking(task), lambda after_last: self._enter(task, after_last), lambda: task.tags,
                lambda call: self._charged_for(task.id, call),
                lambda: self._dispatcher.ask_anew(task.id, in_turn=True),
            ),
            protocol=task.option("tools", "openai"), extract=getattr(facts, "extract", None),
        )  # fmt: skip
        return task

    def _charged_for(self, problem: str, spent: Call | Attempt) -> None:
        with self._lock:  # samples of one problem are asked for at once
            _charge(self._standings[problem], spent)

    @staticmethod
    def _enter(task: Task, after_last: bool) -> None:
        """Before a model call: without attempts left there is nothing to ask for, but what the last one taught."""
        if not after_last:
            if task.budget <= 0:
                raise BudgetSpent
            task.enter()

    @contextlib.contextmanager
    def _asking(self, task: Task) -> Iterator[None]:
        """Around a model call, so that it is shown."""
        key = (task.id, threading.get_ident())
        self._watcher.moved(key, "asking")
        try:
            yield
        finally:
            self._watcher.moved(key, "")

    def _submit(self, task: Task, candidate: Candidate) -> Future:
        """A future of the Result of the task's next attempt, which is on the disk before anything is made of it."""
        source, kind, failure = _source_of(candidate)
        parent = candidate.parent.solution["sample"] if isinstance(candidate.parent, Result) else candidate.parent
        if not self._whole(task.id, task.total_budget - task.budget + 1):
            self._dispatcher.ask_anew(task.id, in_turn=True)  # without the lock: those whose turn it is need it
        with self._lock:
            if task.budget <= 0:
                raise BudgetSpent
            sample = task.total_budget - task.budget + 1
            parts = self._whole(task.id, sample)
            if not parts:  # it is evaluated now, whatever the log says of it
                self._dispatcher.ask_anew(task.id)
            task.budget -= 1
            talk = candidate.talk or self._talk(task, candidate.source)
        turn = candidate.turn or task.turns.get(parent, 0) + 1
        task.sources[sample], task.turns[sample] = source, turn
        attempt = Attempt(
            task.id, sample, parent, turn, talk.prompt, talk.answer, talk.tokens, talk.cost_usd, round(talk.seconds, 3),
            {**task.tags, **candidate.tags},
        )  # fmt: skip
        path, known = self._journal.add_attempt(attempt, kind, source)
        if candidate.talk and not known:
            self._charged_for(task.id, attempt)
        work = Work(task.id, sample, kind, source, path, failure, self._phase(task, sample))
        task.works[sample] = work
        ended: Future = Future()
        if known and parts:
            _check_measured(path, parts)
            self._deliver(task, _combined(parts), ended)
        else:
            self._evaluate(task, work, ended)
        return ended

    def _evaluate(self, task: Task, work: Work, ended: Future) -> None:
        def finish(done: Future) -> None:
            try:
                parts = done.result()
                result = _combined(parts)
                with self._lock:
                    self._store.keep(work, parts)
                    standing = self._standings[task.id]
                    standing.results = sorted([*standing.results, result], key=lambda r: r.solution["sample"])
                self._watcher.evaluated(result)
                self._deliver(task, result, ended)
            except BaseException as error:
                ended.set_exception(error)

        self._backend.evaluate(work).add_done_callback(finish)

    def _phase(self, task: Task, sample: int) -> Callable[[str], None]:
        key = (task.id, -sample)
        return lambda phase: self._watcher.moved(key, phase.partition(":")[0])

    @staticmethod
    def _deliver(task: Task, result: Result, ended: Future) -> None:
        task.results.append(result)
        task.results.sort(key=lambda r: r.solution["sample"])
        ended.set_result(result)

    def _talk(self, task: Task, source: str | Answer) -> Talk:
        """The calls since the attempt before; those up to the one that wrote this candidate, where that is known."""
        charged = self._charged.setdefault(task.id, set())
        last = source.call.number if isinstance(source, Answer) else float("inf")
        new = (call for call in task.llm.calls if call.number not in charged and call.number <= last)
        calls = sorted(new, key=lambda call: call.number)
        charged.update(call.number for call in calls)
        writer = source.call if isinstance(source, Answer) else calls[-1] if calls else None
        return Talk(
            writer.messages if writer else [],
            writer.answer if writer else None,
            {name: _sum(call.tokens[name] for call in calls) for name in ("prompt", "completion")},
            _sum(call.cost_usd for call in calls),
            sum(call.seconds for call in calls),
        )


def _combined(parts: list[Result]) -> Result:
    """Return the result of an attempt over all its workloads; of one that was repeated, the last."""
    last = {part.workload.get("name"): part for part in parts}
    return together(last.values())[0]


def _charge(standing: Standing, spent: Call | Attempt) -> None:
    standing.tokens += sum(count or 0 for count in spent.tokens.values())
    standing.usd += spent.cost_usd or 0.0
    standing.uncounted |= isinstance(spent, Call) and None in spent.tokens.values()


def _source_of(candidate: Candidate) -> tuple[str, str, CandidateFailure | None]:
    """Source and kind; an answer without code is kept as it is, and its failure is known."""
    answer = candidate.source
    if isinstance(answer, Answer):
        try:
            return answer.code, answer.kind, None
        except NoCode as error:
            return answer.text, answer.kind, CandidateFailure(Status.BUILD_ERROR, str(error))
    if not isinstance(answer, str):
        raise SolverError(f"a candidate is a string or an answer of task.llm, not {type(answer).__name__}")
    if f".{candidate.kind}" not in SUFFIXES:
        raise SolverError(f"'{candidate.kind}' is no kind of solution; use one of py, cu, cpp")
    return answer, candidate.kind, None


def _check_measured(path: Path | None, parts: list[Result]) -> None:
    """Raise Diverged where the file of an attempt is not what was measured: a program's are taken as they are."""
    if path and any(part.solution["sha256"] != beginning(path)[0] for part in parts):
        raise Diverged(f"{path} is not what was measured: put it back, or choose another --out")


def _sum(values) -> float | None:
    """None where one of them is not known."""
    values = list(values)
    return None if None in values else sum(values)


def _frames(error: Exception) -> str:
    """Return where in the solver it happened: the frames outside of this package."""
    package = str(Path(__file__).parent)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(package)]
    return "".join(traceback.format_list(frames[-3:])).rstrip()
