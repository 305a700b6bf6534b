"""The tools: one method each, named as the command that gives the same to people.

Arguments and results are JSON. A mistake in a call is a ValueError whose message the agent reads; a fault of the
machine is a RuntimeError, and no verdict on the file.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from harness.integrity.static import findings as static_findings
from harness.integrity.static.rules import INFO
from harness.problem.module import ProblemError, ProblemId
from harness.result import Result
from harness.sol import clock
from harness.solution.discover import SUFFIXES, SolutionError, read_solution
from harness.solution.includes import real_path
from kernelbench import suite
from kernelbench.attempt import warm_client
from kernelbench.attempt.report import UNFIT, not_evaluated
from kernelbench.attempt.request import Request
from kernelbench.attempt.warm_place import NoPlace
from kernelbench.gate.thresholds import Limits, check_result
from kernelbench.solvers.prompting import feedback
from kernelbench.views import timing_text

Kind = Literal["py", "cu", "cpp"]
Precision = Literal["fp32", "fp16", "bf16"]


@dataclass(frozen=True)
class Tools:
    """The tools with what whoever starts them has decided: the folder of problems, and conditions of evaluations.

    ``files`` is the folder in which files lie; without it any file is taken, as for callers who can read them all.
    """

    problem_dir: Path | None
    conditions: dict[str, Any]
    idle_s: float
    files: Path | None = None

    def problems(self, selector: str = "all") -> dict[str, Any]:
        """List problems: 1/19, 1/1-20, level2, llm, smoke, sound, all, or several after commas."""
        known = suite.audits(self.problem_dir)
        listed = []
        for file in suite.find(selector, self.problem_dir):
            audited = known.get(file)
            grade = audited.grade if audited and not audited.error else None
            listed.append({"problem": str(file.id), "name": file.name, "summary": file.summary(), "grade": grade})
        return {"problems": listed}

    def show(self, problem: str, workload: str | None = None) -> dict[str, Any]:
        """Show a problem: its reference in PyTorch, sizes, work, and the signature of a .cu or .cpp solution."""
        from kernelbench import starter  # imports torch
        from kernelbench.solvers.problem_facts import starting_point

        with _mistakes():
            return {"text": starter.description(problem, workload, self.problem_dir, starting_point)}

    def starter(self, problem: str, kind: Kind | None = None, precision: Precision = "fp32") -> dict[str, Any]:
        """Return a source that builds as it is and awaits the kernel; without a kind, of one that runs here."""
        import torch

        from kernelbench import starter

        device = self.conditions.get("device") or ("cuda" if torch.cuda.is_available() else "cpu")
        chosen = kind or starter.kind_for(device.partition(":")[0], precision)[0]
        with _mistakes():
            return {"kind": chosen, "source": starter.source(problem, chosen, precision, self.problem_dir)}

    def try_(
        self, file: str, problem: str | None = None, workload: str | None = None, precision: Precision = "fp32"
    ) -> dict[str, Any]:
        """Judge one file: status, first error with its line, settled speedup, percent of SOL, and the next hint."""
        return self._attempt(file, problem, workload, precision)[0]

    def check(
        self,
        file: str,
        problem: str | None = None,
        min_speedup: float | None = None,
        prove_speedup: float | None = None,
        workload: str | None = None,
        precision: Precision = "fp32",
    ) -> dict[str, Any]:
        """Judge one file against limits.

        It fails if it is not correct, slower than min_speedup beyond doubt, or not proven faster than prove_speedup.
        `passes` is null where the machine could not decide.
        """
        for name, limit in (("min_speedup", min_speedup), ("prove_speedup", prove_speedup)):
            if limit is not None and not 0 <= limit < math.inf:
                raise ValueError(f"{name} must be a number from 0 on, and is {limit}")
        attempt, result = self._attempt(file, problem, workload, precision)
        if result is None:
            return {"passes": None, "broken": [], "undecided": [attempt["error"]["message"]], "attempt": attempt}
        found = check_result(result, Limits(min_speedup=min_speedup, prove_speedup=prove_speedup))
        passes = False if found.broken else None if found.undecided else True
        return {"passes": passes, "broken": found.broken, "undecided": found.undecided, "attempt": attempt}

    def time(
        self, file: str, problem: str | None = None, workload: str | None = None, precision: Precision = "fp32"
    ) -> dict[str, Any]:
        """Judge one file and show all about its timing: statistics, distribution, clocks, kernels, bounds."""
        return {"text": timing_text.page(self._result(file, problem, workload, precision))}

    def profile(
        self, file: str, problem: str | None = None, workload: str | None = None, precision: Precision = "fp32"
    ) -> dict[str, Any]:
        """Judge one file and say what limits it: rates, distance from the bound, and the time of each kernel."""
        result = self._result(file, problem, workload, precision)
        kernels = ((result.timing or {}).get("profile") or {}).get("kernels", [])
        return {"text": feedback.profile(result) or feedback.execution(result), "kernels": kernels}

    def sol(
        self,
        problem: str,
        device: str | None = None,
        clock_mhz: float | None = None,
        workload: str | None = None,
        precision: Precision = "fp32",
    ) -> dict[str, Any]:
        """Speed of light of a problem on a GPU such as h100-sxm: bounds, bottleneck and what they rest on."""
        from kernelbench.views import sol_report  # imports torch

        with _mistakes():
            limits = sol_report.choose_limits(device)
            if clock_mhz is not None:
                clock_mhz = clock.parse(str(clock_mhz))
            text, reports = sol_report.report(problem, limits, clock_mhz, workload, precision, self.problem_dir)
        return {"text": text, "reports": reports}

    def findings(self, file: str, everything: bool = False) -> dict[str, Any]:
        """List what a reviewer should look at in a source: line, rule and why. A finding is no verdict."""
        path = self._taken(file)
        if path.suffix not in SUFFIXES or not path.is_file():
            raise ValueError(f"{file} is no source of a solution: expected a file ending in {', '.join(SUFFIXES)}")
        with _mistakes():
            found = static_findings(read_solution(path, problem=ProblemId(1, 1)))
        shown = [replace(one, file=file) for one in found if everything or one.severity != INFO]
        return {"findings": [one.to_json() for one in shown]}

    def _taken(self, file: str) -> Path:
        """Return the path of a file; ValueError for one that the caller may not have read."""
        if self.files is None:
            return Path(file)
        try:
            real = real_path(file)
        except OSError as error:
            raise ValueError(f"{file} cannot be read: {error.strerror}") from None
        if not real.is_relative_to(os.path.realpath(self.files)):
            raise ValueError(f"{file} does not lie in {self.files}, and no other files are taken")
        return real

    def _attempt(
        self, file: str, problem: str | None, workload: str | None, precision: str
    ) -> tuple[dict[str, Any], Result | None]:
        file = str(self._taken(file))
        folder = self.problem_dir and str(self.problem_dir)
        conditions = {**self.conditions, "workload": workload, "precision": precision}
        try:
            attempt, record = warm_client.try_file(Request(file, problem, folder, conditions), self.idle_s)
        except (NoPlace, warm_client.ServerError) as error:
            return not_evaluated(str(error), file, UNFIT, problem), None
        return attempt, record and Result.from_json(record)

    def _result(self, file: str, problem: str | None, workload: str | None, precision: str) -> Result:
        attempt, result = self._attempt(file, problem, workload, precision)
        if result is None:
            kind = RuntimeError if attempt["exit_status"] == UNFIT else ValueError
            raise kind(attempt["error"]["message"])
        return result


class _mistakes:
    """Errors of the caller within are ValueErrors."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (ProblemError, SolutionError)):
            raise ValueError(str(error)) from error
