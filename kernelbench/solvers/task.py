"""A solver's task: one problem, facts about the device, a model, and the harness to try candidates on."""

from __future__ import annotations

import hashlib
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.faults import with_disk_room
from harness.result import Result
from kernelbench import escaping
from kernelbench.endpoint import Message
from kernelbench.metrics import settled
from kernelbench.run_files.log import write_below
from kernelbench.solvers.backend.interface import Backend, Bounds, ProblemFacts, Profile, Trial, Work
from kernelbench.solvers.candidate import Candidate
from kernelbench.solvers.log.journal import Journal
from kernelbench.solvers.log.memory import Memory
from kernelbench.solvers.model.llm import Answer, Llm
from kernelbench.solvers.prompting import feedback, task_prompt
from kernelbench.solvers.prompting.prompts import Prompts
from kernelbench.solvers.schedule.dispatcher import Stopped


class BudgetSpent(Exception):
    """The task has no attempts left; not an error, but the end of its solver."""


class Unevaluated(Exception):
    """A candidate could not be evaluated, through no fault of its own."""


@dataclass(frozen=True)
class Settings:
    """Settings of a task. ``budget`` are attempts; ``starting_kernel`` is one of ``--start``, with its kind."""

    budget: int
    seed: int = 0
    options: dict[str, str] = field(default_factory=dict)
    prompts: Prompts = field(default_factory=Prompts)
    starting_kernel: tuple[str, str] | None = None  # kind, source


ARTEFACTS = "artefacts"  # folder of a run with what solvers keep about each problem


@dataclass(frozen=True)
class Services:
    """Services of a task. ``submit`` starts an attempt, ``enter`` waits for the problem's next unit of work.

    ``forget_grants`` takes back units that were granted in an earlier life of the run and are not asked for.
    ``folder`` is the run's directory, None without a disk. ``seconds`` is the run's wall time.
    """

    backend: Backend
    journal: Journal
    submit: Callable[[Task, Candidate], Future]
    enter: Callable[[str], None] = lambda problem: None
    say: Callable[[str], None] = lambda text: None
    folder: Path | None = None
    seconds: Callable[[], float] = lambda: 0.0
    forget_grants: Callable[[str], None] = lambda problem: None


class Task:
    """One problem for one solver.

    - ``id`` (``"1/19"``), ``name``, ``source``, ``sizes``: the problem, its module as text
    - ``facts``: more about it (``problem``, ``workloads``, ``signature``, ``trace``), where it is one of the suite
    - ``device``: the device as results record it; ``kinds``: of solutions that can run on it
    - ``bounds``, ``baseline``: bounds as numbers, the time to beat, both before the first attempt
    - ``llm``: the model; ``prompt()`` and ``feedback()`` make what to ask it
    - ``memory``: notes that the problems of the run share
    - ``options``: what ``kb solve --set key=value`` gave; ``seed``, ``rng``: the only source of chance to use
    - ``budget``: attempts left; ``results``: those made, in order; ``trials``: builds and checks made apart
    """

    def __init__(self, facts: ProblemFacts, settings: Settings, services: Services):
        self.facts, self.settings, self._services = facts, settings, services
        self.id, self.name = facts.id, facts.name
        self.device, self.precision = services.backend.device, facts.precision
        self.options, self.seed, self.total_budget = settings.options, settings.seed, settings.budget
        self.budget = settings.budget
        self.rng = random.Random(f"{settings.seed} {facts.id}")
        self.kinds = ("py", "cu") if self.device["type"] == "cuda" else ("py", "cpp")
        self.llm: Llm  # set by who makes the task
        self.memory = Memory(self.id, services.journal)
        self.results: list[Result] = []
        self.sources: dict[int, str] = {}  # by sample
        self.turns: dict[int, int] = {}
        self.works: dict[int, Work] = {}  # what the backend was given
        self.trials: Counter[str] = Counter()
        self.say = services.say  # shows the user a line
        self.recorded = services.journal.recorded(self.id)  # kind and source of attempts before an interruption
        self._tags: dict[str, Any] = {}
        self._unit = threading.Lock()
        self._unit_open = self._by_iteration = False
        self._units = 0  # of work, granted so far
        self._stopped: Stopped | None = None
        self._readings = 0

    def evaluate(self, source: str | Answer | Candidate, kind: str = "py", **origin: Any) -> Result:
        """Evaluate one candidate: the same record as ``kb eval`` writes.

        ``origin`` are the other fields of Candidate. Raises BudgetSpent without attempts left, and
        Unevaluated where the machine is at fault.
        """
        result = self.start(source if isinstance(source, Candidate) else Candidate(source, kind, **origin)).result()
        self.end_attempts()
        return result

    def evaluate_all(self, candidates: list[str | Answer | Candidate]) -> list[Result]:
        """Several at once, so that builds overlap; no more than the budget allows. They are one unit of work."""
        futures = [self.start(candidate) for candidate in candidates[: max(1, self.budget)]]
        results = [future.result() for future in futures]
        self.end_attempts()
        return results

    def start(self, candidate: str | Answer | Candidate) -> Future:
        """Start an evaluation and return a future of its result; attempts are numbered in order of their start."""
        self.enter()
        return self._services.submit(self, candidate if isinstance(candidate, Candidate) else Candidate(candidate))

    def build(self, source: str, kind: str = "py") -> Trial:
        """Build a source and say whether that works; spends no attempt."""
        return self._trial("build", source, kind, self._services.backend.build)

    def check(self, source: str, kind: str = "py") -> Trial:
        """Build, run and compare a source with the reference, without timing; spends no attempt."""
        return self._trial("check", source, kind, self._services.backend.check)

    def profile(self, result: Result) -> Profile:
        """Profile one call of an attempt; the same source on the same device is profiled once."""
        self.enter()
        key = f"profile:{result.solution['sha256']}:{self.device['name']}"
        work = self.works[result.solution["sample"]]
        read = lambda: self._services.backend.profile(work, result).to_json()  # noqa: E731
        return Profile.from_json(self._services.journal.fact(self.id, key, read))

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what ``make`` says (JSON), for ever: a resumed run is told what the first one was.

        For whatever is no function of the log, such as a measurement of the solver's own.
        """
        return self._services.journal.fact(self.id, f"once:{name}", make)

    def seconds(self) -> float:
        """Wall time of the run in seconds; the only clock to use."""
        self._readings += 1
        return self._services.journal.fact(self.id, f"clock:{self._readings}", self._services.seconds)

    def iterations(self, most: int | None = None) -> Iterator[int]:
        """Count iterations from 1 while the schedule gives this problem work and attempts are left.

        An iteration is then the unit of work, whatever is attempted in it; without this an attempt is.
        """
        number = 0
        while self.budget > 0 and (most is None or number < most):
            self._by_iteration = True
            self._unit_open = self._unit_open and not (number or self.sources)
            try:
                self.enter()
            except Stopped:
                return
            number += 1
            yield number

    def enter(self) -> None:
        """Wait until the schedule gives this problem its next unit of work, unless it is in one. Raises Stopped."""
        with self._unit:
            if self._stopped:
                raise self._stopped
            if self._unit_open:
                return
            try:
                self._services.enter(self.id)
            except Stopped as stopped:
                self._stopped = stopped
                raise
            self._unit_open = True
            self._units += 1

    def end_replay(self) -> None:
        """Note that all recorded attempts are started again: what follows asks for a unit, and so for the limits."""
        self._unit_open = False
        self._services.forget_grants(self.id)

    def end_attempts(self) -> None:
        """Note that the attempts in hand are over; what follows is another unit, unless iterations are."""
        if not self._by_iteration:
            self._unit_open = False

    @contextmanager
    def tagged(self, **tags: Any) -> Iterator[None]:
        """Put ``tags`` (phase, iteration, hypothesis, ...) into the log with all calls and attempts of the block."""
        before = self._tags
        self._tags = before | tags
        try:
            yield
        finally:
            self._tags = before

    @property
    def tags(self) -> dict[str, Any]:
        """The tags of the block, and ``unit``: the number of the unit of work, from 1."""
        return {**self._tags, "unit": self._units}

    def keep(self, name: str, text: str) -> None:
        """Write a file about this problem into the run's directory, for people to read: all but JSON is escaped."""
        if self._services.folder is not None:
            name = f"{ARTEFACTS}/{self.id.replace('/', '_')}/{name}"
            text = text if name.endswith(".json") else escaping.terminal(text)
            with_disk_room(lambda: write_below(self._services.folder, name, text))

    @property
    def best(self) -> Result | None:
        """The correct result with the highest settled speedup so far; of equals the first."""
        return max((result for result in self.results if result.correct), key=settled.rank, default=None)

    @property
    def starting_kernel(self) -> Candidate | None:
        """The kernel that ``--start`` has for this problem."""
        kernel = self.settings.starting_kernel
        return Candidate(kernel[1], kernel[0]) if kernel else None

    @property
    def baseline(self) -> dict[str, Any]:
        """The baseline before the first attempt: ``name``, ``median_ms`` (None where it does not run), ``error``."""
        # The journal keeps it. A cached_property would hold its lock, which until Python 3.12 is that of all tasks,
        # while this one waits for its turn.
        self.enter()
        return self._services.journal.fact(self.id, "baseline", lambda: self._services.backend.baseline(self.id))

    @property
    def bounds(self) -> Bounds:
        """The bounds as numbers, at the clock of the latest attempt."""
        return self.facts.bounds(self.conditions)

    @property
    def conditions(self) -> dict[str, Any]:
        """Conditions of the latest attempt with an observed clock; {} before there is one."""
        return next((r.conditions for r in reversed(self.results) if "sm_clock_mhz" in r.conditions), {})

    def option(self, name: str, default: str) -> str:
        return self.options.get(name, default)

    def prompt(self, *further: str) -> list[Message]:
        """The task with its in-context example, then ``further`` paragraphs, then the form of the answer.

        ``--set context=few_shot,hardware,sol`` puts those parts in as well. ``--set hardware=a100-sxm`` asks for a
        kernel for that GPU of ``harness.sol.hardware`` instead of the device at hand, with the facts about it.
        """
        return task_prompt.prompt(self, further)

    def feedback(self, result: Result, parts: str = "G+E+P") -> str:
        """The generation (G), its execution (E) and its profile (P), whichever ``parts`` names."""
        wanted = parts.split("+")
        if unknown := set(wanted) - set(feedback.PARTS):
            raise ValueError(
                f"there is no feedback {'+'.join(sorted(unknown))}; the parts are {'+'.join(feedback.PARTS)}"
            )
        texts = []
        if "G" in wanted:
            texts.append(self.render("generation", source=self.sources[result.solution["sample"]].strip()))
        if "E" in wanted:
            texts.append(self.render("execution", device=self.device["name"], result=feedback.execution(result)))
        if "P" in wanted and (profile := feedback.profile(result)):
            texts.append(self.render("profile", profile=profile))
        return "\n\n".join(texts)

    def render(self, name: str, **values: object) -> str:
        """A prompt file of one's own, ``name.md`` in the folder of ``--prompts``, filled in."""
        return self.settings.prompts.render(name, **values)

    @property
    def source(self) -> str:
        """The problem's module without what is not for its solver: known shortcuts, tolerances, other sizes."""
        return self.facts.source

    @property
    def sizes(self) -> dict[str, Any]:
        return self.facts.sizes

    @property
    def problem(self):
        """The loaded problem, a ``harness.problem.module.Problem``."""
        return self.facts.problem

    @property
    def workload(self):
        """The workload that is evaluated, the first of several; a ``harness.problem.module.Workload``."""
        return self.facts.workload

    @property
    def signature(self):
        """The signature of a ``.cu`` or ``.cpp`` solution, a ``harness.problem.signature.Signature``."""
        return self.facts.signature

    @property
    def trace(self):
        """The operators of the reference, a ``harness.sol.operators.Trace``."""
        return self.facts.trace

    @property
    def limits(self):
        """Limits of the GPU that prompts describe (``harness.sol.hardware.Limits``); None for an unknown one."""
        return self.facts.limits

    @property
    def hardware(self) -> str:
        """Facts about the GPU that prompts speak of, as text for a model; '' where none are known."""
        return task_prompt.hardware(self)

    @property
    def clock(self):
        """The clock that t_SOL is taken at, a ``harness.sol.clock.Clock``: as in the record of the latest attempt."""
        return self.facts.clock(self.conditions)

    @property
    def sol(self) -> str:
        """The speed-of-light report as Markdown, at ``clock``; '' where the device is in no table."""
        return task_prompt.sol(self)

    def _trial(self, what: str, source: str, kind: str, run: Callable[[Work], Trial]) -> Trial:
        self.enter()
        self.trials[what] += 1
        key = f"{what}:{hashlib.sha256(f'{kind} {source}'.encode(errors='backslashreplace')).hexdigest()}"
        make = lambda: asdict(run(Work(self.id, 0, kind, source)))  # noqa: E731
        return Trial(**self._services.journal.fact(self.id, key, make))
