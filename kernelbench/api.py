"""The main job as Python functions, for notebooks, search loops and training runs.

The calling process becomes the judge; candidates still run in processes of
their own. A process forked from one that has used PyTorch cannot be a judge, because
its threads do not survive a fork: ``kernelbench.reward`` works there too.
"""

from __future__ import annotations

from pathlib import Path

import torch

from harness import device as devices
from harness.build import BuildContext, build
from harness.host import default_memory_bytes
from harness.judge.judge import Conditions, failed_result
from harness.judge.judge import evaluate as judge
from harness.problem import Problem, ProblemId
from harness.problem import load_problem as load_file
from harness.process import fork_server
from harness.result import CandidateFailure, Result
from harness.solution import read_solution
from kernelbench import suite


def load_problem(problem: str, root: str | Path | None = None) -> Problem:
    """The problem ``1/19`` of the suite, or of another folder of problems with ``root``.

    Raises ``suite.SelectorError`` where there is none, ProblemError where it does not load.
    """
    ProblemId.parse(problem)
    return load_file(suite.find(problem, Path(root) if root else None)[0])


def evaluate(
    problem: str | Problem,
    solution: str | Path,
    *,
    workload: str | None = None,
    device: str | None = None,
    precision: str = "fp32",
    timeout_s: float = 120.0,
    build_timeout_s: float = 900.0,
    baselines: tuple[str, ...] = ("eager",),
    criterion: str = "sem",
    track: str | None = None,
) -> Result:
    """Build, check and time one solution file; the same record as ``kb eval`` writes.

    Without ``device`` it is the GPU if there is one, else the CPU; without
    ``workload`` the problem's default for that device. A candidate that fails is
    a result with the status that says how, never an exception.

    Raises ProblemError where the reference itself does not run, SolutionError
    where there is no such file, DeviceError and ToolchainError where this machine
    lacks what it takes.
    """
    loaded = load_problem(problem) if isinstance(problem, str) else problem
    candidate = read_solution(Path(solution), problem=loaded.id)
    conditions = Conditions(
        devices.select(device), precision, timeout_s, default_memory_bytes(), build_timeout_s, baselines, criterion,
        track,
    )
    if lacking := candidate.lacks(conditions.device.type):
        raise devices.DeviceError(f"{candidate.name}: {lacking}")
    chosen = loaded.workload_for(workload, conditions.device.type)
    server = fork_server()
    arch = devices.architecture(conditions.device)
    context = BuildContext(server, arch, torch.__version__, build_timeout_s, conditions.memory_bytes)
    try:
        artefact = build(candidate, context)
    except CandidateFailure as failure:
        return failed_result(chosen, candidate, conditions, failure)
    return judge(chosen, candidate, artefact, conditions, server)
