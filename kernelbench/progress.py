"""Progress of a run on the terminal: a line for each result, a bar with what is built and timed now."""

from __future__ import annotations

import sys

from tqdm import tqdm

from kernelbench.evaluation import Outcome, Watcher
from kernelbench.execution import Evaluated, Skipped

_NAMES_WIDTH = 40


class Bar:
    """A bar on standard error that may not be there yet, and lines above it."""

    _bar: tqdm | None = None

    def start(self, total: int, unit: str) -> None:
        self._bar = tqdm(total=total, unit=unit, file=sys.stderr, dynamic_ncols=True, disable=None)

    def say(self, line: str) -> None:
        tqdm.write(line, file=sys.stderr)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class Progress(Bar, Watcher):
    def __init__(self) -> None:
        self._several = False  # workloads
        self._now = {"building": "", "judging": ""}

    def started(self, outcome: Outcome, todo: int) -> None:
        device = outcome.device
        count = f"{outcome.devices} x " if outcome.devices > 1 else ""
        self.say(f"device: {count}{device['name']}" + (" (no GPU is used)" if device["type"] == "cpu" else ""))
        self._several = len(outcome.workloads) > 1
        if outcome.run.torn:
            self.say("the results log ended in half a line, from an interrupted write; it was dropped")
        if outcome.resumed:
            self.say(f"{outcome.resumed} result(s) are in {outcome.run.path} already and are kept")
        self.start(todo, "solution")

    def status(self, what: str, text: str) -> None:
        self._now[what] = text if len(text) <= _NAMES_WIDTH else text[: _NAMES_WIDTH - 3] + "..."
        if self._bar is not None:
            parts = [f"{label} {text}" for label, text in self._now.items() if text]
            self._bar.set_postfix_str(" | ".join(parts), refresh=True)

    def ended(self, item: Evaluated | Skipped) -> None:
        solution = item.solution
        if isinstance(item, Skipped):
            line = f"  skipped        {solution.problem} {solution.name}: {item.reason.splitlines()[0]}"
        else:
            result = item.result
            speed = f"  {result.timing['median_ms']:.4g} ms  {result.speedup:.2f}x" if result.correct else ""
            workload = f" {result.workload['name']}" if self._several else ""
            line = f"  {result.status.value:<14} {solution.problem} {solution.name}{workload}{speed}"
        self.say(line)
        self._bar.update()
