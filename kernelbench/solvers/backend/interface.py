"""The seam below ``Task``: facts about a problem, a backend that measures candidates, and a model.

Everything that a solver can reach goes through ``Task`` and ``task.llm``, and these use three collaborators only:

- ``ProblemFacts``: id, source and bounds of a problem. ``problem_facts.SuiteProblem`` is one of the suite.
- ``Backend``: builds, checks, times and profiles. ``local.LocalBackend`` does so on this machine.
- the model of ``Llm``: ``model``, ``base_url``, ``fields``, ``sampling(asked)``, ``cost_usd(prompt_tokens,
  completion_tokens)`` and ``complete(messages, sampling, about)``, as ``kernelbench.endpoint.Endpoint`` has them.
  ``about`` names the problem, the number of the call and its tags: enough to seed a simulated answer.

``session.run`` takes the three and a ``Journal``, which without a folder is kept in memory. A simulation
implements them, and every strategy runs on it unchanged. Nothing in this module or in ``session`` imports
PyTorch, starts a process or reads a clock for a result.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

from harness.result import CandidateFailure, Result


@dataclass(frozen=True)
class Bounds:
    """Bounds of one call as numbers. Times in ms; None where the device is in no table.

    ``t_sol_ms`` is under TF32 (for guidance), ``t_sol_fp16_ms`` under FP16 (for schedules and integrity), ``floor_ms``
    what no honest kernel beats. ``bottleneck`` is ``compute`` or ``memory``. ``operators`` has a record for each
    operator: number, name, inputs, output, dtype, flops, live_share, bytes. Over several workloads times and work are
    sums, and operators those of the first.
    """

    t_sol_ms: float | None = None
    t_sol_fp16_ms: float | None = None
    floor_ms: float | None = None
    bottleneck: str | None = None
    bottleneck_fp16: str | None = None
    flops: float | None = None
    bytes: float | None = None
    sm_clock_mhz: float | None = None
    clock: str | None = None  # observed, given or rated
    operators: list[dict[str, Any]] = field(default_factory=list)
    unavailable: str = ""  # why there are none


@dataclass(frozen=True)
class Profile:
    """Profile of one call of a candidate, merged over its kernels by their share of the time.

    ``tool`` is where the figures are from: ``ncu`` (counters), ``cupti`` (times and launch parameters, occupancy by the
    formula) or ``cpu`` (what the operating system counts). A figure that the tool does not give is None. Percentages
    are of the device's peak. ``compute_percent`` and ``bandwidth_percent`` are derived from the time: the least work of
    the problem over the time, of the peak.
    """

    tool: str
    sm_percent: float | None = None
    dram_percent: float | None = None
    l2_percent: float | None = None
    occupancy_percent: float | None = None  # achieved with ncu, theoretical with CUPTI
    registers: float | None = None  # a thread
    shared_bytes: float | None = None  # a block
    block_size: float | None = None  # threads
    compute_percent: float | None = None
    bandwidth_percent: float | None = None
    kernels: list[dict[str, Any]] = field(default_factory=list)  # the same by kernel, what takes longest first
    facts: dict[str, Any] = field(default_factory=dict)  # of a CPU: cores used, page faults, ...
    note: str = ""  # why there is no more

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Profile:
        """Inverse of ``to_json``; fields that this version does not know are left out."""
        known = {f.name for f in fields(cls)}
        return cls(**{key: value for key, value in record.items() if key in known})


@dataclass(frozen=True)
class Trial:
    """Result of a build or a check, which spends no attempt: ``ok``, or the status and message of the failure."""

    status: str
    message: str = ""

    @property
    def ok(self) -> bool:
        return self.status == "ok"


@dataclass(frozen=True)
class Work:
    """One candidate for a backend. ``failure`` is why it failed already; ``path`` its file, None without a disk."""

    problem: str
    sample: int  # 0 for a trial
    kind: str
    source: str
    path: Path | None = None
    failure: CandidateFailure | None = None
    phase: Callable[[str], None] = lambda text: None  # told building, built, judging, and '' at the end


class ProblemFacts(Protocol):
    """One problem as a task shows it. What else a real one has (``problem``, ``signature``, ``trace``) is extra."""

    id: str  # LEVEL/NUMBER
    name: str
    source: str  # as a model is shown it
    precision: str
    sizes: dict[str, Any]
    workload_names: list[str]  # an attempt has a result for each, up to the first that fails
    limits: Any  # harness.sol.hardware.Limits, or None

    def bounds(self, conditions: dict[str, Any]) -> Bounds:
        """Return the bounds at the clock of a result's ``conditions``; {} before the first result."""

    def sol_report(self, conditions: dict[str, Any]) -> str:
        """Return the same as Markdown; '' without bounds."""


class Backend(Protocol):
    """Backend that measures the candidates of one run. Methods may be called from several threads."""

    device: dict[str, Any]  # as results record it

    def evaluate(self, work: Work) -> Future[list[Result]]:
        """Start an evaluation; the future has a result for each workload, or raises ``Unevaluated``."""

    def build(self, work: Work) -> Trial:
        """Build only."""

    def check(self, work: Work) -> Trial:
        """Build, load and compare outputs; no timing."""

    def profile(self, work: Work, result: Result) -> Profile:
        """Profile one call of a candidate that was evaluated with ``result``."""

    def baseline(self, problem: str) -> dict[str, Any]:
        """Return ``median_ms`` of the first baseline, its ``name``, and ``error`` where it does not run."""
