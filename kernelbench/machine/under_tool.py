"""Run a candidate as a program of its own under a tool of the CUDA toolkit.

The candidate has no judge and no limits around it then: it may do whatever its user may do.
"""

from __future__ import annotations

import glob
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from harness.compile.toolchain import program
from harness.job import encode_problem, encode_solution
from harness.problem.module import ProblemFile
from harness.process.spawn import command_of, environment
from harness.solution.discover import Solution
from kernelbench.ucutlass.codegen.build.translate import translators

_TIMEOUT_S = 600


class ToolError(Exception):
    """The tool is not there, or did not do its work; the message says what to do."""


def find(name: str, places: Sequence[str], package: str) -> str:
    """Return the path of a tool on the PATH, in CUDA_HOME or at ``places`` (patterns); raise ToolError."""
    homes = [os.path.join(os.environ[home], "bin", name) for home in ("CUDA_HOME", "CUDA_PATH") if home in os.environ]
    found = [path for place in (*homes, *places) for path in sorted(glob.glob(place), reverse=True)]
    if tool := program(name) or next(iter(found), None):
        return tool
    raise ToolError(f"there is no {name} on the PATH: install {package}, which is part of the CUDA toolkit")


def run(
    tool: Sequence[str],
    problem: ProblemFile,
    solution: Solution,
    workload: str,
    precision: str,
    device: str,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[str]:
    """Run a few calls of a solution under the command ``tool``; raise ToolError where that does not start or end.

    It has ``variables`` in its environment, and no keys that this process may have there. Its whole group ends where
    the tool has to be.
    """
    job = {
        "problem": encode_problem(problem),
        "solution": encode_solution(solution),
        "workload": workload,
        "precision": precision,
        "device": device,
        "translators": {kind: one.to_json() for kind, one in translators(precision).items()},
    }
    command = [*tool, *command_of("harness.worker.profile_target"), json.dumps(job)]
    name = os.path.basename(tool[0])
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            command, stdout=pipe, stderr=pipe, encoding="utf-8", errors="backslashreplace",
            env={**environment(), **variables}, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise ToolError(f"{tool[0]} does not start: {error.strerror}") from error
    with process:
        try:
            out, err = process.communicate(timeout=_TIMEOUT_S)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise ToolError(f"{name} was not done within {_TIMEOUT_S} s") from None
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)
