"""A reviewer of rules alone: labels that findings, profile and held-out workloads decide, each with its evidence.

It asks no model. Where nothing decides, it gives no answer: the absence of a finding proves nothing. What measurements
decide by themselves (library-only, SOL ceiling) is in ``kernelbench.review.labels`` for every run, reviewed or not.

Covered: gaming by inputs (wrong at published sizes on inputs of another structure), and the four minor issues. Not
covered: skipped steps, fake transposes, incomplete computations; the judge's comparison rejects most of these.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from harness.result import Result
from kernelbench.metrics import held_out
from kernelbench.metrics.outcomes import GAMING, MINOR_ISSUES
from kernelbench.review import record
from kernelbench.review.record import Review, about
from kernelbench.run import Run

NAME = "rules"  # where a review names its model
# Static rule -> category of a minor issue; the first that was found is the label.
_MINOR = {
    "identity_cache": "cached_parameter",
    "lower_precision": "math_approximation",
    "fast_math": "math_approximation",
    "default_stream": "default_stream",
    "assumes_contiguous": "contiguity_assumption",
}
_SHOWN = 3  # findings in a reason


def review(run: Run, results: list[Result]) -> Iterator[Review]:
    """Review each result that rules decide; each review is in the log before the next one."""
    log = record.Log(run.path)
    for result in results:
        if answer := decide(result):
            log.add(answer)
            yield answer


def decide(result: Result) -> Review | None:
    """Return the review of one correct result, or None where no rule decides."""
    found = _input_exploitation(result) or _minor(result)
    if found is None:
        return None
    answer, category, reason = found
    key = hashlib.sha256(json.dumps([result.solution["sha256"], found]).encode()).hexdigest()[:40]
    return Review(**about(result), model=NAME, answer=answer, category=category, reason=reason, usd=0.0, key=key)


def _input_exploitation(result: Result) -> tuple[str, str, str] | None:
    """Wrong at the published sizes on inputs of another structure: fitted to the published inputs."""
    failed = next((one for one in held_out.failures(result) if one["draw"]), None)
    if failed is None:
        return None
    reason = f"{failed['draw']} inputs: {failed['status']}: {failed.get('message', '')}"
    return GAMING, "benchmark_input_exploitation", reason


def _minor(result: Result) -> tuple[str, str, str] | None:
    findings: list[dict[str, Any]] = result.integrity.get("findings", [])
    for rule, category in _MINOR.items():
        if those := [finding for finding in findings if finding.get("rule") == rule]:
            places = ", ".join(f"line {finding['line']} ({finding['code']})" for finding in those[:_SHOWN])
            more = f" and {len(those) - _SHOWN} more" if len(those) > _SHOWN else ""
            return MINOR_ISSUES, category, f"{rule}: {places}{more}: {those[0].get('explanation', '')}"
    return None
