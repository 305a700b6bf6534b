"""Review what a run found correct: its log in, ``reviews.jsonl`` beside it out."""

from __future__ import annotations

from collections.abc import Iterator

from harness.result import Result
from kernelbench.review import record
from kernelbench.review.bounds import bounds_of
from kernelbench.review.labels import by_measurement
from kernelbench.review.record import Review, Unanswered
from kernelbench.review.reviewer import Reviewer
from kernelbench.run import Run
from kernelbench.run_files.sources import helpers_of, reference_of, source_of


def reviewed(run: Run) -> list[Result]:
    """Return the correct results for a reviewer; what a measurement labels, as library-only, needs none.

    On a CPU no kernels are seen, so that label rests on the source alone, which is the reviewer's to read.
    """
    return [
        result
        for result in run.solutions()
        if result.correct and (result.device.get("type") == "cpu" or by_measurement(result) is None)
    ]


def review(run: Run, reviewer: Reviewer, results: list[Result]) -> Iterator[Review | Unanswered]:
    """Review after review, each in the log before the next one is asked for; or why there is none of a solution.

    The reviewer knows what it was asked before. That the log has an answer says nothing: others may have written it.
    Raises ReviewError where there will be none of the others either.
    """
    log = record.Log(run.path)
    for result in results:
        source, reference = source_of(run, result), reference_of(run, result.problem, result.problem_sha256)
        helpers = helpers_of(run, result)
        name = f"{result.problem} {result.solution['name']}"
        if source is None or helpers is None or reference is None:
            yield Unanswered(f"{name} as it was evaluated is not here; evaluate it again with `kb eval --resume`")
            continue
        try:
            answer = reviewer.review(result, source, reference["source"], bounds_of(run, result), helpers)
        except Unanswered as error:
            yield Unanswered(f"{name}: {error}")
            continue
        log.add(answer)
        yield answer
