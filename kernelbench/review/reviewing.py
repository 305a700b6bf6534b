"""Review what a run found correct: its log in, ``reviews.jsonl`` beside it out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from harness.result import Result
from kernelbench import suite
from kernelbench.review import record
from kernelbench.review.labels import LIBRARY_ONLY_RULE
from kernelbench.review.record import Review, ReviewError
from kernelbench.review.reviewer import Reviewer
from kernelbench.run import Run


def missing(run: Run, model: str) -> list[Result]:
    """Correct results that this model has not reviewed; what is library-only needs none."""
    done = {(r.problem, r.solution, r.sha256) for r in record.load(run.path) if r.model == model}
    return [
        result
        for result in run.latest()
        if result.correct
        and result.rule != LIBRARY_ONLY_RULE
        and (result.problem, result.solution["name"], result.solution["sha256"]) not in done
    ]


def review(run: Run, reviewer: Reviewer, results: list[Result]) -> Iterator[Review]:
    """Review after review, each in the log before the next one is asked for. Raises ReviewError."""
    folder = run.config.get("problem_dir")
    files = {str(file.id): file for file in suite.find("all", Path(folder) if folder else None)}
    for result in results:
        source = _source(run, result)
        answer = reviewer.review(result, source, files[result.problem].path.read_text())
        record.append(run.path, answer)
        yield answer


def _source(run: Run, result: Result) -> str:
    """What was evaluated, and nothing else under its name."""
    path = Path(run.config["solutions"], result.solution["name"])
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ReviewError(f"cannot read {path}: {error.strerror}; run this where the run was started") from None
    if hashlib.sha256(content).hexdigest() != result.solution["sha256"]:
        raise ReviewError(f"{path} is not what was evaluated; evaluate it again with `kb eval --resume`")
    return content.decode(errors="replace")
