"""The prompt of a task: instructions, examples, hardware, the problem, bounds, and the form of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from kernelbench.endpoint import Message
from kernelbench.solvers.prompting.prompts import FEW_SHOT

CONTEXTS = ("few_shot", "hardware", "sol")


class Task(Protocol):
    """The part of a ``kernelbench.solvers.task.Task`` that prompts are made of."""

    facts: Any
    settings: Any
    limits: Any
    conditions: Any
    clock: Any
    source: str
    hardware: str
    sol: str
    device: Mapping[str, Any]
    sizes: Mapping[str, Any]

    def option(self, name: str, default: str) -> str:
        """Return a setting of the solver."""

    def render(self, name: str, **values: object) -> str:
        """Return a prompt's text with these values in it."""


def prompt(task: Task, further: tuple[str, ...]) -> list[Message]:
    """Return ``Task.prompt``: one message of the user."""
    wanted = [part for part in task.option("context", "").split(",") if part]
    if unknown := set(wanted) - set(CONTEXTS):
        raise ValueError(f"--set context={','.join(sorted(unknown))}: the parts are {', '.join(CONTEXTS)}")
    wanted += ["hardware"] if _named_hardware(task) else []
    on_gpu = task.device["type"] == "cuda" or bool(_named_hardware(task))
    target = task.limits.title if _named_hardware(task) else task.device["name"]
    prompts, start = task.settings.prompts, task.settings.starting_kernel
    if functions := getattr(task.facts, "functions", []):
        return _of_functions(task, ", ".join(f"`{name}`" for name in functions), target, further)
    parts = [
        task.render("task" if on_gpu else "task_cpu", device=target),
        prompts.example("add", "solution" if on_gpu else "solution_cpu"),
        *([prompts.example(name) for name in FEW_SHOT] if "few_shot" in wanted else []),
        *([task.hardware] if "hardware" in wanted else []),
        task.render("problem", reference=task.source.strip(), sizes=sizes_of(task)),
        *([task.render("start", kind=start[0], source=start[1].strip())] if start else []),
        *([task.sol] if "sol" in wanted else []),
        *further,
        task.render("form"),
    ]
    return _message(parts)


def _of_functions(task: Task, functions: str, target: str, further: tuple[str, ...]) -> list[Message]:
    """Return the prompt of a problem that is a file of functions, such as one of TritonBench."""
    return _message([
        task.render("task_functions", device=target, functions=functions),
        task.render("problem", reference=task.source.strip(), sizes="several shapes"),
        *further,
        task.render("form_functions", functions=functions),
    ])  # fmt: skip


def _message(parts: list[str]) -> list[Message]:
    return [{"role": "user", "content": "\n\n".join(part for part in parts if part)}]


def hardware(task: Task) -> str:
    """Return ``Task.hardware``."""
    if task.limits is None:
        return ""
    from kernelbench.solvers.prompting.hardware import facts

    return task.render("hardware", **facts(task.limits, None if _named_hardware(task) else task.device))


def sol(task: Task) -> str:
    """Return ``Task.sol``."""
    if not (report := task.facts.sol_report(task.conditions)):
        return ""
    from kernelbench.solvers.prompting.hardware import clock_text

    said = clock_text(task.clock, at_hand=not _named_hardware(task)) if task.limits else ""
    return task.render("sol", clock=said, report=report)


def _named_hardware(task: Task) -> str:
    return task.option("hardware", "")


def sizes_of(task: Task) -> str:
    """Return the sizes of each workload that is evaluated, as text."""
    workloads: list[Any] = getattr(task.facts, "workloads", [])
    if len(workloads) > 1:
        return "; and ".join(f"{workload.name}: {_sizes(workload.sizes)}" for workload in workloads)
    return _sizes(task.sizes)


def _sizes(sizes: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sizes.items()) or "as in the module"
