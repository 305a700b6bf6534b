"""Problems as tasks for Harbor: one directory each, with a box for the agent and another one for the judge.

    task.toml                 limits, and that the verifier has a box of its own
    instruction.md            the task
    environment/              the agent's box: PyTorch, compilers, the module to replace; no judge
    tests/                    the judge's box: kernelbench, and test.sh that writes reward.json
    solution/                 for Harbor's oracle, where a copy of the reference may pass

What the agent's box holds is its instruction and ``reference.py``, the module without what helps to cheat.
"""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from harness.problem.module import ProblemFile
from kernelbench import suite
from kernelbench.integrations import tasks
from kernelbench.solvers.problem_facts import starting_point

SCHEMA = "1.3"
FOLDER = "/app/solution"  # what travels from the agent's box into the judge's
IMAGES = {"cuda": "pytorch/pytorch:2.9.1-cuda13.0-cudnn9-devel", "cpu": "python:3.12-bookworm"}
_INSTALL = {
    "cuda": "RUN pip install --no-cache-dir ninja numpy\n",
    "cpu": "RUN pip install --no-cache-dir torch ninja numpy\n",
}
# Harbor's limits: an agent's work; and more than builds and evaluation can take, some 170 times a step where an agent
# chooses to be slow, and a dozen builds. Who could exceed that would choose to be unscored.
_AGENT_S, _STEP_S, _BUILD_S, _VERIFIER_S = 3600, 30, 300, 3 * 3600

_HOW = """
Leave your solution in `{folder}/`, the only folder that is judged, as one file: `kernel.py`, which defines `ModelNew`,
or `kernel.{kind}`, which defines a C function with this signature:

```
{starter}
```

`/app/reference.py` holds the module to replace, so that you can compare results and times yourself.
"""
_TEST = """#!/bin/bash
# Judge what the agent left in {folder} and write reward.json. Without that file the machine was at fault: unscored.
cd /  # Python would import from the agent's folder, if that is where this starts
exec python3 -m kernelbench.integrations.harbor {problem} {conditions} \\
    --solution "${{KB_SOLUTION:-{folder}}}" --out "${{KB_VERIFIER:-/logs/verifier}}"
"""


class HarborError(Exception):
    """An export that is not possible; the message says what to do."""


@dataclass(frozen=True)
class Plan:
    """``judge`` is a wheel's path or a requirement of pip; ``track`` is ``kernels`` or ``open``."""

    judge: str
    device: str = "cuda"
    track: str = "kernels"
    image: str | None = None
    gpu_types: tuple[str, ...] = ()


def export(selector: str, out: Path, plan: Plan) -> list[Path]:
    """Write a task directory below ``out`` for each problem that ``selector`` names; return them.

    Raises HarborError where one exists already or the judge's wheel does not, and SelectorError.
    """
    if plan.judge.endswith(".whl") and not Path(plan.judge).is_file():
        raise HarborError(f"no such wheel: {plan.judge}. Build it in a checkout: pip wheel --no-deps -w dist .")
    written = []
    for file in suite.find(selector):
        folder = out / f"level{file.id.level}-{file.id.number:03d}-{file.name.replace('_', '-')}"
        if folder.exists():
            raise HarborError(f"{folder} exists: remove it, or name another --out")
        _write(folder, file, plan)
        written.append(folder)
    return written


def _write(folder: Path, file: ProblemFile, plan: Plan) -> None:
    problem = str(file.id)
    files = {
        "task.toml": _task_toml(file, folder.name, plan),
        "instruction.md": _instruction(problem, plan),
        "environment/Dockerfile": _agent_box(plan),
        "environment/reference.py": starting_point(file.path.read_text(encoding="utf-8")),
        "tests/Dockerfile": _judge_box(plan),
        "tests/test.sh": _TEST.format(folder=FOLDER, problem=problem, conditions=_conditions(plan)),
    }
    if plan.track == "open":
        program = tasks.seed_program(problem)
        files["solution/solve.sh"] = (
            f"#!/bin/bash\n# A copy of the reference: correct, and as fast as PyTorch.\n"
            f"mkdir -p \"${{KB_SOLUTION:-{FOLDER}}}\"\n"
            f"printf '%s' {shlex.quote(program)} >\"${{KB_SOLUTION:-{FOLDER}}}/kernel.py\"\n"
        )
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if path.suffix == ".sh":
            path.chmod(0o755)
    if plan.judge.endswith(".whl"):
        shutil.copy(plan.judge, folder / "tests")


def _conditions(plan: Plan) -> str:
    return f"--device {plan.device} --track {plan.track} --timeout {_STEP_S} --build-timeout {_BUILD_S}"


def _instruction(problem: str, plan: Plan) -> str:
    from kernelbench import starter  # imports torch

    kind = "cu" if plan.device == "cuda" else "cpp"
    how = _HOW.format(folder=FOLDER, kind=kind, starter=starter.source(problem, kind).strip())
    return f"{tasks.brief(problem, plan.device)}\n{how}"


def _task_toml(file: ProblemFile, name: str, plan: Plan) -> str:
    """Return the configuration; of TOML's strings only those that are JSON's as well are needed."""
    gpu = ["gpus = 1", *([f"gpu_types = {json.dumps(list(plan.gpu_types))}"] if plan.gpu_types else [])]
    box = ["cpus = 4", "memory_mb = 32768", "allow_internet = false", *(gpu if plan.device == "cuda" else [])]
    lines = [
        f"schema_version = {json.dumps(SCHEMA)}",
        f"artifacts = [{json.dumps(FOLDER)}]",
        "", "[task]", f"name = {json.dumps('kernelbench/' + name)}",
        f"description = {json.dumps(f'Write a fast kernel for problem {file.id}, {file.name}.')}",
        "", "[metadata]", f"problem = {json.dumps(str(file.id))}", f"track = {json.dumps(plan.track)}",
        "", "[agent]", f"timeout_sec = {_AGENT_S}",
        "", "[environment]", *box,
        "", "[verifier]", f"timeout_sec = {_VERIFIER_S}", 'environment_mode = "separate"',
        "", "[verifier.environment]", *box,
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _agent_box(plan: Plan) -> str:
    return f"FROM {plan.image or IMAGES[plan.device]}\n{_INSTALL[plan.device]}" + (
        f"COPY reference.py /app/reference.py\nRUN mkdir -p {FOLDER}\nWORKDIR /app\n"
    )


def _judge_box(plan: Plan) -> str:
    wheel = plan.judge.endswith(".whl")
    name = Path(plan.judge).name
    install = f"COPY {name} /tmp/\nRUN pip install --no-cache-dir /tmp/{name}\n" if wheel else (
        f"RUN pip install --no-cache-dir {shlex.quote(plan.judge)}\n"
    )  # fmt: skip
    base = f"FROM {plan.image or IMAGES[plan.device]}\n{_INSTALL[plan.device]}"
    return f"{base}{install}COPY test.sh /tests/test.sh\nRUN mkdir -p {FOLDER} /logs/verifier\n"
