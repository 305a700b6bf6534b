"""Time candidate and baselines in turn, on the same inputs, and compare one call of each round."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import torch

from harness.baselines import BASELINES, COMPILING_CALLS, EAGER, describe_error
from harness.faults import check_disk, is_of_machine
from harness.judge.session import EvaluationSession
from harness.problem.inputs import fresh_seeds, tensors_of
from harness.result import CandidateFailure, Result
from harness.tensors.outputs import as_tensors
from harness.timing import Round
from harness.timing.interleaved import CANDIDATE, InterleavedTiming, calls_a_round

_INPUTS_SHARE = 0.5  # of the rounds, in which inputs are compared again: who spares them once may not later

_random = random.SystemRandom()


@dataclass(frozen=True)
class Timed:
    """The timing of an evaluation, and the forms of the reference that run, by name."""

    interleaved: InterleavedTiming
    baselines: dict[str, Callable]

    def write(self, result: Result, with_speedups: bool = True) -> None:
        """Write into the result what the rounds show so far."""
        result.conditions |= self.interleaved.conditions()
        result.timing.update(self.interleaved.record(CANDIDATE))
        for name in self.baselines:
            speedup = self.interleaved.comparison(name) if with_speedups else {}
            result.baselines[name] = self.interleaved.record(name) | speedup


def time_in_turn(
    session: EvaluationSession,
    result: Result,
    phase: Callable[[str], None],
    launch_bound: frozenset[str] = frozenset(),
) -> Timed:
    """Play paired rounds until every series has converged, and write what they show into ``result``.

    Sides in ``launch_bound`` are timed with their launches. Baselines that do not run get an ``error`` instead.
    """
    conditions = session.conditions
    models = {name: BASELINES[name](session.reference.timed_model()) for name in conditions.baselines}
    baselines = {name: model for name, model in models.items() if _runs(session, name, model, result, phase)}

    def play(calls: int, first: bool, launch_bound: set[str]) -> dict[str, Round]:
        return _play_round(session, baselines, calls, first, launch_bound)

    calls = calls_a_round(conditions.device, conditions.memory_bytes, session.prepared.facts.traffic)
    interleaved = InterleavedTiming(play, session.timer, conditions.device, conditions.cv_target, launch_bound)
    session.release_outputs()
    interleaved.run(calls)
    result.timing = {}
    timed = Timed(interleaved, baselines)
    timed.write(result)
    return timed


def _runs(session: EvaluationSession, name: str, model: Callable, result: Result, phase) -> bool:
    """Return whether a baseline runs at all, which for a compiled one is when it is compiled."""
    if name == EAGER:
        return True
    session.worker.check_limits(runs=False, at_once=True)  # what it holds it would hold for as long as this takes
    phase(f"compile {name}")
    try:
        for _ in range(COMPILING_CALLS):
            session.time_model(model, fresh_seeds(1))
    except CandidateFailure:
        raise
    except Exception as error:
        if is_of_machine(error) and not isinstance(error, torch.OutOfMemoryError):  # whose device has been looked at
            raise
        check_disk()  # the candidate, which has files meanwhile, may have filled it: another baseline would be slower
        result.baselines[name] = {"error": describe_error(error)}
        return False
    return True


def _play_round(
    session: EvaluationSession, baselines: dict[str, Callable], calls: int, first: bool, launch_bound: set[str]
) -> dict[str, Round]:
    """Play the candidate, then the baselines on the same inputs; one call's output is compared."""
    seeds, case = fresh_seeds(calls), session.reference.setting.timed
    played = {CANDIDATE: session.time_candidate(seeds, CANDIDATE not in launch_bound)}
    reference = session.time_reference(seeds, EAGER not in launch_bound)
    with_inputs = first or _random.random() < _INPUTS_SHARE
    call = _random.randrange(calls)
    inputs, leaves = reference.take(call)
    inputs = tensors_of(inputs) if with_inputs else None  # what is not compared is released here
    session.compare(case, seeds[call], call, as_tensors(leaves, session.conditions.device), inputs)
    for name, model in baselines.items():
        if name == EAGER:
            played[name] = reference
        else:
            played[name] = session.time_model(model, seeds, name not in launch_bound)
    return played
