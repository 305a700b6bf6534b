"""Candidate and baselines timed in turn, round by round, until every series has converged; or one thing alone."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from harness import device as devices
from harness.problem.module import Workload
from harness.timing import Round
from harness.timing.convergence import HELD_UP, Convergence, rounds_agree
from harness.timing.speedup import Series, ratio_of_medians, undisturbed
from harness.timing.stability import stability
from harness.timing.statistics import summarise

CANDIDATE = "candidate"
_WARM_UP_S = 0.1  # seconds of rounds that do not count; chosen
_ROUNDS_TO_FILL = 4  # the queue in one of; what the host takes is learned in the first
_MAX_CALLS_A_ROUND = 8  # chosen: enough for a mean, few enough to compare one of them each round
_MEMORY_SHARE = 8  # a round's inputs and outputs may take one part in so many of the memory
PLACES, _CALLS_A_PLACE = 10, 2  # 2/61 is slow in every second place, 1/58 in one of eight (results/README.md)
# Of a call's time: transposed convolutions of an H100 take up to 28 % longer in some places.
_BY_ITS_PLACE = 0.35
_LEAST_BANDWIDTH_FRACTION = 0.6  # of the data sheet's bandwidth; an H100 in order has 0.8
_LEAST_MS = 1e-3  # of any call: no kernel takes less, and what a timer adds is known no better


class InterleavedTiming:
    """``play(calls, first, waits)`` plays one round of all sides, the candidate as ``CANDIDATE``.

    Sides in ``waits`` have calls that wait for the device, or more launches than its queue holds: with
    their launches they are timed. Who does is seen while they warm up, where it is not known before.
    """

    def __init__(
        self,
        play: Callable[[int, bool, set[str]], dict[str, Round]],
        timer,
        device: torch.device,
        cv_target: float,
        waits: set[str] = frozenset(),
    ):
        self._play, self._timer, self._cv_target = play, timer, cv_target
        self.waits = set(waits)
        self._observer = devices.Observer(device)
        self._played: dict[str, Series] = {}
        self._overheads_ms: dict[str, list[float]] = {}
        self._waited: dict[str, list[float]] = {}  # of each round
        self.series: dict[str, Series] = {}  # without the rounds that the host interrupted
        self.launches: dict[str, int] = {}  # of a call, by name, once they are known
        self.stopped = ""
        self.places = 1  # in the device's memory
        self._bandwidth_fractions: list[float | None] = []

    def run(self, calls: int) -> None:
        """Rounds of so many calls, or of fewer where they take long."""
        call_s = self._warm_up(calls)
        self._bandwidth_fractions.append(self._timer.bandwidth_fraction())
        convergence = Convergence(self._cv_target, **self._timer.limits)
        self._calls = convergence.calls_a_round(calls, call_s)
        self._one_round()
        while (stopped := convergence.reason(*self.series.values(), decided=self._is_decided)) is None:
            self._one_round()
        self.stopped = stopped
        self._bandwidth_fractions.append(self._timer.bandwidth_fraction())

    def _warm_up(self, calls: int) -> float:
        """Seconds that a call of all sides takes in the last of some rounds."""
        until = time.monotonic() + _WARM_UP_S
        full: set[str] = set()
        for rounds in itertools.count(1):
            begin = time.monotonic()
            calls = calls if begin < until else 1  # only whether a queue fills is still to be seen
            played = self._play(calls, rounds == 1, self.waits)
            full |= {name for name, its_round in played.items() if its_round.queue_full}
            end = time.monotonic()
            if end >= until and (rounds >= _ROUNDS_TO_FILL or len(full) == len(played)):
                self.waits |= played.keys() - full
                return (end - begin) / calls

    def _one_round(self) -> None:
        self._observer.observe()
        for name, played in self._play(self._calls, False, self.waits).items():
            overhead_ms = self._timer.overhead_ms(played.empty_ms)
            times = net_times_ms(played, overhead_ms)
            self._played.setdefault(name, Series()).add(times, played.queue_full, self._observer.throttled)
            self._overheads_ms.setdefault(name, []).append(overhead_ms)
            self._waited.setdefault(name, []).append(played.waited)
        self.series = undisturbed(self._played)

    def _is_decided(self) -> bool:
        """Return whether every round alone gives the same verdict and the same two digits for each baseline."""
        baselines = [name for name in self.series if name != CANDIDATE]
        return bool(baselines) and all(map(self._is_decided_over, baselines))

    def _is_decided_over(self, baseline: str) -> bool:
        if CANDIDATE not in self.series or not rounds_agree(self.series[baseline], self.series[CANDIDATE]):
            return False
        return self.comparison(baseline)["verdict"] in ("faster", "slower")

    def is_close(self, baseline: str) -> bool:
        """Return whether the verdict could be the luck of two processes with the places where their tensors lie."""
        found = self.comparison(baseline)
        return found["verdict"] in ("faster", "slower") and abs(found["speedup"] - 1) < _BY_ITS_PLACE

    def rerun_with_new_placement(self, move: Callable[[], None]) -> None:
        """Other rounds instead, each in other places of the memory: a median over them is neither side's luck."""
        self._played, self._overheads_ms, self._calls = {}, {}, min(self._calls, _CALLS_A_PLACE)
        for _ in range(PLACES):
            move()
            self._play(self._calls, False, self.waits)  # allocates
            self._one_round()
        self.stopped, self.places = "placements", PLACES

    def waited(self, name: str) -> float:
        """Return how many times as long as they worked a side's threads took, in most rounds: see ``Round``."""
        return statistics.median(self._waited[name])

    def add_penalty(self, name: str, ms: float) -> None:
        """Raise all times of a side by so much, because another clock says so."""
        self._change(name, lambda time_ms: time_ms + ms)

    def scale(self, name: str, factor: float) -> None:
        """Multiply all times of a side: what spoiled one call in many of it is in the mean of its round."""
        self._change(name, lambda time_ms: max(time_ms * factor, _LEAST_MS))

    def _change(self, name: str, change: Callable[[float], float]) -> None:
        changed = [[change(time_ms) for time_ms in times] for times in self.series[name].rounds_ms]
        self.series[name] = dataclasses.replace(self.series[name], rounds_ms=changed)

    def record(self, name: str) -> dict[str, Any]:
        """Return what the result says about one side."""
        series = self.series[name]
        return self._timer.describe() | {
            "overhead_ms": round(statistics.median(self._overheads_ms[name]), 6),
            "calls_a_round": self._calls,
            "cv_target": self._cv_target,
            "stopped": self.stopped,
            "placements": self.places,
            "stability": self.stability(name),
            "run_to_run_rel": self._run_to_run_rel(name),
            "queue_full": series.queue_full,
            "underfull_rounds": series.full.count(False),
            "interrupted_rounds": len(self._played[name].rounds_ms) - len(series.rounds_ms),
            "throttled_samples": series.throttled_samples,
        } | summarise(series.rounds_ms)  # fmt: skip

    def comparison(self, baseline: str) -> dict[str, Any]:
        """Speedup over a baseline, its interval and the verdict: faster, slower, tie, or unstable if either side is."""
        between = max(self._run_to_run_rel(name) for name in (baseline, CANDIDATE))
        ratio = ratio_of_medians(self.series[baseline], self.series[CANDIDATE], between, self._timer.noise)
        settled = all(self.stability(name) == "stable" for name in (baseline, CANDIDATE))
        return {
            "paired": True,
            "speedup": ratio.speedup,
            "interval": [ratio.low, ratio.high],
            "verdict": ratio.verdict if settled else "unstable",
        }

    def _run_to_run_rel(self, name: str) -> float:
        median_ms = statistics.median(self.series[name].means_ms)
        return round(self._timer.run_to_run_rel(median_ms, self.launches.get(name, 1)), 6)

    def stability(self, name: str) -> str:
        """Return ``timing.stability``, 'disturbed' where the device itself was far too slow, or 'held up'."""
        if any(share is not None and share < _LEAST_BANDWIDTH_FRACTION for share in self._bandwidth_fractions):
            return "disturbed"
        if self.stopped == HELD_UP:
            return "held up"
        return stability(self.series[name].means_ms, self._timer.noise)

    def conditions(self) -> dict[str, Any]:
        shares = [round(share, 3) for share in self._bandwidth_fractions if share is not None]
        return self._observer.conditions() | ({"bandwidth_fraction": shares} if shares else {})


def net_times_ms(played: Round, overhead_ms: float) -> list[float]:
    """The times of a round without what the timer adds in the process that played it."""
    return [max(time_ms - overhead_ms, _LEAST_MS) for time_ms in played.times_ms]


def calls_a_round(device: torch.device, memory_bytes: int, traffic: int) -> int:
    """Return how many calls of a round fit, because all their inputs and outputs exist at once."""
    if device.type == "cuda":
        memory_bytes = torch.cuda.get_device_properties(device).total_memory
    return max(1, min(_MAX_CALLS_A_ROUND, memory_bytes // _MEMORY_SHARE // max(traffic, 1)))


def bytes_of_call(
    workload: Workload, model: torch.nn.Module, inputs: list[torch.Tensor], outputs: list[torch.Tensor]
) -> int:
    """Inputs, parameters, buffers and outputs once each, unless the problem declares the bytes of a call."""
    if workload.declared_bytes is not None:
        return workload.declared_bytes
    return sum(t.numel() * t.element_size() for t in (*inputs, *model.state_dict().values(), *outputs))
