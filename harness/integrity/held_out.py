"""Evaluate a candidate on held-out workloads, after it was found correct on the published one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from harness.baselines import EAGER
from harness.faults import MachineFault, NoRoom
from harness.judge.conditions import Conditions
from harness.problem.held_out import HeldOut, held_out
from harness.problem.module import ProblemError, Workload
from harness.result import Result, first_line

_SPARE = 3  # draws for each that is wanted, where the reference does not take some


def evaluate_held_out(
    workload: Workload, count: int, seed: int, conditions: Conditions,
    evaluate: Callable[[Workload, Conditions], Result],
) -> list[dict[str, Any]]:  # fmt: skip
    """Return what became of a candidate on ``count`` held-out workloads; fewer where the problem has no more.

    One that the reference does not take, or that does not fit the memory, is replaced by the next: that is found
    before the candidate starts. Where the machine fails, that is raised, and the whole evaluation is tried again: a
    candidate may have made it, where it would have been found out. So is MachineFault where none fits the memory.
    """
    found: list[dict[str, Any]] = []
    no_room: NoRoom | None = None
    for draw, one in enumerate(held_out(workload, seed)):
        if len(found) == count or draw == _SPARE * count:
            break
        # nobody has stored a baseline of sizes that were just drawn
        held = dataclasses.replace(conditions, structure=one.draw, baselines=conditions.baselines or (EAGER,))
        other = workload.with_sizes(one.changed)
        try:
            found.append(_entry(one, evaluate(other, held)))
        except ProblemError:
            continue
        except NoRoom as error:
            no_room = error
    if no_room and not found:
        raise MachineFault(f"no held-out workload could be evaluated: {no_room}") from no_room
    return found


def _entry(one: HeldOut, result: Result) -> dict[str, Any]:
    """Return the part of a record that says whether the candidate keeps its verdict; times in ms."""
    baseline = next((timing for timing in result.baselines.values() if "speedup" in timing), {})
    return {
        **dataclasses.asdict(one),
        "status": result.status.value,
        "rule": result.rule,
        "message": first_line(result.message),
        "median_ms": (result.timing or {}).get("median_ms"),
        "baseline_ms": baseline.get("median_ms"),
        "speedup": result.speedup,
        "verdict": baseline.get("verdict"),
        "interval": baseline.get("interval"),
    }
