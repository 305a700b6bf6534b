"""Shared parts of all adapters: the text of a task, and the grade of an answer to it."""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.problem.module import ProblemFile
from harness.solution.includes import read_source
from kernelbench import suite
from kernelbench.rl import Reward, reward
from kernelbench.solvers.model import answers
from kernelbench.solvers.problem_facts import starting_point
from kernelbench.solvers.prompting import feedback
from kernelbench.solvers.prompting.prompts import Prompts

KINDS = ("py", "cu", "cpp")
KINDS_ON = {"cuda": ("py", "cu"), "cpu": ("py", "cpp")}  # by type of device
NO_CODE = "no_code"  # the label of an answer that holds no solution


@dataclass(frozen=True)
class Grade:
    """Worth of one answer, in plain values that any framework can store.

    ``value``, ``variance``, ``label``, ``verdict`` and ``speedup`` (settled) are those of ``kernelbench.Reward``;
    an answer without a solution has the label ``no_code``. ``feedback`` is text for the author of the answer.
    """

    value: float
    label: str
    feedback: str
    variance: float = 0.0
    verdict: str | None = None
    speedup: float | None = None
    interval: tuple[float, float] | None = None

    @property
    def correct(self) -> bool:
        return self.label == "ok"

    def fast(self, threshold: float = 1.0) -> bool:
        """Return whether the answer is correct and its settled speedup is above ``threshold``."""
        return self.correct and self.speedup is not None and self.speedup > threshold

    def metrics(self) -> dict[str, float]:
        """Return numbers by name; a speedup that is not known counts as 0."""
        return {"correct": float(self.correct), "fast_1": float(self.fast()), "speedup": self.speedup or 0.0}

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def problems(selector: str) -> list[ProblemFile]:
    """Return the problems that ``selector`` names; raises ``suite.SelectorError``, a ValueError."""
    return suite.find(selector)


def instruction(problem: str, kind: str = "py", device: str | None = None, workload: str | None = None) -> str:
    """Return the task as text for a model: rules, an example, the module to replace, and the form of the answer.

    Parameters
    ----------
    problem
        Its id, ``1/19``.
    kind
        ``py``, ``cu`` or ``cpp``; the last two come with the C signature to fill in.
    device, workload
        As of ``kernelbench.evaluate``: the GPU if there is one, and the sizes that are usual for it.

    Raises ValueError for a problem or a kind that does not exist, and DeviceError for a device that this machine lacks.
    """
    if kind not in KINDS:
        raise ValueError(f"'{kind}' is no kind of solution; use one of {', '.join(KINDS)}")
    (file,) = suite.find(problem)
    from harness import device as devices  # imports torch
    from harness.problem.module import load_problem

    described = devices.describe(devices.select(device))
    on_gpu = described["type"] == "cuda"
    sizes = load_problem(file).workload_for(workload, described["type"]).sizes
    prompts = Prompts()
    module = _module(prompts, file, sizes)
    if kind != "py":
        from kernelbench import starter

        signature = starter.source(problem, kind).strip()
        return "\n\n".join([module, prompts.render("library", kind=kind, starter=signature)])
    return "\n\n".join(
        [
            prompts.render("task" if on_gpu else "task_cpu", device=described["name"]),
            prompts.example("add", "solution" if on_gpu else "solution_cpu"),
            module,
            prompts.render("form"),
        ]
    )


def brief(problem: str, device_type: str) -> str:
    """Return the rules and the module for an agent that has files and tools; the machine at hand does not matter."""
    (file,) = suite.find(problem)
    prompts = Prompts()
    on_gpu = device_type == "cuda"
    from harness.problem.module import load_problem  # imports torch

    sizes = load_problem(file).workload_for(None, device_type).sizes
    name, whose = ("task", "NVIDIA GPU") if on_gpu else ("task_cpu", "that you have")
    rules = prompts.render(name, device=whose)
    return f"{rules}\n\n{_module(prompts, file, sizes)}"


def _module(prompts: Prompts, file: ProblemFile, sizes: dict[str, Any]) -> str:
    return prompts.render(
        "problem",
        reference=starting_point(file.path.read_text(encoding="utf-8")).strip(),
        sizes=", ".join(f"{name} = {value}" for name, value in sizes.items()) or "as in the module",
    )


def grade_answer(problem: str, answer: str, kind: str = "py", **conditions: Any) -> Grade:
    """Return the grade of the last whole solution in a model's ``answer``; see ``grade``."""
    try:
        source = answers.extract(answer, kind)
    except answers.NoCode as reason:
        return Grade(0.0, NO_CODE, str(reason))
    return grade(problem, source, kind, **conditions)


def grade(problem: str, source: str, kind: str = "py", service: str | None = None, **conditions: Any) -> Grade:
    """Return the grade of a solution's ``source``; ``conditions`` are those of ``kernelbench.evaluate``.

    The evaluation takes place here, or at the URL ``service`` of a ``kb serve-eval``, by default $KERNELBENCH_SERVICE;
    its token is in $KERNELBENCH_TOKEN. Raises EvaluationError where the machine is at fault, ValueError and
    ProblemError as ``kernelbench.reward`` does, and PermissionError where the service does not know the token.
    """
    service = service or os.environ.get("KERNELBENCH_SERVICE")
    judge = _reward_at(service) if service else reward
    return of_reward(judge(problem, source, kind=kind, **conditions))


@functools.cache
def _reward_at(url: str) -> Callable[..., Reward]:
    from kernelbench import Evaluator  # its client is an extra

    return Evaluator(url).reward


def grade_file(problem: str, path: str | Path, **conditions: Any) -> Grade:
    """Return the grade of the program at ``path``; its ending is its kind. Raises as ``grade``, and OSError."""
    file = Path(path)
    try:
        source = read_source(file)
    except OSError as error:
        if error.errno not in (errno.EFBIG, errno.EILSEQ):  # too large, or in another encoding
            raise
        return Grade(0.0, NO_CODE, error.strerror)
    return grade(problem, source, file.suffix[1:] or "py", **conditions)


def of_reward(graded: Reward) -> Grade:
    """Return the plain values of a reward."""
    result = graded.result
    text = "\n\n".join(filter(None, [feedback.execution(result), feedback.profile(result)]))
    interval = tuple(graded.interval) if graded.interval else None
    return Grade(
        graded.value, graded.label, text, graded.variance, graded.verdict, graded.settled_speedup, interval
    )


@functools.cache
def seed_program(problem: str) -> str:
    """Return a correct program to start a search from: the problem's own module under the name ``ModelNew``."""
    (file,) = suite.find(problem)
    module = starting_point(file.path.read_text(encoding="utf-8"))
    return module.replace("class Model(", "class ModelNew(").replace("super(Model,", "super(ModelNew,")
