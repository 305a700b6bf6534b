"""Judge one file and return its attempt, whatever happens: wrong input and faults of the machine are attempts too."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.problem.module import ProblemError
from harness.result import Result
from harness.solution.discover import SUFFIXES, SolutionError, named_as_problems, problem_of
from kernelbench import suite
from kernelbench.attempt import report
from kernelbench.attempt.request import Request
from kernelbench.evaluator.client import Conditions, EvaluationError, Job, evaluate_all, problem_file

_OF_CALL = FileNotFoundError, NotADirectoryError, PermissionError  # errors of the system for what a caller names

Ask = Callable[[Job, Conditions], Result | EvaluationError | SolutionError]


def judge_file(request: Request, ask: Ask | None = None) -> tuple[dict[str, Any], Result | None]:
    """Return the attempt of the file that ``request`` names, and its record; None where it was not evaluated.

    ``ask`` evaluates one job, by default with the evaluator of this process.
    """
    begin, problem = time.perf_counter(), request.problem
    try:
        path = _solution_file(request.file)
        conditions = Conditions(**request.conditions)
        problem = problem or str(problem_of(path))
        folder = Path(request.problem_dir) if request.problem_dir else None
        others = named_as_problems(path.parent, suite.names(folder))
        job = Job(problem_file(problem, conditions, folder), path, others=others)
    except (SolutionError, ProblemError, ValueError, TypeError) as error:
        outcome = error
    except OSError as error:
        of_call = isinstance(error, _OF_CALL) or error.errno == errno.ENAMETOOLONG
        outcome = error if of_call else EvaluationError(str(error))
    else:
        outcome = (ask or _ask)(job, conditions)
    wall_s = round(time.perf_counter() - begin, 3)
    if isinstance(outcome, Result):
        return report.of_result(outcome, request.file, wall_s), outcome
    status = report.UNFIT if isinstance(outcome, EvaluationError) else report.WRONG_USAGE
    return report.not_evaluated(str(outcome), request.file, status, problem, wall_s), None


def _ask(job: Job, conditions: Conditions) -> Result | EvaluationError | SolutionError:
    (outcome,) = evaluate_all([job], conditions)
    return outcome


def _solution_file(file: str) -> Path:
    path = Path(file)
    if not os.path.isfile(path):  # no error for a name that no file system takes
        raise SolutionError(f"no such file: {file}")
    if path.suffix not in SUFFIXES:
        raise SolutionError(f"{file} is no solution: expected a file ending in {', '.join(SUFFIXES)}")
    try:
        path.open("rb").close()
    except OSError as error:
        raise SolutionError(f"{file} cannot be read: {error.strerror}") from error
    return path.absolute()
