"""Figures of the service for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from harness.result import Result
from kernelbench.service.store import QUEUED, RUNNING

_WAITS_S = (0.1, 1, 5, 15, 60, 300, 1800)
_TAKES_S = (0.5, 1, 2, 4, 8, 16, 60, 300)


class Metrics:
    """The figures; ``counts`` tells how many submissions are queued and how many run."""

    def __init__(self, counts: Callable[[], dict[str, int]]):
        self._registry = registry = CollectorRegistry()
        # Not by client: each of them may read this.
        self.accepted = Counter("kb_submissions_accepted", "Submissions accepted.", registry=registry)
        self.refused = Counter("kb_requests_refused", "Requests refused, by code.", ["code"], registry=registry)
        self.answers = Counter("kb_answers", "Evaluations that ended, by status.", ["status"], registry=registry)
        self.waited = Histogram("kb_wait_seconds", "Time in the queue.", buckets=_WAITS_S, registry=registry)
        self.took = Histogram(
            "kb_evaluation_seconds", "Build and evaluation together.", buckets=_TAKES_S, registry=registry
        )
        self.stages = Counter("kb_stage_seconds", "Time of evaluations by stage.", ["stage"], registry=registry)
        for state in (QUEUED, RUNNING):
            gauge = Gauge(f"kb_submissions_{state}", f"Submissions {state}.", registry=registry)
            gauge.set_function(lambda state=state: counts()[state])

    def evaluated(self, result: Result) -> None:
        """Count the stages of one evaluation."""
        self.stages.labels("build").inc((result.build or {}).get("seconds") or 0.0)
        for stage, seconds in result.stages_s.items():
            self.stages.labels(stage).inc(seconds)

    def text(self) -> bytes:
        """Return all of them in Prometheus' text format."""
        return generate_latest(self._registry)
