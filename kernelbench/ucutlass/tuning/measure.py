"""Times of variants, by the judges of `kb eval`: built, checked against the problem, and timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from harness.problem.module import ProblemFile
from harness.result import Result, first_line
from kernelbench.evaluator.client import Conditions, Job, evaluate_all
from kernelbench.run_files.log import write_whole
from kernelbench.ucutlass import ir
from kernelbench.ucutlass.canonical import digest, source_text
from kernelbench.ucutlass.tuning.search import NOT_EVALUATED, Measured


class Evaluations:
    """Evaluates variants as ``.dsl`` files in a folder; ``keep`` takes every record as it comes."""

    def __init__(
        self, problem: ProblemFile, conditions: Conditions, folder: Path, predict: Callable, told: Callable,
        keep: Callable[[Result], None] = lambda record: None,
    ):  # fmt: skip
        self._problem, self._conditions, self._folder = problem, conditions, folder
        self._predict, self._told, self._keep = predict, told, keep

    def __call__(self, programs: Sequence[ir.Program]) -> list[Measured]:
        """Build and measure the programs, several builds at once; their order is kept.

        Raises what ``keep`` raises, and OSError where a variant cannot be written.
        """
        jobs = [Job(self._problem, self._write(program)) for program in programs]
        found: dict[int, Measured] = {}

        def take(place: int, answer: Result | Exception) -> None:
            found[place] = self._measured(programs[place], answer)

        evaluate_all(jobs, self._conditions, told=take)
        return [found[place] for place in range(len(jobs))]

    def _write(self, program: ir.Program) -> Path:
        path = self._folder / f"{digest(program)}.dsl"
        write_whole(path, f"# kb: problem={self._problem.id}\n{source_text(program)}\n")
        return path

    def _measured(self, program: ir.Program, answer: Result | Exception) -> Measured:
        predicted = self._predict(program.kernels[0])
        if isinstance(answer, Exception):
            found = Measured(program, None, NOT_EVALUATED, str(answer), predicted)
        else:
            self._keep(answer)
            ms = answer.timing["median_ms"] if answer.correct and answer.timing else None
            found = Measured(program, ms, str(answer.status), first_line(answer.message), predicted)
        self._told(found)
        return found
