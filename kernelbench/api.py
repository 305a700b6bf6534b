"""The main job as Python functions, for notebooks, search loops and training runs.

The calling process evaluates nothing itself: the evaluator does (``kernelbench.evaluator.client``),
with the judges of ``kb eval``. So results do not depend on what the caller has set
(default dtype, math modes, threads), and nothing of the caller's is changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.problem.module import Problem, ProblemId
from harness.problem.module import load_problem as load_file
from harness.result import Result
from harness.solution.discover import PREBUILT_SUFFIX, SUFFIXES, SolutionError
from kernelbench import suite
from kernelbench.evaluator.client import Conditions, Job, evaluate_all, problem_file


def load_problem(problem: str, root: str | Path | None = None) -> Problem:
    """Import the problem ``1/19`` of the suite, or of another folder of problems with ``root``.

    Raises ``suite.SelectorError`` where there is none, ProblemError where it does not load.
    """
    ProblemId.parse(problem)
    return load_file(suite.find(problem, Path(root) if root else None)[0])


def evaluate(
    problem: str | Problem,
    solution: str | Path,
    **conditions: Any,
) -> Result:
    """Build, check and time one solution file; return the record that ``kb eval`` writes.

    The first call starts a process that stays warm for later ones and ends with the
    caller. Call it from several threads at once, and after a fork. A candidate that fails
    is a result with the status that says how, never an exception.

    Parameters
    ----------
    problem
        ``1/19``, or a problem that ``load_problem`` returned; its file is what is evaluated.
    **conditions
        Those of ``kernelbench.evaluator.client.Conditions``, such as ``device="cpu"``, ``workload="small"``,
        ``precision="fp16"``, ``baselines=("eager", "compile")``, ``timeout_s=30``.

    Raises
    ------
    ValueError
        For a problem or the value of a condition that does not exist.
    TypeError
        For a condition that does not exist.
    SolutionError
        Where the file does not exist or is no solution.
    ProblemError
        Where the problem has no such workload.
    EvaluationError
        Where the machine or the reference is at fault.
    """
    given = Conditions(**conditions)
    path = Path(solution).absolute()
    if not path.is_file():
        raise SolutionError(f"no such file: {solution}")
    if path.suffix not in (*SUFFIXES, PREBUILT_SUFFIX):
        raise SolutionError(f"{solution} is no solution: expected a file ending in {', '.join(SUFFIXES)}")
    (outcome,) = evaluate_all([Job(problem_file(problem, given), path)], given)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
