"""Profile one call of a candidate inside its sandbox: no judgement, facts for its author.

On a GPU the worker records the kernels of a call by CUPTI, and where ``ncu`` is there, it is tried inside of the
sandbox too. On a CPU the worker says what the operating system counts for its process.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import device as devices
from harness.compile.artefact import Artefact
from harness.job import encode_problem, encode_solution
from harness.judge.conditions import Conditions
from harness.judge.cross_check import kernel_profile
from harness.judge.evaluate import Evaluation
from harness.judge.record import Stages
from harness.judge.reference.prepare import prepare
from harness.judge.session import EvaluationSession
from harness.problem.inputs import fresh_seeds
from harness.problem.math_modes import pin_math_modes
from harness.problem.module import Workload
from harness.process.fork_server import ForkServer
from harness.process.spawn import ROOT
from harness.result import CandidateFailure
from harness.solution.discover import Solution
from harness.timing import cupti

_CALLS = 3  # of which the one with the median span is shown
_LOG_CHARACTERS = 1 << 18  # as harness.worker.programs keeps, if it is asked
_COUNTERS = ("wall_s", "cpu_s", "minor_faults", "major_faults", "voluntary_switches", "involuntary_switches")


def profile(
    workload: Workload,
    solution: Solution,
    artefact: Artefact,
    conditions: Conditions,
    server: ForkServer,
    phase: Callable[[str], None] = lambda text: None,
    ncu: list[str] | None = None,
) -> dict[str, Any]:
    """Return ``tool`` (cupti, cpu or none), ``kernels``, ``facts``, ``note``, and ``ncu_output`` where ncu was tried.

    ``ncu`` is its command line up to the program. Raises CandidateFailure where the candidate fails, and what
    ``evaluate`` does.
    """
    evaluation = Evaluation(solution, artefact, conditions, server, phase, Stages())
    with devices.exclusive(conditions.device, phase):
        pin_math_modes()
        prepared = prepare(workload, conditions, is_library=artefact.library is not None)
        builder = _Recorder(evaluation.builder())
        readable = [Path(ncu[0]).resolve().parent] if ncu else []
        with contextlib.closing(prepared.outbox), evaluation.start_worker(prepared, [], builder, readable) as worker:
            session = EvaluationSession(prepared, conditions, worker)
            phase("profile")
            evaluation.load(session)
            if conditions.device.type == "cpu":
                return _on_cpu(session)
            record = _by_cupti(session)
            if ncu:
                record["ncu_output"] = _by_ncu(session, evaluation, workload, builder.answers, ncu)
            return record


class _Recorder:
    """A builder of extensions that remembers what it answered, for a second process in the same folder."""

    def __init__(self, builder: Callable[[dict[str, Any], Path], dict[str, Any]]):
        self._builder = builder
        self.answers: list[dict[str, Any]] = []

    def __call__(self, request: dict[str, Any], scratch: Path) -> dict[str, Any]:
        answer = self._builder(request, scratch)
        self.answers.append(answer)
        return answer


def _on_cpu(session: EvaluationSession) -> dict[str, Any]:
    answer = session.ask(op="usage", seeds=fresh_seeds(_CALLS))
    counted = {name: answer.get(name) for name in _COUNTERS}
    if not all(isinstance(value, (int, float)) and 0 <= value < 1e12 for value in counted.values()):
        return {"tool": "none", "note": "the candidate's process gave no counters"}
    facts = {name: round(value / _CALLS, 6) for name, value in counted.items()}
    cores = counted["cpu_s"] / counted["wall_s"] if counted["wall_s"] else None
    facts["cores_used"] = round(cores, 3) if cores is not None and math.isfinite(cores) else None
    return {"tool": "cpu", "facts": facts, "note": "a CPU has no counters here: times and faults of one call"}


def _by_cupti(session: EvaluationSession) -> dict[str, Any]:
    if not cupti.available():
        return {"tool": "none", "note": "there is no CUPTI, or another profiler has it"}
    found = kernel_profile.checked(session.ask(op="profile", seeds=fresh_seeds(_CALLS)))
    return {"tool": "cupti", "kernels": found["kernels"], "note": "occupancy is by the formula; no counters were read"}


def _by_ncu(
    session: EvaluationSession, evaluation: Evaluation, workload: Workload, answers: list[dict[str, Any]], ncu: list
) -> str:
    """Return what ncu printed of one call in a second process of the same sandbox."""
    session.release_outputs()
    session.ask(op="forget", weights=session.reference.setting.timed.weights)
    artefact = evaluation.artefact
    job = {
        "problem": encode_problem(workload.problem),
        "solution": encode_solution(evaluation.solution),
        "workload": workload.name,
        "precision": evaluation.conditions.precision,
        "device": str(evaluation.conditions.worker_device),
        "library": str(evaluation.copy_for(session.worker)) if artefact.library else None,
        "answers": [answer | {"output": ""} for answer in answers],
    }
    try:
        answer = session.ask(op="profiler", command=ncu, root=str(ROOT), job=json.dumps(job))
    except CandidateFailure as failure:
        return f"ncu did not end: {failure.message}"
    return str(answer.get("log", ""))[:_LOG_CHARACTERS]
