"""Harbor: the judge inside of a verifier's box; ``kb export --to harbor`` writes the tasks that start it.

    python -m kernelbench.integrations.harbor 1/19 --solution /app/solution --out /logs/verifier

Harbor reads ``reward.json``. Without that file it reports an error of the verifier, and no reward.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from harness.integrity.library_only import TRACKS
from harness.solution.includes import read_source
from kernelbench import EvaluationError, escaping, reward
from kernelbench.integrations import tasks

CORRECT, WRONG, UNFIT = 0, 1, 3  # exit statuses, as of ``kb try``
NO_SOLUTION = "no_solution"


def judge(problem: str, folder: Path, device: str, **conditions: Any) -> tuple[tasks.Grade, dict | None]:
    """Return the grade of the one ``kernel.py``, ``.cu`` or ``.cpp`` in ``folder``, and the record of its evaluation.

    The source alone is judged: its ``kb:`` comment and other files are the agent's too. Raises EvaluationError where
    the machine is at fault.
    """
    kinds = tasks.KINDS_ON[device.partition(":")[0]]
    try:
        left = [path for kind in tasks.KINDS if (path := folder / f"kernel.{kind}").is_file() and not path.is_symlink()]
    except OSError as error:  # the agent took the rights of its folder
        return tasks.Grade(0.0, NO_SOLUTION, f"cannot look into {folder.name}: {error.strerror}"), None
    if len(left) != 1 or left[0].suffix[1:] not in kinds:
        names = ", ".join(path.name for path in left) or "none"
        message = f"expected one file {' or '.join(f'kernel.{kind}' for kind in kinds)}, found {names}"
        return tasks.Grade(0.0, NO_SOLUTION, message), None
    (path,) = left
    try:
        source = read_source(path)
    except OSError as error:
        return tasks.Grade(0.0, NO_SOLUTION, f"cannot read {path.name}: {error.strerror}"), None
    graded = reward(problem, source, kind=path.suffix[1:], device=device, **conditions)
    return tasks.of_reward(graded), graded.result.to_json()


def main() -> None:
    """Judge, and write ``reward.json`` for Harbor and ``grade.json`` for people."""
    parser = argparse.ArgumentParser(description="Judge what an agent left, and write its reward.")
    parser.add_argument("problem")
    parser.add_argument("--solution", type=Path, required=True, help="folder with kernel.py, .cu or .cpp")
    parser.add_argument("--out", type=Path, required=True, help="folder for reward.json")
    parser.add_argument("--device", required=True)
    parser.add_argument("--track", choices=TRACKS, required=True)
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for each step of the evaluation")
    parser.add_argument("--build-timeout", type=float, default=900.0, help="seconds for each build")
    given = parser.parse_args()
    try:
        conditions = {"track": given.track, "timeout_s": given.timeout, "build_timeout_s": given.build_timeout}
        grade, record = judge(given.problem, given.solution, given.device, **conditions)
    except EvaluationError as error:
        sys.stderr.write(escaping.terminal(f"error: not evaluated: {error}") + "\n")
        sys.exit(UNFIT)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "grade.json").write_text(escaping.json_text({"grade": grade.to_json(), "record": record}))
    (given.out / "reward.json").write_text(json.dumps({"reward": grade.value, **grade.metrics()}))
    sys.stdout.write(escaping.terminal(f"{grade.label}: {grade.feedback}") + "\n")
    sys.exit(CORRECT if grade.correct else WRONG)


if __name__ == "__main__":
    main()
