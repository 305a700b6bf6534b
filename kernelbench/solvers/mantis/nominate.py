"""N, Nominate: several causal hypotheses, fed by the analysis and by what was learned before."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from kernelbench.solvers.log.journal import Note
from kernelbench.solvers.mantis import prompts
from kernelbench.solvers.mantis.artefacts import Analysis, Hypothesis, Measurement, Summary, keep
from kernelbench.solvers.model.json_answers import Malformed, ask_json

if TYPE_CHECKING:
    from kernelbench.solvers.mantis.settings import MantisSettings
    from kernelbench.solvers.task import Task

RISKS = (1.0, 5.0)  # safe, most likely to fail; the paper names no scale
_MOST_SPEEDUP = 1000.0  # beyond is no estimate


def run(
    task: Task,
    settings: MantisSettings,
    iteration: int,
    measured: Measurement,
    analysis: Analysis | None,
    learned: list[Summary],
) -> list[Hypothesis]:
    """Return hypotheses in the model's order; a general one where none can be read."""
    notes = recalled(task, settings.recall) if settings.has("memory") else []
    asked = prompts.nominate(task, settings, measured, analysis, learned, notes)
    found = ask_json(
        task, asked, lambda data: read(data, iteration), repairs=settings.repairs, **settings.sampling
    )
    hypotheses = found or [general(iteration)]
    keep(task, iteration, "3_nominate", hypotheses)
    return hypotheses


def recalled(task: Task, most: int) -> list[Note]:
    """Return notes of other problems: those with more operators in common first, of equals the latest."""
    operators = _operators(task)
    notes = task.memory.read(own=False)

    def order(indexed: tuple[int, Note]) -> tuple[int, int]:
        index, note = indexed
        return len(operators & set(note.data.get("operators", []))), index

    return [note for _, note in sorted(enumerate(notes), key=order, reverse=True)[:most]]


def read(data: dict[str, Any], iteration: int) -> list[Hypothesis]:
    """Return the hypotheses of a model's answer; raises Malformed."""
    listed = data["hypotheses"]
    if not isinstance(listed, list) or not listed:
        raise Malformed("'hypotheses' must be a list with at least one hypothesis")
    return [_hypothesis(one, f"h{iteration}.{number}") for number, one in enumerate(listed, 1)]


def general(iteration: int, number: int = 0) -> Hypothesis:
    """Return what is tried where there is no hypothesis: free improvement."""
    return Hypothesis(
        f"h{iteration}.free{number}", "free improvement", "No cause was named.",
        "Make the kernel correct, then faster, in whatever way seems best.", 1.0, 1.0, 1.0,
    )  # fmt: skip


def _hypothesis(data: dict[str, Any], name: str) -> Hypothesis:
    return Hypothesis(
        name,
        str(data["name"]),
        str(data["cause"]),
        str(data["change"]),
        _number(data, "expected_speedup", (0.0, _MOST_SPEEDUP)),
        _number(data, "implementation_risk", RISKS),
        _number(data, "performance_risk", RISKS),
    )


def _number(data: dict[str, Any], name: str, within: tuple[float, float]) -> float:
    value = data[name]
    low, high = within
    number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    if not (low <= number <= high and number > 0):
        raise Malformed(f"{name} must be a number from {low:g} to {high:g} above 0, not {value!r}")
    return number


def _operators(task: Task) -> set[str]:
    return {row["name"] for row in task.bounds.operators}
