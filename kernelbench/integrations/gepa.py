"""GEPA: an evaluator for ``gepa.optimize_anything``, in its single-task and its multi-task form.

    from gepa.optimize_anything import optimize_anything
    from kernelbench.integrations.gepa import KernelEvaluator

    optimize_anything(seed_candidate=source, evaluator=KernelEvaluator("1/19"))
    optimize_anything(seed_candidate=source, evaluator=KernelEvaluator(), dataset=["1/19", "1/20"])

This module imports nothing of GEPA: an evaluator is a function.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelbench.integrations import tasks


class KernelEvaluator:
    """Callable ``(candidate[, example]) -> (score, side information)``.

    The score is the reward of ``kernelbench.reward``. A candidate is a source, or a dictionary with one text. An
    example is a problem's id, or a dictionary with the key ``problem``; it is left out where ``problem`` is given.
    Raises EvaluationError where the machine is at fault. That ends the run unless ``raise_on_exception`` is off.
    """

    def __init__(self, problem: str | None = None, kind: str = "py", **conditions: Any):
        self._problem, self._kind, self._conditions = problem, kind, conditions

    def __call__(
        self, candidate: str | Mapping[str, str], example: str | Mapping[str, Any] | None = None
    ) -> tuple[float, dict[str, Any]]:
        problem = example["problem"] if isinstance(example, Mapping) else example or self._problem
        if problem is None:
            raise ValueError("name a problem: KernelEvaluator('1/19'), or a dataset of ids such as ['1/19', '1/20']")
        grade = tasks.grade(problem, self._source(candidate), self._kind, **self._conditions)
        return grade.value, {"status": grade.label, "feedback": grade.feedback, "scores": grade.metrics()}

    @staticmethod
    def _source(candidate: str | Mapping[str, str]) -> str:
        if isinstance(candidate, str):
            return candidate
        if len(candidate) != 1:
            raise ValueError(f"a candidate is one source, got {len(candidate)}: {', '.join(candidate)}")
        return next(iter(candidate.values()))
