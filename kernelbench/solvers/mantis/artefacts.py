"""Artefacts that the phases hand on to each other: records that are kept as JSON and as text."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from harness.result import Status

if TYPE_CHECKING:
    from kernelbench.solvers.task import Task


@dataclass(frozen=True)
class Measurement:
    """M. The best kernel so far, or PyTorch before there is one. Times in ms; ``profile`` as text for a model."""

    sample: int | None  # of the best correct attempt
    best_ms: float | None
    baseline_ms: float | None
    profile: str

    def to_markdown(self) -> str:
        best = "none is correct yet" if self.sample is None else f"attempt {self.sample}, {milliseconds(self.best_ms)}"
        return f"Best kernel: {best}\n\nPyTorch: {milliseconds(self.baseline_ms)}\n\n{self.profile}".strip()


@dataclass(frozen=True)
class Bottleneck:
    """One reason why a kernel is slower than the speed of light."""

    name: str
    evidence: str


@dataclass(frozen=True)
class Analysis:
    """A. The gap g = t_best / t_SOL (TF32), and what it is due to. None where there is no bound."""

    gap: float | None
    t_sol_ms: float | None
    bottlenecks: list[Bottleneck] = field(default_factory=list)
    summary: str = ""

    def to_markdown(self) -> str:
        if self.gap is None:
            lines = ["There is no speed-of-light bound for this device: the gap is not known."]
        else:
            lines = [f"Speed of light (TF32): {self.t_sol_ms:.4g} ms", f"Gap g = t_best / t_SOL: {self.gap:.3g}"]
        lines += [f"- {bottleneck.name}: {bottleneck.evidence}" for bottleneck in self.bottlenecks]
        return "\n".join([*lines, self.summary]).strip()


@dataclass(frozen=True)
class Hypothesis:
    """N. One proposal: what limits the kernel, what to change, and why that should help.

    ``expected_speedup`` is over the best kernel; risks are from 1 (safe) to 5 (most likely to fail). ``roi`` is
    triage's.
    """

    id: str
    name: str
    cause: str
    change: str
    expected_speedup: float
    implementation_risk: float
    performance_risk: float
    roi: float | None = None

    def to_markdown(self) -> str:
        roi = "" if self.roi is None else f", ROI {self.roi:.3g}"
        return (
            f"### {self.id}: {self.name}\n\nCause: {self.cause}\n\nChange: {self.change}\n\nExpected speedup "
            f"{self.expected_speedup:g}, risk of implementation {self.implementation_risk:g}, of performance "
            f"{self.performance_risk:g}{roi}"
        )


@dataclass(frozen=True)
class Outcome:
    """I. What became of a hypothesis: its attempts, and the best time among them against the one before."""

    hypothesis: Hypothesis
    samples: list[int]
    statuses: list[str]
    before_ms: float | None
    best_ms: float | None

    @property
    def speedup(self) -> float | None:
        """Return the time before over the best time of these attempts; None where either is unknown."""
        return self.before_ms / self.best_ms if self.before_ms and self.best_ms else None

    def to_markdown(self) -> str:
        speedup = "no time to compare with" if Status.OK in self.statuses else "nothing correct"
        if self.speedup is not None:
            speedup = f"{self.speedup:.3g}x ({self.before_ms:.4g} ms to {self.best_ms:.4g} ms)"
        attempts = ", ".join(f"{s}: {status}" for s, status in zip(self.samples, self.statuses))
        return (
            f"### {self.hypothesis.id}: {self.hypothesis.name}\n\nExpected {self.hypothesis.expected_speedup:g}x, "
            f"got {speedup}\n\nAttempts: {attempts or 'none'}"
        )


@dataclass(frozen=True)
class Summary:
    """S. What an iteration taught: ``lessons`` that other problems can use, and ``next`` for this one."""

    lessons: list[str] = field(default_factory=list)
    next: str = ""

    def to_markdown(self) -> str:
        return "\n".join([*(f"- {lesson}" for lesson in self.lessons), self.next]).strip() or "Nothing was learned."


def milliseconds(ms: float | None) -> str:
    """Return a time as text; a workload may be one that is not timed."""
    return "time unknown" if ms is None else f"{ms:.4g} ms"


def keep(task: Task, iteration: int, name: str, record: Any) -> None:
    """Write what a phase made, one record or a list of them, as JSON and as text.

    A model wrote most of it: as a Markdown file it would have a viewer fetch pictures and a forge tell people.
    """
    records = record if isinstance(record, list) else [record]
    data = [asdict(one) for one in records]
    text = "\n\n".join(one.to_markdown() for one in records)
    title = name.partition("_")[2].capitalize()
    folder = f"iteration_{iteration}"
    task.keep(f"{folder}/{name}.json", json.dumps(data if isinstance(record, list) else data[0], indent=2) + "\n")
    task.keep(f"{folder}/{name}.txt", f"# {title}: {task.id} {task.name}, iteration {iteration}\n\n{text}\n")
