"""Settings of MANTIS, each one ``--set name=value``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelbench.solvers.mantis.representations import REPRESENTATIONS, Representation
from kernelbench.solvers.plan import SolverError

if TYPE_CHECKING:
    from kernelbench.solvers.task import Task

FLAT, IN_PROMPT, ORCHESTRATED = "flat", "in-prompt", "orchestrated"
FORMS = (FLAT, IN_PROMPT, ORCHESTRATED)
# Table 3: what an ablation leaves out -> phases and memory that are then missing.
ABLATIONS = {
    "": frozenset(),
    "analyze": frozenset({"analyze"}),  # MNTIS
    "triage": frozenset({"triage"}),  # MANIS
    "summarize": frozenset({"summarize", "memory"}),  # MANTI: without lessons there is nothing to remember
    "memory": frozenset({"memory"}),  # MANTIS-noXmem
}


@dataclass(frozen=True)
class MantisSettings:
    """Defaults are those of table 2: 5 iterations, the best 2 hypotheses of each, 4 attempts for each."""

    form: str = ORCHESTRATED
    iterations: int = 5
    hypotheses: int = 2  # implemented in an iteration
    attempts: int = 4  # for each hypothesis
    nominated: int = 5  # hypotheses to choose from; the paper says "multiple"
    without: frozenset[str] = frozenset()
    guardrails: bool = True  # clauses against gaming and library-only answers, table 4
    representation: Representation = REPRESENTATIONS["py"]
    repairs: int = 2  # further turns for a malformed answer
    recall: int = 8  # notes of other problems that a nomination sees
    trials: bool = False  # tools that build and check without an attempt
    temperature: float | None = None  # the endpoint's own

    @classmethod
    def of(cls, task: Task) -> MantisSettings:
        """Return the settings of a task; raises SolverError for values that do not exist."""
        form, without = task.option("form", ORCHESTRATED), task.option("without", "")
        kind, temperature = task.option("kind", "py"), task.option("temperature", "")
        _one_of("form", form, FORMS)
        _one_of("without", without, ABLATIONS)
        _one_of("kind", kind, REPRESENTATIONS)
        counts = {name: _count(task, name) for name in ("iterations", "hypotheses", "attempts", "nominated", "repairs")}
        return cls(
            form,
            **{name: count for name, count in counts.items() if count is not None},
            without=ABLATIONS[without],
            guardrails=_switch(task, "guardrails", "on"),
            representation=REPRESENTATIONS[kind],
            recall=_count(task, "recall", cls.recall),
            trials=_switch(task, "trials", "off"),
            temperature=float(temperature) if temperature else None,
        )

    def has(self, part: str) -> bool:
        """Return whether a phase, or ``memory``, is there."""
        return part not in self.without

    @property
    def sampling(self) -> dict[str, float]:
        """Fields of each request."""
        return {} if self.temperature is None else {"temperature": self.temperature}


def _one_of(name: str, value: str, known) -> None:
    if value not in known:
        raise SolverError(f"--set {name}={value}: use one of {', '.join(filter(None, known))}")


def _count(task: Task, name: str, default: int | None = None) -> int | None:
    text = task.option(name, "")
    if not text:
        return default
    if not text.isdigit() or (name not in ("repairs", "recall") and int(text) < 1):
        raise SolverError(f"--set {name}={text}: give a whole number of at least {int(name != 'repairs')}")
    return int(text)


def _switch(task: Task, name: str, default: str) -> bool:
    text = task.option(name, default)
    _one_of(name, text, ("on", "off"))
    return text == "on"
