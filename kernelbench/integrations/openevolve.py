"""OpenEvolve: the function ``evaluate`` that its evaluation file defines.

    # evaluator.py
    from kernelbench.integrations.openevolve import evaluator

    evaluate = evaluator("1/19")

OpenEvolve loads the file in each of its workers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from openevolve.evaluation_result import EvaluationResult

from kernelbench.integrations import tasks


def evaluator(problem: str, **conditions: Any) -> Callable[[str], EvaluationResult]:
    """Return ``evaluate(program_path)`` for one problem; ``conditions`` are those of ``tasks.grade``.

    ``combined_score`` is the reward of ``kernelbench.reward``; the artefact ``feedback`` reaches the next prompt.
    The function raises EvaluationError where the machine is at fault: OpenEvolve then tries again
    (``evaluator.max_retries``), and has no other word for it than a score of 0.
    """

    def evaluate(program_path: str) -> EvaluationResult:
        grade = tasks.grade_file(problem, program_path, **conditions)
        metrics = {"combined_score": grade.value, **grade.metrics()}
        return EvaluationResult(metrics, {"status": grade.label, "feedback": grade.feedback})

    return evaluate
