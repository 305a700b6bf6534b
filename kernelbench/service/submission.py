"""A submission: what a client sends, checked; and what is stored of it."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.problem.module import ProblemError
from kernelbench.evaluator.client import Conditions, Job
from kernelbench.rl import job_of
from kernelbench.suite import SelectorError

MAX_PRIORITY = 9
MAX_TIMEOUT_S = 900.0  # of one step or one build: as long as `kb eval` gives a build
_ID = re.compile(r"[0-9a-f]{32}")
_MOST_OF_A_FAULT = 2000  # characters; one of megabytes is more than the evaluator takes
_FIELDS = {"id", "problem", "source", "kind", "fault", "priority", "conditions"}
_CONDITIONS = {"device", "workload", "precision", "timeout_s", "build_timeout_s", "baselines", "cv_target", "clock_mhz"}
_CONDITIONS |= {"track"}


class BadSubmission(ValueError):
    """A submission that cannot be accepted; ``code`` is a word for programs."""

    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Submission:
    """One candidate of one client. ``group`` is the same for those that one judge can evaluate in turn."""

    id: str
    client: str
    priority: int
    group: str
    job: dict[str, Any]


@dataclass(frozen=True)
class Intake:
    """Scope of this service: problems of ``problem_dir`` on devices of one type."""

    device_type: str
    device: str | None
    problem_dir: Path | None = None
    executor: str = "local"
    address: str | None = None

    def accept(self, body: Any, client: str) -> Submission:
        """Return the submission in a request's body. Raises BadSubmission."""
        if not isinstance(body, dict) or not set(body) <= _FIELDS:
            known = ", ".join(sorted(_FIELDS))
            raise BadSubmission("bad_submission", f"a submission is an object with the keys {known}")
        name, priority = body.get("id"), body.get("priority", 0)
        if not isinstance(name, str) or not _ID.fullmatch(name):
            raise BadSubmission("bad_id", "id must be 32 hexadecimal digits, new for each submission")
        if not isinstance(priority, int) or isinstance(priority, bool) or not 0 <= priority <= MAX_PRIORITY:
            raise BadSubmission("bad_priority", f"priority must be an integer from 0 to {MAX_PRIORITY}")
        if not _is_text({key: body.get(key) for key in ("problem", "kind", "conditions")}):
            raise BadSubmission("bad_submission", "problem, kind and conditions must be text that UTF-8 can encode")
        job = {key: body.get(key) for key in ("problem", "source", "kind", "fault", "conditions")}
        _, conditions = self.job(job)
        return Submission(name, client, priority, _group(conditions), job)

    def job(self, stored: dict[str, Any]) -> tuple[Job, Conditions]:
        """Return the evaluator's job and conditions for what ``accept`` stored. Raises BadSubmission."""
        conditions = self._conditions(stored["conditions"] or {})
        if not isinstance(stored["problem"], str) or not isinstance(stored["kind"], str):
            raise BadSubmission("bad_submission", "problem and kind must be text")
        try:
            job = job_of(stored["problem"], stored["source"], stored["kind"], conditions, self.problem_dir)
        except SelectorError as error:
            raise BadSubmission("unknown_problem", str(error)) from None
        except (ValueError, ProblemError) as error:
            code = "no_workload" if isinstance(error, ProblemError) else "bad_submission"
            raise BadSubmission(code, str(error)) from None
        if fault := stored["fault"]:
            job = Job(job.problem, kind=job.kind, fault=str(fault)[:_MOST_OF_A_FAULT])
        return job, conditions

    def _conditions(self, given: Any) -> Conditions:
        if not isinstance(given, dict) or not set(given) <= _CONDITIONS:
            known = ", ".join(sorted(_CONDITIONS))
            raise BadSubmission("bad_conditions", f"conditions are an object with the keys {known}")
        device = given.get("device")
        if device is not None and str(device).partition(":")[0] != self.device_type:
            raise BadSubmission("other_device", f"this service evaluates on {self.device_type}, not on {device}")
        for name in ("timeout_s", "build_timeout_s"):
            if isinstance(given.get(name), (int, float)) and given[name] > MAX_TIMEOUT_S:
                raise BadSubmission("bad_conditions", f"{name} must be at most {MAX_TIMEOUT_S:g}, got {given[name]}")
        try:
            own = {"device": self.device, "executor": self.executor, "address": self.address}
            return Conditions(**{**given, **own})
        except (TypeError, ValueError) as error:
            raise BadSubmission("bad_conditions", str(error)) from None


def _group(conditions: Conditions) -> str:
    """Return a digest of all conditions but the workload, which a judge takes with each job."""
    decisive = {key: value for key, value in conditions.to_json().items() if key != "workload"}
    return _digest(json.dumps(decisive, sort_keys=True))


@functools.lru_cache(maxsize=256)
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _is_text(values: dict[str, Any]) -> bool:
    """Return whether all text in a request can be told and stored: JSON may hold lone surrogates."""
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
