"""A solve on the terminal: a line for each attempt, a bar with how many are in which state, the best speedups."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from harness.result import Result, first_line
from kernelbench.evaluation.progress import Bar
from kernelbench.metrics.settled import settled_speedup
from kernelbench.solvers.plan import Outcome, Watcher

_STATES = {"asking": "asked", "building": "in build", "built": "waiting", "judging": "on the device"}


class Display(Bar, Watcher):
    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._states: dict[Any, str] = {}
        self._best: dict[str, float] = {}

    def started(self, outcome: Outcome, todo: int) -> None:
        self.say_device(outcome.device)
        self.say_kept(outcome.replayed, outcome.run.path)
        for result in outcome.run.results:
            self._note(result)
        self.start(max(0, todo), "attempt")

    def moved(self, key: Any, state: str) -> None:
        with self._lock:
            if state in _STATES:
                self._states[key] = state
            else:
                self._states.pop(key, None)
            self._show()

    def evaluated(self, result: Result) -> None:
        with self._lock:
            self._note(result)
            self.say_result(result, f"attempt {result.solution['sample']}")
            self._bar.update()
            self._show()

    def confirming(self, todo: int) -> None:
        with self._lock:
            self.say(f"measuring the best attempt of each problem once more: {todo} solution(s)")
            self.start(todo, "solution")

    def said(self, problem: str, text: str) -> None:
        with self._lock:
            self.say(f"  {problem}: {text}")

    def ended(self, problem: str, failure: str | None) -> None:
        if failure:
            with self._lock:
                self.say(f"  {problem} is not finished: {first_line(failure)}")

    def _note(self, result: Result) -> None:
        if result.correct:
            speedup = settled_speedup(result) or 0.0  # without one it is solved, and not faster than anything
            self._best[result.problem] = max(speedup, self._best.get(result.problem, 0.0))

    def _show(self) -> None:
        if self._bar is None:
            return
        counts = Counter(self._states.values())
        parts = [f"{counts[state]} {words}" for state, words in _STATES.items() if counts[state]]
        if self._best:
            faster = sum(speedup > 1 for speedup in self._best.values())
            parts.append(f"solved {len(self._best)}, faster {faster}, best {max(self._best.values()):.2f}x")
        self._bar.set_postfix_str(" | ".join(parts), refresh=False)
        self._bar.refresh()
