"""A solver's task: one problem, facts about the device, a model, and the harness to try candidates on."""

from __future__ import annotations

import ast
import random
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from harness.problem.module import ProblemFile
from harness.result import Result
from kernelbench.metrics import settled
from kernelbench.solvers import feedback
from kernelbench.solvers.journal import Message
from kernelbench.solvers.llm import Answer, Llm
from kernelbench.solvers.prompts import FEW_SHOT, Prompts

_NOT_SHOWN = {"WORKLOADS", "EXPLOITS", "TRIVIAL", "TOLERANCE", "DOMAIN", "get_flops", "get_bytes"}
CONTEXTS = ("few_shot", "hardware", "sol")
_ANALYSING = threading.Lock()  # PyTorch's tracing modes are not made for several threads


class BudgetSpent(Exception):
    """The task has no attempts left; not an error, but the end of its solver."""


class Unevaluated(Exception):
    """A candidate could not be evaluated, through no fault of its own."""


@dataclass(frozen=True)
class Talk:
    """Exchange of a solver with its model, for the trajectory; ``tokens`` of ``prompt`` and ``completion``."""

    prompt: list[Message] = field(default_factory=list)
    answer: str | None = None
    tokens: dict[str, int | None] = field(default_factory=lambda: {"prompt": 0, "completion": 0})
    cost_usd: float | None = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Candidate:
    """A source, or an answer that holds one, and where it comes from.

    ``kind`` is ``py``, ``cu`` or ``cpp``; that of an answer is its own. ``parent`` is the result, or its
    sample number, from which it was made; ``turn`` is one more than the parent's unless it is given.
    ``talk`` is what led to it where that did not go through ``task.llm``.
    """

    source: str | Answer
    kind: str = "py"
    parent: Result | int | None = None
    turn: int | None = None
    talk: Talk | None = None


class Task:
    """One problem for one solver.

    - ``id`` (``"1/19"``), ``name``, ``source``: the problem, its module as text
    - ``workload``, ``sizes``, ``precision``: what is evaluated
    - ``device``: the device as results record it; ``kinds``: of solutions that can run on it
    - ``llm``: the model; ``prompt()`` and ``feedback()`` make what to ask it
    - ``options``: what ``kb solve --set key=value`` gave; ``seed``, ``rng``: the only source of chance to use
    - ``budget``: attempts left; ``results``: those made, in order
    """

    def __init__(
        self,
        file: ProblemFile,
        device: dict[str, Any],
        *,
        workload: str | None,
        precision: str,
        budget: int,
        seed: int,
        options: dict[str, str],
        prompts: Prompts,
        submit: Callable[[Task, Candidate], Future],
        say: Callable[[str], None],
        clock_mhz: float | None = None,
        recorded: list[tuple[str, str]] = (),
    ):
        self.id, self.name, self.device, self.precision = str(file.id), file.name, device, precision
        self.options, self.seed, self.total_budget = options, seed, budget
        self.budget = budget
        self.rng = random.Random(f"{seed} {file.id}")
        self.kinds = ("py", "cu") if device["type"] == "cuda" else ("py", "cpp")
        self.llm: Llm  # set by who makes the task
        self.results: list[Result] = []
        self.sources: dict[int, str] = {}  # by sample
        self.turns: dict[int, int] = {}
        self.say = say  # shows the user a line
        self.recorded = recorded  # kind and source of attempts before an interruption
        self._file, self._workload, self._prompts, self._submit = file, workload, prompts, submit
        self._clock_mhz = clock_mhz

    def evaluate(self, source: str | Answer | Candidate, kind: str = "py", **origin: Any) -> Result:
        """Evaluate one candidate: the same record as ``kb eval`` writes.

        ``origin`` are the other fields of Candidate. Raises BudgetSpent without attempts left, and
        Unevaluated where the machine is at fault.
        """
        return self.start(source if isinstance(source, Candidate) else Candidate(source, kind, **origin)).result()

    def evaluate_all(self, candidates: list[str | Answer | Candidate]) -> list[Result]:
        """Several at once, so that builds overlap; no more than the budget allows."""
        futures = [self.start(candidate) for candidate in candidates[: max(1, self.budget)]]
        return [future.result() for future in futures]

    def start(self, candidate: str | Answer | Candidate) -> Future:
        """Start an evaluation and return a future of its result; attempts are numbered in order of their start."""
        return self._submit(self, candidate if isinstance(candidate, Candidate) else Candidate(candidate))

    @property
    def best(self) -> Result | None:
        """The correct result with the highest settled speedup so far; of equals the first."""
        return max((result for result in self.results if result.correct), key=settled.rank, default=None)

    def option(self, name: str, default: str) -> str:
        return self.options.get(name, default)

    def prompt(self, *further: str) -> list[Message]:
        """The task with its in-context example, then ``further`` paragraphs, then the form of the answer.

        ``--set context=few_shot,hardware,sol`` puts those parts in as well. ``--set hardware=a100-sxm`` asks for a
        kernel for that GPU of ``harness.sol.hardware`` instead of the device at hand, with the facts about it.
        """
        wanted = [part for part in self.option("context", "").split(",") if part]
        if unknown := set(wanted) - set(CONTEXTS):
            raise ValueError(f"--set context={','.join(sorted(unknown))}: the parts are {', '.join(CONTEXTS)}")
        wanted += ["hardware"] if self._named_hardware else []
        on_gpu = self.device["type"] == "cuda" or bool(self._named_hardware)
        target = self.limits.title if self._named_hardware else self.device["name"]
        render = self._prompts.render
        parts = [
            render("task" if on_gpu else "task_cpu", device=target),
            self._prompts.example("add", "solution" if on_gpu else "solution_cpu"),
            *([self._prompts.example(name) for name in FEW_SHOT] if "few_shot" in wanted else []),
            *([self.hardware] if "hardware" in wanted else []),
            render("problem", reference=self.source.strip(), sizes=_listed(self.sizes)),
            *([self.sol] if "sol" in wanted else []),
            *further,
            render("form"),
        ]
        return [{"role": "user", "content": "\n\n".join(part for part in parts if part)}]

    def feedback(self, result: Result, parts: str = "G+E+P") -> str:
        """The generation (G), its execution (E) and its profile (P), whichever ``parts`` names."""
        wanted = parts.split("+")
        if unknown := set(wanted) - set(feedback.PARTS):
            raise ValueError(
                f"there is no feedback {'+'.join(sorted(unknown))}; the parts are {'+'.join(feedback.PARTS)}"
            )
        render = self._prompts.render
        texts = []
        if "G" in wanted:
            texts.append(render("generation", source=self.sources[result.solution["sample"]].strip()))
        if "E" in wanted:
            texts.append(render("execution", device=self.device["name"], result=feedback.execution(result)))
        if "P" in wanted and (profile := feedback.profile(result)):
            texts.append(render("profile", profile=profile))
        return "\n\n".join(texts)

    def render(self, name: str, **values: object) -> str:
        """A prompt file of one's own, ``name.md`` in the folder of ``--prompts``, filled in."""
        return self._prompts.render(name, **values)

    @cached_property
    def source(self) -> str:
        """The problem's module without what is not for its solver: known shortcuts, tolerances, other sizes."""
        return starting_point(self._file.path.read_text(encoding="utf-8"))

    @cached_property
    def problem(self):
        """The loaded problem, a ``harness.problem.module.Problem``."""
        from harness.problem.module import load_problem  # imports torch

        with _ANALYSING:
            return load_problem(self._file)

    @cached_property
    def workload(self):
        """The workload that is evaluated, a ``harness.problem.module.Workload``."""
        return self.problem.workload_for(self._workload, self.device["type"])

    @property
    def sizes(self) -> dict[str, Any]:
        return self.workload.sizes

    @cached_property
    def signature(self):
        """The signature of a ``.cu`` or ``.cpp`` solution, a ``harness.problem.signature.Signature``."""
        from harness.problem.signature import derive_signature

        return self._analysed(derive_signature)

    @cached_property
    def trace(self):
        """The operators of the reference, a ``harness.sol.operators.Trace``."""
        from harness.sol.operators import trace

        return self._analysed(trace)

    @property
    def _named_hardware(self) -> str:
        return self.option("hardware", "")

    @cached_property
    def limits(self):
        """Limits of the GPU that prompts describe (``harness.sol.hardware.Limits``); None for an unknown one."""
        from harness.sol.hardware import UnknownDevice, limits_of, limits_of_device

        if self._named_hardware:
            return limits_of(self._named_hardware)
        try:
            return limits_of_device(self.device)
        except UnknownDevice:
            return None

    @property
    def hardware(self) -> str:
        """Facts about the GPU that prompts speak of, as text for a model; '' where none are known."""
        if self.limits is None:
            return ""
        from kernelbench.solvers.hardware import facts

        return self._prompts.render("hardware", **facts(self.limits, None if self._named_hardware else self.device))

    @property
    def clock(self):
        """The clock that t_SOL is taken at, a ``harness.sol.clock.Clock``: as in the record of the latest attempt."""
        from harness.sol.clock import choose

        observed = {} if self._named_hardware else next(
            (result.conditions for result in reversed(self.results) if "sm_clock_mhz" in result.conditions), {}
        )  # fmt: skip
        return choose(self.limits, observed, self._clock_mhz)

    @property
    def sol(self) -> str:
        """The speed-of-light report as Markdown, at ``clock``; '' where the device is in no table."""
        if self.limits is None:
            return ""
        from harness.sol.report import markdown
        from kernelbench.solvers.hardware import clock_text

        said = clock_text(self.clock, at_hand=not self._named_hardware)
        return self._prompts.render("sol", clock=said, report=markdown(self._analysis, self.limits, self.clock))

    @cached_property
    def _analysis(self):
        from harness.sol.bounds import analyse

        return self._analysed(analyse)

    def _analysed(self, analysis: Callable) -> Any:
        """Return what ``analysis`` makes of the workload and the type of its tensors."""
        from harness.problem.inputs import DTYPES

        workload = self.workload  # before the lock, which loading the problem takes too
        with _ANALYSING:
            return analysis(workload, DTYPES[self.precision])


def starting_point(module: str) -> str:
    """A problem module with its docstring, imports, ``Model``, ``get_inputs``, ``get_init_inputs`` and helpers."""
    parts = []
    for node in ast.parse(module).body:
        names = {getattr(target, "id", None) for target in getattr(node, "targets", [])} | {getattr(node, "name", None)}
        if not names & _NOT_SHOWN:
            apart = isinstance(node, (ast.ClassDef, ast.FunctionDef))
            parts.append(("\n\n" if apart else "") + ast.get_source_segment(module, node))
    return "\n".join(parts) + "\n"


def _listed(sizes: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sizes.items()) or "as in the module"
