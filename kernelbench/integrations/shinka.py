"""ShinkaEvolve: the program that it starts for each candidate.

    # evaluate.py
    from kernelbench.integrations.shinka import main

    main("1/19")

ShinkaEvolve calls ``evaluate.py --program_path P --results_dir D`` and reads ``metrics.json`` and ``correct.json``.
This module imports nothing of it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelbench import EvaluationError, escaping
from kernelbench.integrations import tasks

_UNFIT = 3  # exit status of ``kb`` where the machine is at fault


def main(problem: str, arguments: Sequence[str] | None = None, **conditions: Any) -> None:
    """Evaluate the program that the command line names, and write its two files.

    ``combined_score`` is the reward of ``kernelbench.reward``; ``text_feedback`` reaches the next prompt;
    ``conditions`` are those of ``tasks.grade``. Where the machine is at fault there are no files and the exit
    status is 3, so that no score of 0 is stored for it.
    """
    parser = argparse.ArgumentParser(description=f"Evaluate a solution of problem {problem}.")
    parser.add_argument("--program_path", type=Path, required=True)
    parser.add_argument("--results_dir", type=Path, required=True)
    given = parser.parse_args(arguments)
    try:
        grade = tasks.grade_file(problem, given.program_path, **conditions)
    except EvaluationError as error:
        sys.stderr.write(escaping.terminal(f"error: {error}") + "\n")
        sys.exit(_UNFIT)
    public = {"label": grade.label, "verdict": grade.verdict, **grade.metrics()}
    metrics = {"combined_score": grade.value, "public": public, "private": {}, "text_feedback": grade.feedback}
    correct = {"correct": grade.correct, "error": None if grade.correct else grade.feedback}
    given.results_dir.mkdir(parents=True, exist_ok=True)
    for name, content in (("metrics.json", metrics), ("correct.json", correct)):
        (given.results_dir / name).write_text(escaping.json_text(content))
