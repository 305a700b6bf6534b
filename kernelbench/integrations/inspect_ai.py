"""inspect_ai: problems as a task, the judge as a scorer.

    inspect eval kernelbench/kernels -T problems=level1 --model openai/gpt-5

Inspect finds the task through the entry point group ``inspect_ai`` of the installed package. Candidates run in
kernelbench's own sandbox, so the task asks for none of Inspect's.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import anyio
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Solver, TaskState, generate, use_tools
from inspect_ai.tool import Tool, ToolError, mcp_server_stdio, mcp_tools, tool

from harness.process.spawn import command_of
from kernelbench import EvaluationError
from kernelbench.integrations import tasks
from kernelbench.rl import fault_of


@task
def kernels(
    problems: str = "smoke",
    kind: str = "py",
    device: str | None = None,
    workload: str | None = None,
    precision: str = "fp32",
    timeout_s: float = 120.0,
    track: str | None = None,
    tools: bool = False,
) -> Task:
    """Write a kernel for each of ``problems`` (a selector as of ``kb problems list``); the rest as ``kb eval``.

    With ``tools`` the model has those of ``kb mcp``, and may build, check and time candidates before it answers.
    """
    samples = [
        Sample(
            input=tasks.instruction(str(file.id), kind, device, workload),
            id=str(file.id),
            metadata={"problem": str(file.id), "name": file.name, "kind": kind},
        )
        for file in tasks.problems(problems)
    ]
    judge = kernel_scorer(
        kind=kind, device=device, workload=workload, precision=precision, timeout_s=timeout_s, track=track
    )
    solver = _solver(device, timeout_s, track) if tools else [generate()]
    return Task(dataset=MemoryDataset(samples, name="kernelbench"), solver=solver, scorer=judge)


def _solver(device: str | None, timeout_s: float, track: str | None) -> list[Solver]:
    """Return solvers with the tools of ``kb mcp``, which judge by the rules of the scorer."""
    folder = tempfile.mkdtemp(prefix="kb-inspect-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # a model has no files but those that it keeps: what tools say of others would tell it their lines
    python, *arguments = command_of("kernelbench")
    arguments += ["mcp", "--files", folder, "--timeout", str(timeout_s), *(["--device", device] if device else [])]
    arguments += {"open": ["--allow-library"], "kernels": ["--own-kernels"]}.get(track, [])
    server = mcp_server_stdio(name="kernelbench", command=python, args=arguments, env=dict(os.environ))
    return [use_tools(keep(folder), mcp_tools(server)), generate()]


@tool
def keep(folder: str) -> Tool:
    """Keep sources below ``folder``, where the tools of ``kb mcp`` can read them: a model has no files here."""

    async def execute(source: str, kind: str = "py") -> str:
        """Keep a source in a file and return its path, which check, try, time, findings and profile take.

        Args:
            source: The whole file.
            kind: Its ending: py, cu or cpp.
        """
        if kind not in tasks.KINDS:
            raise ToolError(f"kind must be one of {', '.join(tasks.KINDS)}, not {kind!r}")
        if fault := fault_of(source):
            raise ToolError(fault)
        path = Path(tempfile.mkdtemp(dir=folder), f"kernel.{kind}")
        path.write_text(source, encoding="utf-8")
        return str(path)

    return execute


@scorer(metrics=[{"*": [mean(), stderr()]}])
def kernel_scorer(kind: str = "py", **conditions: Any) -> Scorer:
    """Grade the last solution in the model's answer: ``reward``, ``correct``, ``fast_1`` and ``speedup`` a sample.

    ``conditions`` are those of ``tasks.grade``. The problem is the sample's metadata ``problem``. Where the
    machine is at fault the sample is unscored, so that it counts in no metric.
    """

    async def score(state: TaskState, target: Target) -> Score:
        answer = state.output.completion
        ask = functools.partial(tasks.grade_answer, state.metadata["problem"], answer, kind, **conditions)
        try:
            grade = await anyio.to_thread.run_sync(ask)
        except EvaluationError as error:
            return Score.unscored(reason="scoring_failed", answer=answer, explanation=str(error))
        return Score(
            value={"reward": grade.value, **grade.metrics()},
            answer=answer,
            explanation=grade.feedback,
            reason="invalid_response_format" if grade.label == tasks.NO_CODE else None,
            metadata=grade.to_json(),
        )

    return score
