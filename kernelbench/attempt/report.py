"""The JSON object of one attempt, as ``schema.json`` beside this file describes it."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from harness.result import Result
from kernelbench import __version__
from kernelbench.attempt.first_error import first_error
from kernelbench.attempt.hint import hint
from kernelbench.metrics import fast_p, settled

FORMAT = 1
NOT_EVALUATED = "not_evaluated"  # the status where the request or the machine is at fault
CORRECT, NOT_CORRECT, WRONG_USAGE, UNFIT = 0, 1, 2, 3  # exit statuses


@functools.cache
def schema() -> dict[str, Any]:
    """Return the JSON schema (2020-12) of an attempt."""
    return json.loads(Path(__file__).with_name("schema.json").read_text())


def of_result(result: Result, file: str, wall_s: float | None = None) -> dict[str, Any]:
    """Return the attempt of an evaluated file.

    Parameters
    ----------
    file
        The path as its author named it.
    wall_s
        Seconds that the author waited; None where nobody measured them.
    """
    baseline_name, baseline = fast_p.baseline_of(result) or (None, {})
    found = settled.interval(result)
    return {
        **_blank(file),
        "exit_status": CORRECT if result.correct else NOT_CORRECT,
        "problem": result.problem,
        "problem_name": result.problem_name,
        "workload": result.workload.get("name"),
        "precision": result.precision,
        "kind": result.solution["kind"],
        "language": result.solution["language"],
        "sha256": result.solution["sha256"],
        "device": result.device.get("name"),
        "status": result.status.value,
        "correct": result.correct,
        "verdict": settled.verdict(result),
        "speedup": settled.settled_speedup(result) if result.correct else None,
        "interval": list(found) if found else None,
        "measured_speedup": result.speedup,
        "baseline": baseline_name,
        "time_ms": (result.timing or {}).get("median_ms"),
        "baseline_ms": (baseline or {}).get("median_ms"),
        "percent_of_sol": (result.sol or {}).get("percent_of_sol"),
        "error": first_error(result),
        "hint": hint(result),
        "seconds": _seconds(result, wall_s),
    }


def not_evaluated(
    reason: str, file: str, exit_status: int, problem: str | None = None, wall_s: float | None = None
) -> dict[str, Any]:
    """Return the attempt of a file that was not evaluated: ``exit_status`` is WRONG_USAGE or UNFIT."""
    advice = "Correct the call; the file was not judged."
    if exit_status == UNFIT:
        advice = "The machine is at fault, not the file: run `kb doctor`, or try again."
    seconds = {"total": wall_s, "build": None, "wait": None, "time": None, "overhead": None}
    error = {"text": reason.strip().partition("\n")[0], "line": None, "rule": None, "message": reason}
    return {
        **_blank(file), "exit_status": exit_status, "problem": problem, "error": error, "hint": advice,
        "seconds": seconds,
    }  # fmt: skip


def _blank(file: str) -> dict[str, Any]:
    unknown = dict.fromkeys(schema()["required"])
    known = {"format": FORMAT, "kernelbench": __version__, "file": file, "status": NOT_EVALUATED, "correct": False}
    return unknown | known


def _seconds(result: Result, wall_s: float | None) -> dict[str, float | None]:
    """Return where the time went; ``overhead`` is all but building, waiting for the device, checking and timing."""
    build, wait = (result.build or {}).get("seconds"), result.stages_s.get("wait", 0.0)
    timed = sum(result.stages_s.get(stage, 0.0) for stage in ("check", "time", "cross_check"))
    total = result.seconds if wall_s is None else round(wall_s, 3)
    return {
        "total": total,
        "build": build,
        "wait": round(wait, 3),
        "time": round(timed, 3),
        "overhead": round(max(0.0, total - (build or 0.0) - wait - timed), 3),
    }
