"""The timed part of an evaluation: paired rounds, what other clocks say of them, and the baseline alone."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from typing import Any

import torch

from harness.baselines import BASELINES, COMPILING_CALLS, EAGER, describe_error
from harness.integrity import forged_clock, overwritten_inputs, slowed_baseline
from harness.judge.conditions import Conditions
from harness.judge.cross_check import kernel_profile
from harness.judge.cross_check.base import Called, NotHeld, NotRead, Reading, WallClockCheck
from harness.judge.session import EvaluationSession, number
from harness.problem.inputs import fresh_seeds, tensors_of
from harness.result import CandidateFailure, Result, Status
from harness.tensors.dtypes import is_finite
from harness.timing import Round, cupti
from harness.timing.interleaved import CANDIDATE, PLACES, InterleavedTiming, calls_a_round, net_times_ms
from harness.timing.rounds import outputs_of
from harness.timing.speedup import Series

_LAUNCH_BOUND_CALLS = 20
_PROFILED_CALLS = 5
_ROUNDS_ALONE, _ROUNDS_ALONE_ON_CPU = 5, 3
_INPUTS_SHARE = 0.5  # of the rounds, in which inputs are looked at again: whoever spares them once may not later

_random = random.SystemRandom()


class Measurement:
    """Fills in what a result says about time; ``phase`` is told what goes on."""

    def __init__(
        self,
        sides: EvaluationSession,
        conditions: Conditions,
        clock: WallClockCheck,
        phase: Callable[[str], None],
    ):
        self._sides, self._conditions, self._clock, self._phase = sides, conditions, clock, phase
        self._baselines: dict[str, Callable] = {}
        self._unread = ""  # why the judge's own clock was not read: then nothing is said of a speedup

    def time(self, result: Result, waits: set[str] = frozenset()) -> InterleavedTiming:
        """Paired rounds of candidate and baselines; fills in what they tell."""
        baselines = {name: BASELINES[name](self._sides.reference.timed_model()) for name in self._conditions.baselines}
        self._baselines = {name: model for name, model in baselines.items() if self._runs(name, model, result)}
        calls = calls_a_round(self._conditions.device, self._conditions.memory_bytes, self._sides.traffic)
        limits = self._conditions
        contest = InterleavedTiming(self._timed_round, self._sides.timer, limits.device, limits.cv_target, waits)
        self._sides.clear()
        contest.run(calls)
        result.conditions |= contest.conditions()
        result.timing = {}
        self._note(result, contest)
        return contest

    def _note(self, result: Result, contest: InterleavedTiming) -> None:
        """Write into the result what the rounds show so far."""
        result.timing.update(contest.record(CANDIDATE))
        for name in self._baselines:
            speedup = {} if self._unread else contest.comparison(name)
            result.baselines[name] = contest.record(name) | speedup

    def _runs(self, name: str, model: Callable, result: Result) -> bool:
        """Return whether a baseline runs at all, which for a compiled one is when it is compiled."""
        if name == EAGER:
            return True
        self._phase(f"compile {name}")
        try:
            for _ in range(COMPILING_CALLS):
                self._sides.play(model, fresh_seeds(1))
        except CandidateFailure:
            raise
        except Exception as error:
            result.baselines[name] = {"error": describe_error(error)}
            return False
        return True

    def _timed_round(self, calls: int, first: bool, waits: set[str]) -> dict[str, Round]:
        """Candidate, then the baselines on the same inputs; one call's output is compared."""
        seeds, trial = fresh_seeds(calls), self._sides.reference.setting.timed
        played = {CANDIDATE: self._sides.play_candidate(trial, seeds, CANDIDATE not in waits)}
        reference = self._sides.play_reference(trial, seeds, EAGER not in waits)
        with_inputs = first or _random.random() < _INPUTS_SHARE
        self._sides.compare(trial, seeds, _random.randrange(calls), reference, with_inputs)
        for name, model in self._baselines.items():
            if name == EAGER:
                played[name] = reference
            else:
                played[name] = self._sides.play(model, seeds, name not in waits)
        return played

    def witness(self, result: Result, contest: InterleavedTiming) -> InterleavedTiming:
        """Return what CUPTI and the judge's own clock say about the candidate's time.

        Returns the contest that stands: another one where launches cannot be kept out of the candidate's calls.
        """
        timing = result.timing
        if self._conditions.device.type == "cuda":
            seeds = fresh_seeds(min(_LAUNCH_BOUND_CALLS, timing["calls_a_round"]))
            timing["launch_bound_ms"] = number(self._sides.ask(op="launch_bound", seeds=seeds).get("wall_ms"))
            if cupti.available():
                timing["profile"] = self._profile(timing["calls_a_round"])
                models = {EAGER: self._sides.reference.timed_model(), **self._baselines}
                contest.launches = {name: self._sides.launches(model) for name, model in models.items()}
                reported = timing["profile"]["launches"]
                contest.launches[CANDIDATE] = kernel_profile.believed_launches(reported, timing["median_ms"])
                self._note(result, contest)
            if any(map(contest.is_close, self._baselines)):
                contest.rerun_with_new_placement(self._sides.move)
                self._sides.trim()
                result.conditions |= contest.conditions()
                self._note(result, contest)
        try:
            reading = self._reading(result, contest)
        except NotHeld:
            return self.witness(result, self.time(result, waits={CANDIDATE}))
        except NotRead as error:
            self._unread = str(error)
        if self._unread:
            self._note(result, contest)
            timing["cross_check"] = f"not read: {self._unread}"
            return contest
        allowed_ms = self._allowed_ms(result, reading)
        timing["cross_check"] = reading.to_json() | {"allowed_ms": round(allowed_ms, 6)}
        kind = self._conditions.device.type
        forged_clock.check(timing["median_ms"], reading.call_ms, reading.calls, allowed_ms, reading.held, kind)
        judged_ms = reading.call_ms + self._cold_ms(result, reading)
        penalty_ms = max(0.0, judged_ms - forged_clock.free_ms(timing["median_ms"], allowed_ms, reading.held))
        timing["cross_check"]["penalty_ms"] = round(penalty_ms, 6)
        if penalty_ms > 0:
            contest.add_penalty(CANDIDATE, penalty_ms)
            self._note(result, contest)
        return contest

    def _reading(self, result: Result, contest: InterleavedTiming) -> Reading:
        """Raises NotRead where not even a burst of one call fits the memory, and not for want of the candidate's."""
        held = CANDIDATE not in contest.waits
        calls = self._clock.calls(result.timing["median_ms"], contest.launches.get(CANDIDATE, 1), held)

        def agrees(reading: Reading) -> bool:
            allowed_ms = self._allowed_ms(result, reading)
            judged_ms = reading.call_ms + self._cold_ms(result, reading)
            return forged_clock.agree(result.timing["median_ms"], judged_ms, allowed_ms, reading.held)

        made_room = False
        while calls > 0:
            try:
                return self._clock.read(calls, held, contest.launches.get(EAGER, 1), self._compare_burst, agrees)
            except NotHeld:
                if calls == 1:
                    raise
                calls //= 2  # it may only have more launches than the queue holds
                continue
            except torch.OutOfMemoryError:
                pass  # the judge's
            except CandidateFailure as failure:
                out_of_memory = failure.status is Status.OUT_OF_MEMORY
                if not out_of_memory or made_room and calls == 1 and self._clock.leaves_room():
                    raise
            self._sides.trim()
            if made_room:
                calls //= 2
            made_room = True
        self._sides.check_memory_hog()
        raise NotRead("a call's inputs and outputs, once more, do not fit the memory")

    def _cold_ms(self, result: Result, reading: Reading) -> float:
        """Return what cold inputs cost a call of the reference, where the judge's own hot figure is the time.

        A candidate whose calls could not be held reads the same inputs, and its rounds, which are cold, do not count.
        """
        eager_ms = result.baselines.get(EAGER, {}).get("median_ms")
        if reading.held or self._conditions.device.type != "cuda" or not eager_ms or not reading.reference_ms:
            return 0.0
        return max(0.0, eager_ms - reading.reference_ms)

    def _allowed_ms(self, result: Result, reading: Reading) -> float:
        eager_ms, in_a_burst_ms = result.baselines.get(EAGER, {}).get("median_ms"), reading.reference_ms
        load = in_a_burst_ms / eager_ms if eager_ms and in_a_burst_ms else None
        kind, claimed_ms = self._conditions.device.type, result.timing["median_ms"]
        return forged_clock.allowed_ms(claimed_ms, reading.calls, reading.held, kind, load)

    def _profile(self, calls_a_round: int) -> dict[str, Any]:
        """Return what the device runs in a call, of a few the one with the median span."""
        calls = min(_PROFILED_CALLS, calls_a_round)
        found = []
        for _ in range(-(-_PROFILED_CALLS // calls)):
            seeds = fresh_seeds(calls)
            found.append(kernel_profile.checked(self._sides.ask(op="profile", seeds=seeds)))
        return sorted(found, key=lambda one: one["span_ms"])[len(found) // 2]

    def _compare_burst(self, call: Called) -> None:
        """The outputs of one call of a burst, and what became of its inputs, as they were after it."""
        reference, trial = self._sides.reference, call.trial
        expected = outputs_of(reference.timed_model(), reference.setting, call.inputs, call.seed)
        if trial == reference.setting.rare and not all(map(is_finite, expected)):
            return  # the function has no value there
        for index, (actual, tensor) in enumerate(zip(call.outputs, expected)):
            which = "the output of a call in a row" if len(expected) == 1 else f"output {index} of a call in a row"
            self._sides.check_output(lambda actual=actual: actual, tensor, which, trial, index, call.drawn)
        for index, (left, tensor) in enumerate(zip(call.inputs_left, tensors_of(call.inputs))):
            overwritten_inputs.check(left, tensor, index)

    def time_alone(self, result: Result, contest: InterleavedTiming) -> None:
        """The baseline once more, when the candidate has ended: was it slower beside it?"""
        if self._conditions.device.type == "cpu":
            self._lower(result, contest, {name: self._alone_on_cpu_ms(contest, name) for name in self._baselines})
            return
        name = next(iter(self._conditions.baselines), None)
        if name != EAGER:
            return
        beside = contest.series[name]
        beside_ms, alone_ms = statistics.median(beside.full_means_ms), self._alone_ms(contest, _ROUNDS_ALONE)
        if slowed_baseline.slowed(beside_ms, alone_ms):  # by where its tensors lay, or by its host, maybe
            alone_ms = max(alone_ms, *(self._alone_elsewhere_ms(contest) for _ in range(PLACES)))
            self._sides.trim()
        if EAGER in contest.waits:
            self._lower(result, contest, {name: alone_ms})
            return
        result.baselines[name]["alone_ms"] = alone_ms
        if any(beside.full):  # else the host was busy then, and launches are in its times
            slowed_baseline.check(beside_ms, alone_ms)

    def _lower(self, result: Result, contest: InterleavedTiming, alone_ms: dict[str, float]) -> None:
        """Have the lower of two figures of each baseline count, so that nobody gains by slowing it."""
        lowered_ms = {}
        for name, ms in alone_ms.items():
            beside_ms = statistics.median(contest.series[name].full_means_ms)
            slowed = slowed_baseline.slowed(beside_ms, ms)
            lowered_ms[name] = beside_ms - ms if slowed else 0.0
            contest.scale(name, ms / beside_ms if slowed else 1.0)
        self._note(result, contest)
        for name, ms in alone_ms.items():
            result.baselines[name] |= {"alone_ms": ms, "lowered_ms": round(lowered_ms[name], 6)}

    def _alone_on_cpu_ms(self, contest: InterleavedTiming, name: str) -> float:
        """A call of a baseline, in a few rounds like those of ``contest``, once the candidate has ended."""
        means_ms = []
        for _ in range(_ROUNDS_ALONE_ON_CPU):
            seeds = fresh_seeds(len(contest.series[name].rounds_ms[0]))
            times_ms = self._sides.play(self._baselines[name], seeds).times_ms
            means_ms.append(statistics.mean(times_ms))
        return statistics.median(means_ms)

    def _alone_ms(self, contest: InterleavedTiming, rounds: int) -> float:
        """A call of the eager baseline, in so many rounds like those of ``contest``."""
        alone = Series()
        for _ in range(rounds):
            seeds = fresh_seeds(len(contest.series[EAGER].rounds_ms[0]))
            trial = self._sides.reference.setting.timed
            played = self._sides.play_reference(trial, seeds, EAGER not in contest.waits)
            played.outputs, played.inputs = [], []
            times_ms = net_times_ms(played, self._sides.timer.overhead_ms(played.empty_ms))
            alone.add(times_ms, played.queue_full, False)
        return statistics.median(alone.full_means_ms)

    def _alone_elsewhere_ms(self, contest: InterleavedTiming) -> float:
        self._sides.move()
        self._alone_ms(contest, 1)  # allocates
        return self._alone_ms(contest, _ROUNDS_ALONE)
