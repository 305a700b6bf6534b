"""A reward for reinforcement learning: a candidate's source in, one number with its variance and its label out.

Safe to call from many processes and threads at once, however they were started: the
evaluator (``kernelbench.evaluator.client``) does the work. What is timed holds the device for
itself, so that concurrent calls do not spoil each other's times.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.problem.module import Problem
from harness.result import Result
from harness.solution.discover import SUFFIXES
from kernelbench.evaluator.client import Conditions, EvaluationError, Job, evaluate_all, problem_file
from kernelbench.metrics import outcomes, settled
from kernelbench.metrics.intervals import Interval, log_speedup_variance
from kernelbench.review import labels, rules

CORRECT = 0.3  # for being correct at all, so that a slow kernel is better than none
MAX_SPEEDUP = 10.0
MAX_SOURCE = 1 << 20  # characters


@dataclass(frozen=True)
class Reward:
    """The worth of one candidate.

    ``label`` is the result's status: ``ok``, or how the candidate failed (``build_error``, ``wrong_value``, ...).
    ``verdict``, ``settled_speedup`` and ``interval`` are those of ``kernelbench.metrics.settled``;
    None for a candidate that has no speedup.

    ``variance`` is that of ``value`` from the noise of the timing; 0 for a value that does not depend on it.
    """

    value: float
    variance: float
    label: str
    message: str  # for the author of the candidate
    result: Result
    verdict: str | None = None
    settled_speedup: float | None = None
    interval: Interval | None = None  # of the speedup, 95 %
    band: str = outcomes.UNREVIEWED  # the outcome of a review by measurements and rules, of a correct candidate


def reward(
    problem: str | Problem,
    source: str,
    *,
    kind: str = "py",
    max_speedup: float = MAX_SPEEDUP,
    exclude: Collection[str] = (),
    **conditions: Any,
) -> Reward:
    """Evaluate ``source`` and return what it is worth.

    The value of a correct candidate is 0.3 + min(settled speedup, max_speedup), where a tie
    counts as a speedup of 1; without a settled speedup (unstable, or no baseline could
    be timed) it is 0.3. The value of every failure is 0, rejected ones included. That is
    the reward of Kevin (Baronio et al., 2025), with a bound so that one outlier cannot
    rule a batch. The variance is speedup^2 Var(log speedup), by the delta method, from
    the interval of the speedup.

    ``exclude`` names outcome bands (``kernelbench.metrics.outcomes.BANDS``) that are worth nothing, as ``library_only``
    and ``sol_ceiling``; measurements and ``kernelbench.review.rules`` decide the band, no model is asked.

    ``kind`` is ``py``, ``cu`` or ``cpp``; ``conditions`` are those of ``kernelbench.evaluate``
    (``device``, ``workload``, ``precision``, ``timeout_s``, ``build_timeout_s``, ...).
    A failing candidate is a label, never an exception; so is a source that is no text, has
    more than 2^20 characters or cannot be encoded (``build_error``). A ``kb:`` comment in it is ignored.

    Raises
    ------
    ValueError
        For a problem, a kind, a band or a condition that does not exist.
    ProblemError
        Where the problem has no such workload.
    EvaluationError
        Where the machine or the reference is at fault: no policy should learn from that.
    """
    given, left_out = Conditions(**conditions), bands_of(exclude)
    (graded,) = _graded([job_of(problem, source, kind, given)], max_speedup, left_out, given)
    if isinstance(graded, EvaluationError):
        raise graded
    return graded


def rewards(
    candidates: Iterable[tuple[str | Problem, str] | Mapping[str, Any]],
    *,
    kind: str = "py",
    max_speedup: float = MAX_SPEEDUP,
    exclude: Collection[str] = (),
    **conditions: Any,
) -> list[Reward | EvaluationError]:
    """Evaluate a batch; return one entry for each candidate, in their order. Builds run side by side.

    A candidate is ``(problem, source)``, or a dictionary with ``problem``, ``source`` and,
    where it is another than that of the batch, ``kind``. Where the machine or the reference
    is at fault in one, its entry is the EvaluationError that ``reward`` would raise; the others keep
    their rewards. ``max_speedup``, ``exclude`` and ``conditions`` are those of ``reward``, for all.

    Raises ValueError and ProblemError as ``reward`` does, before anything is evaluated.
    """
    given, left_out = Conditions(**conditions), bands_of(exclude)
    jobs = []
    for index, candidate in enumerate(candidates):
        try:
            jobs.append(job_of(*fields_of(candidate, kind), given))
        except ValueError as error:
            raise ValueError(f"candidate {index}: {error}") from None
    return _graded(jobs, max_speedup, left_out, given)


def shaped(result: Result, max_speedup: float = MAX_SPEEDUP, exclude: Collection[str] = ()) -> Reward:
    """Return the reward of a result that exists already."""
    label = result.status.value
    if not result.correct:
        return Reward(0.0, 0.0, label, result.message, result)
    verdict, interval = settled.verdict(result), settled.interval(result)
    speedup, review = settled.settled_speedup(result), _review(result)
    known = (label, result.message, result, verdict, speedup, interval, review.band)
    if review.band in exclude:
        return Reward(0.0, 0.0, *known)
    if speedup is None:
        return Reward(CORRECT, 0.0, *known)
    value = CORRECT + min(speedup, max_speedup)
    variance = 0.0 if speedup >= max_speedup else speedup**2 * _log_variance(result)
    return Reward(value, variance, *known)


def _review(result: Result) -> labels.Label:
    """Return the label that measurements and rules give."""
    answer = rules.decide(result)
    return labels.labels([result], [answer] if answer else []).get(labels.key_of(result), labels.NONE)


def bands_of(exclude: Collection[str]) -> frozenset[str]:
    """Return the bands to exclude. Raises ValueError for a name that is none."""
    chosen = frozenset([exclude] if isinstance(exclude, str) else exclude)
    if unknown := sorted(chosen - set(outcomes.BANDS)):
        raise ValueError(f"exclude names no band: {', '.join(map(repr, unknown))}; use {', '.join(outcomes.BANDS)}")
    return chosen


def _log_variance(result: Result) -> float:
    """Return Var(log speedup); infinite where the record holds neither interval nor samples."""
    variance = log_speedup_variance(result)
    return math.inf if variance is None else variance


def _graded(
    jobs: list[Job], max_speedup: float, exclude: frozenset[str], conditions: Conditions
) -> list[Reward | EvaluationError]:
    ended = evaluate_all(jobs, conditions)
    return [shaped(one, max_speedup, exclude) if isinstance(one, Result) else one for one in ended]


def fields_of(candidate: tuple | Mapping[str, Any], kind: str) -> tuple[Any, Any, str]:
    """Return problem, source and kind of one entry of a batch."""
    if isinstance(candidate, Mapping):
        if not {"problem", "source"} <= set(candidate) <= {"problem", "source", "kind"}:
            raise ValueError(f"needs the keys problem, source and maybe kind, got {', '.join(map(str, candidate))}")
        return candidate["problem"], candidate["source"], candidate.get("kind", kind)
    if not isinstance(candidate, (tuple, list)) or len(candidate) != 2:
        raise ValueError(f"a candidate is (problem, source) or a dictionary, got {type(candidate).__name__}")
    return *candidate, kind


def job_of(
    problem: str | Problem, source: object, kind: str, conditions: Conditions, problem_dir: Path | None = None
) -> Job:
    """Return the evaluator's job for a source; one that is no source of a program is a job that fails.

    Raises ValueError for a problem or a kind that does not exist, ProblemError where the problem has no such workload.
    """
    if f".{kind}" not in SUFFIXES:
        raise ValueError(f"'{kind}' is no kind of solution; use one of py, cu, cpp")
    file = problem_file(problem, conditions, problem_dir)
    if fault := fault_of(source):
        return Job(file, kind=kind, fault=fault)
    return Job(file, source=source, kind=kind)


def fault_of(source: object) -> str:
    """Return why ``source`` is no source of a program; '' where it may be one."""
    if not isinstance(source, str):
        return f"the source must be text (str), got {type(source).__name__}"
    if len(source) > MAX_SOURCE:
        return f"the source has {len(source):,} characters; the most is {MAX_SOURCE:,}"
    try:
        source.encode()
    except UnicodeEncodeError as error:
        line = source.count("\n", 0, error.start) + 1
        return f"the source cannot be encoded as UTF-8: lone surrogate {ascii(source[error.start])} in line {line}"
    return ""
