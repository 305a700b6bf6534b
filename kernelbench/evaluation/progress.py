"""Progress of a run on the terminal: a line for each result, a bar with what is built and timed now."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tqdm import tqdm

from harness.result import Result, first_line
from kernelbench import escaping
from kernelbench.evaluation.directory import Outcome, Watcher
from kernelbench.evaluation.executor import Evaluated, Skipped
from kernelbench.metrics import settled

_NAMES_WIDTH = 40


class Bar:
    """A bar on standard error that may not be there yet, and lines above it."""

    run: Path | None = None  # that is being written
    _bar: tqdm | None = None

    def start(self, total: int, unit: str) -> None:
        self.close()
        self._bar = tqdm(total=total, unit=unit, file=sys.stderr, dynamic_ncols=True, disable=None)

    def say(self, line: str) -> None:
        tqdm.write(escaping.terminal(line), file=sys.stderr)

    def say_device(self, device: dict[str, Any], count: int = 1) -> None:
        several = f"{count} x " if count > 1 else ""
        self.say(f"device: {several}{device['name']}" + (" (no GPU is used)" if device["type"] == "cpu" else ""))

    def say_kept(self, results: int, path: Path) -> None:
        if results:
            self.say(f"{results} result(s) are in {path} already and are kept")

    def say_result(self, result: Result, name: str) -> None:
        found = settled.speedup_text(result) or "no speedup"
        speed = f"  {result.timing['median_ms']:.4g} ms  {found}" if result.correct and result.timing else ""
        self.say(f"  {result.status.value:<14} {result.problem} {name}{speed}")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class Progress(Bar, Watcher):
    def __init__(self) -> None:
        self._several = False  # workloads
        self._now = {"building": "", "judging": ""}

    def started(self, outcome: Outcome, todo: int) -> None:
        self.run = outcome.run.path
        self.say_device(outcome.device, outcome.devices)
        self._several = len(outcome.workloads) > 1
        if outcome.run.torn:
            self.say("the results log ended in half a line, from an interrupted write; it was dropped")
        self.say_kept(outcome.resumed, outcome.run.path)
        self.start(todo, "solution")

    def confirming(self, todo: int) -> None:
        self.say(f"measuring the best of several samples once more: {todo} solution(s)")
        self.start(todo, "solution")

    def status(self, what: str, text: str) -> None:
        self._now[what] = text if len(text) <= _NAMES_WIDTH else text[: _NAMES_WIDTH - 3] + "..."
        if self._bar is not None:
            parts = [f"{label} {text}" for label, text in self._now.items() if text]
            self._bar.set_postfix_str(escaping.terminal(" | ".join(parts)), refresh=True)

    def ended(self, item: Evaluated | Skipped) -> None:
        solution = item.solution
        if isinstance(item, Skipped):
            self.say(f"  skipped        {solution.problem} {solution.name}: {first_line(item.reason)}")
        else:
            workload = f" {item.result.workload['name']}" if self._several else ""
            self.say_result(item.result, f"{solution.name}{workload}")
        self._bar.update()
