"""Many problems at once: while a model writes for some, others are built, and the device times one after the other.

Each problem is a thread that runs its solver, and waits in one state after the other: for the
model, for a build, for the device. Builds and devices are those of the pipeline. There is no
saved state: a run that is resumed starts its solvers again, and the journal answers
until they arrive where they were.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path

from harness.problem.module import ProblemFile, ProblemId
from harness.result import CandidateFailure, Result, Status
from harness.solution.discover import SUFFIXES, Solution, SolutionError, read_solution
from kernelbench import run_sources, suite
from kernelbench.endpoint import ModelError
from kernelbench.evaluation.confirmation import confirm_best, fresh
from kernelbench.evaluation.executor import Evaluated, Options, Pair, Skipped, closed_or_killed
from kernelbench.evaluation.local_executor import BuildQueue, Phase, Pipeline
from kernelbench.run import Run, RunError, WriteError
from kernelbench.solvers.answers import NoCode
from kernelbench.solvers.journal import SOLUTIONS, Attempt, Diverged, Journal
from kernelbench.solvers.llm import Answer, Llm, in_background
from kernelbench.solvers.plan import Outcome, Plan, SolverError, Watcher
from kernelbench.solvers.prompts import PromptError
from kernelbench.solvers.task import BudgetSpent, Candidate, Talk, Task, Unevaluated
from kernelbench.views import leaderboard


def solve(
    plan: Plan,
    selector: str,
    options: Options,
    out: Path,
    *,
    resume: bool = False,
    problem_dir: Path | None = None,
    watcher: Watcher | None = None,
) -> Outcome:
    """Run the solver on every selected problem, ``plan.at_once`` of them at a time, and write the leaderboard.

    A solver that fails ends its own problem; the others go on. Raises SelectorError, ProblemError
    or RunError for wrong input, EnvironmentUnfit where this machine cannot do it and WriteError
    where the run cannot be written. Killed at any point, nothing that was answered or evaluated is lost.
    """
    suite.find(selector, problem_dir)  # wrong input is known at once, a judge takes seconds to start
    pipeline = Pipeline(options)
    watcher = watcher or Watcher()
    with closed_or_killed(pipeline):
        outcome = _attempt(pipeline, plan, selector, out, resume, problem_dir, watcher)
    return _finish(outcome, partial(fresh, options), selector, problem_dir, watcher)


def solve_on(
    pipeline: Pipeline,
    plan: Plan,
    selector: str,
    out: Path,
    *,
    resume: bool = False,
    problem_dir: Path | None = None,
    watcher: Watcher | None = None,
) -> Outcome:
    """``solve`` with builds and devices that are open already, and stay so."""
    watcher = watcher or Watcher()
    outcome = _attempt(pipeline, plan, selector, out, resume, problem_dir, watcher)
    return _finish(outcome, lambda builds: contextlib.nullcontext(pipeline), selector, problem_dir, watcher)


def _attempt(pipeline: Pipeline, plan: Plan, selector: str, out: Path, resume: bool, problem_dir, watcher) -> Outcome:
    """Run the solver on every problem; the run stays open."""
    files = suite.find(selector, problem_dir)
    run = _open_run(plan, selector, pipeline.options, pipeline.device, out, resume, problem_dir)
    made = sum(result.confirms is None for result in run.results)
    outcome = Outcome(run, pipeline.device, [str(file.id) for file in files], replayed=made)
    watcher.started(outcome, plan.budget * len(files) - made)
    with pipeline.line(at_once=min(plan.at_once, len(files))) as line:
        _Orchestrator(plan, pipeline.options, outcome, line, watcher).solve(files)
    return outcome


def _finish(outcome: Outcome, opened, selector: str, problem_dir: Path | None, watcher: Watcher) -> Outcome:
    """Measure the best attempt of each problem once more, on the executor that ``opened`` gives; write the views."""
    files = {str(file.id): file for file in suite.find(selector, problem_dir)}
    folder = outcome.run.path / SOLUTIONS

    def pair_of(result: Result) -> Pair | None:
        try:
            solution = read_solution(folder / result.solution["name"], folder, ProblemId.parse(result.problem))
        except (OSError, SolutionError):
            return None
        return (files[result.problem], solution) if solution.sha256 == result.solution["sha256"] else None

    def record(item: Evaluated) -> None:
        run_sources.keep(outcome.run, item.solution, files[item.result.problem])
        outcome.run.append(item.result)
        watcher.evaluated(item.result)

    outcome.unconfirmed = confirm_best(
        outcome.run, pair_of, opened, record, watcher.confirming, lambda what, text: None
    )
    leaderboard.write(outcome.run, outcome.problems)
    outcome.run.close()
    return outcome


def _open_run(plan: Plan, selector, options: Options, device, out: Path, resume: bool, problem_dir) -> Run:
    endpoint = plan.endpoint
    config = {
        "solutions": str(out / SOLUTIONS),
        "problem_dir": str(problem_dir) if problem_dir else None,
        "problems": selector,
        "device": device["name"],
        **options.to_config(),
        "solver": plan.solver.name,
        "solver_sha256": plan.solver.sha256,
        "model": endpoint.model if endpoint else None,
        "base_url": endpoint.base_url if endpoint else None,
        "budget": plan.budget,
        "seed": plan.seed,
        "settings": plan.settings
        | {f"model.{key}": value for key, value in (endpoint.fields if endpoint else {}).items()},
    }
    return Run.open(out, config, resume)


class _Orchestrator:
    def __init__(self, plan: Plan, options: Options, outcome: Outcome, line: BuildQueue, watcher: Watcher):
        self._plan, self._options, self._outcome, self._line, self._watcher = plan, options, outcome, line, watcher
        self._run = outcome.run
        self._journal = Journal(self._run.path)
        first = (r for r in self._run.results if r.confirms is None)  # what the solver was told
        self._results = {(r.problem, r.solution["sample"]): r for r in first}
        self._files: dict[str, ProblemFile] = {}
        self._lock = threading.Lock()
        self._charged: dict[str, set[int]] = {}  # model calls that are in the line of an attempt already
        self._ended: queue.SimpleQueue = queue.SimpleQueue()

    def solve(self, files: list[ProblemFile]) -> None:
        """Returns when all problems have ended; raises what is not the fault of one solver."""
        todo = list(reversed(files))
        self._files = {str(file.id): file for file in files}
        for _ in range(min(self._plan.at_once, len(files))):
            in_background(self._solve, todo.pop())
        for _ in files:
            problem, failure = self._ended.get()
            if isinstance(failure, BaseException):
                raise failure
            if failure:
                self._outcome.failures[problem] = failure
            self._watcher.ended(problem, failure)
            if todo:
                in_background(self._solve, todo.pop())

    def _solve(self, file: ProblemFile) -> None:
        """The life of one problem."""
        try:
            failure = None
            try:
                self._plan.solver.run(self._task(file), self._run.path)
            except BudgetSpent:
                pass
            except WriteError:
                raise
            except (SolverError, ModelError, Diverged, Unevaluated, PromptError, RunError) as error:
                failure = str(error)
            except Exception as error:
                failure = f"the solver failed: {type(error).__name__}: {error}\n{_frames(error)}"
            self._ended.put((str(file.id), failure))
        except BaseException as error:
            self._ended.put((str(file.id), error))

    def _task(self, file: ProblemFile) -> Task:
        plan = self._plan
        task = Task(
            file, self._outcome.device, workload=self._options.workload, precision=self._options.precision,
            budget=plan.budget, seed=plan.seed, options=plan.settings, prompts=plan.prompts, submit=self._submit,
            say=lambda text: self._watcher.said(str(file.id), text), clock_mhz=self._options.clock_mhz,
            recorded=self._journal.recorded(str(file.id)),
        )  # fmt: skip
        task.llm = Llm(task.id, plan.endpoint, self._journal, lambda: self._asking(task))
        return task

    @contextlib.contextmanager
    def _asking(self, task: Task) -> Iterator[None]:
        """Around a model call; without attempts left there is nothing to ask for."""
        if task.budget <= 0:
            raise BudgetSpent
        key = (task.id, threading.get_ident())
        self._watcher.moved(key, "asking")
        try:
            yield
        finally:
            self._watcher.moved(key, "")

    def _submit(self, task: Task, candidate: Candidate) -> Future:
        """A future of the Result of the task's next attempt, which is on the disk before anything is made of it."""
        source, kind, failure = self._source_of(candidate)
        parent = candidate.parent.solution["sample"] if isinstance(candidate.parent, Result) else candidate.parent
        with self._lock:
            if task.budget <= 0:
                raise BudgetSpent
            task.budget -= 1
            sample = task.total_budget - task.budget
            talk = candidate.talk or self._talk(task, candidate.source)
        turn = candidate.turn or task.turns.get(parent, 0) + 1
        task.sources[sample], task.turns[sample] = source, turn
        attempt = Attempt(
            task.id, sample, parent, turn, talk.prompt, talk.answer, talk.tokens, talk.cost_usd, round(talk.seconds, 3)
        )
        path, known = self._journal.add_attempt(attempt, kind, source)
        ended: Future = Future()
        if known and (task.id, sample) in self._results:
            self._deliver(task, self._results[task.id, sample], ended)
        else:
            solution, failure = self._read(path, ProblemId.parse(task.id), failure)
            self._evaluate(task, solution, failure, ended)
        return ended

    def _read(
        self, path: Path, problem: ProblemId, failure: CandidateFailure | None
    ) -> tuple[Solution, CandidateFailure | None]:
        """An attempt, and why it fails already: its comment may ask for what there is not."""
        folder = self._run.path / SOLUTIONS
        try:
            return read_solution(path, folder, problem), failure
        except SolutionError as error:
            refused = CandidateFailure(Status.BUILD_ERROR, str(error))
            return read_solution(path, folder, problem, settings=False), failure or refused

    def _evaluate(self, task: Task, solution: Solution, failure: CandidateFailure | None, ended: Future) -> None:
        device = task.device["type"]
        if failure is None and not solution.runs_on(device):
            reason = "this run is on a CPU" if device == "cpu" else "this run is on a GPU, whose memory it cannot read"
            message = f"a {solution.language} solution cannot run here: {reason}; write {' or '.join(task.kinds)}"
            failure = CandidateFailure(Status.BUILD_ERROR, message)

        def finish(done: Future) -> None:
            try:
                item = done.result()
                if isinstance(item, Skipped):
                    raise Unevaluated(f"attempt {solution.sample} could not be evaluated: {item.reason}")
                with self._lock:
                    run_sources.keep(self._run, solution, self._files[task.id])
                    self._run.append(item.result)
                self._watcher.evaluated(item.result)
                self._deliver(task, item.result, ended)
            except BaseException as error:
                ended.set_exception(error)

        work = self._line.submit(self._files[task.id], solution, self._phase(task, solution), failure)
        work.add_done_callback(finish)

    def _phase(self, task: Task, solution: Solution) -> Phase:
        key = (task.id, -solution.sample)
        return lambda phase: self._watcher.moved(key, phase.partition(":")[0])

    @staticmethod
    def _deliver(task: Task, result: Result, ended: Future) -> None:
        task.results.append(result)
        task.results.sort(key=lambda r: r.solution["sample"])
        ended.set_result(result)

    @staticmethod
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


def _sum(values) -> float | None:
    """None where one of them is not known."""
    values = list(values)
    return None if None in values else sum(values)


def _frames(error: Exception) -> str:
    """Return where in the solver it happened: the frames outside of this package."""
    package = str(Path(__file__).parent)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(package)]
    return "".join(traceback.format_list(frames[-3:])).rstrip()
