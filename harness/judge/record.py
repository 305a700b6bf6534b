"""The record of an evaluation: what is known before anything has run, a failure, and the figures of a success."""

from __future__ import annotations

import datetime
import os
import time
from pathlib import Path

import torch

from harness import device as devices
from harness.integrity.static import findings
from harness.judge.conditions import Conditions
from harness.limits import MAX_LOG_BYTES, MAX_MESSAGE_BYTES
from harness.problem.inputs import DTYPES
from harness.problem.module import Workload
from harness.result import CandidateFailure, Result, Status, shown
from harness.sol.headroom import REACHED, headroom
from harness.solution.discover import Solution

_CHECKOUT, _PACKAGES = Path(__file__).resolve().parents[2], Path(torch.__file__).resolve().parents[1]


class Stages:
    """Wall time of an evaluation, ``seconds`` by stage; a stage lasts until the next one begins, or until ``end``."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._current: str | None = None
        self._begin = 0.0

    def begin(self, name: str) -> None:
        self.end()
        self._current, self._begin = name, time.perf_counter()

    def end(self) -> None:
        if self._current is not None:
            spent = self.seconds.get(self._current, 0.0) + time.perf_counter() - self._begin
            self.seconds[self._current] = round(spent, 4)
        self._current = None


def blank_result(workload: Workload, solution: Solution, conditions: Conditions) -> Result:
    """A record with everything that is known before anything has run."""
    problem = workload.problem
    return Result(
        problem=str(problem.id),
        problem_name=problem.name,
        problem_sha256=problem.sha256,
        workload={
            "name": workload.name, "sizes": workload.sizes, "flops": workload.flops, "bytes": None,
            **({} if workload.is_timed else {"timed": False}),
        },
        solution={
            "name": solution.name,
            "sample": solution.sample,
            "kind": solution.kind,
            "language": solution.language,
            "sha256": solution.sha256,
            **({"helpers": solution.helpers} if solution.helpers else {}),
        },
        status=Status.CRASHED,
        precision=conditions.precision,
        integrity={"findings": [finding.to_json() for finding in findings(solution, conditions.precision)]},
        device=devices.describe(conditions.device),
        versions=devices.versions(conditions.device),
        started=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    )  # fmt: skip


def failed_result(workload: Workload, solution: Solution, conditions: Conditions, failure: CandidateFailure) -> Result:
    """The record of a candidate that failed before it could be evaluated, as in its build."""
    result = blank_result(workload, solution, conditions)
    add_failure(result, solution, failure)
    return result


def add_failure(result: Result, solution: Solution, failure: CandidateFailure) -> None:
    """Write the candidate's failure into its record."""
    result.status, result.rule = failure.status, failure.rule
    # words were added to them since they were made
    result.message = shown(_without_folders(failure.message, solution), MAX_MESSAGE_BYTES)
    result.log = shown(_without_folders(failure.log, solution), MAX_LOG_BYTES)
    if failure.killed_by:
        result.conditions["killed_by"] = failure.killed_by


def _without_folders(text: str, solution: Solution) -> str:
    """Paths relative to the solutions, the harness or the packages: records are shown to others, homes are not."""
    folders = {str(folder): "" for folder in (solution.root.absolute(), solution.root.resolve(), _CHECKOUT, _PACKAGES)}
    for folder, name in (folders | {os.path.expanduser("~"): "~/"}).items():
        if folder != "/":
            text = text.replace(f"{folder}/", name)
    return text


def add_rates(result: Result, workload: Workload, conditions: Conditions) -> None:
    """Derive speedup, GB/s, GFLOP/s and the distance to the speed of light from the times.

    Of times that the judge's clock could not confirm there are none of these, as they are the candidate's word.
    """
    median_ms = result.timing["median_ms"]
    result.speedup = result.speedup_over_first()
    dtype = DTYPES[conditions.precision]
    result.sol = headroom(workload, dtype, conditions.device, median_ms, result.conditions, conditions.clock_mhz)
    if result.unconfirmed:
        result.sol = {name: value for name, value in result.sol.items() if name not in REACHED}
        return
    result.gbps = result.workload["bytes"] / median_ms / 1e6
    if workload.flops is not None:
        result.gflops = workload.flops / median_ms / 1e6
