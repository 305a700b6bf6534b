"""The judge's own clock on a candidate: how long until the outputs of a burst of calls are there.

Times of single calls are taken by the worker, in a process that the candidate controls. This clock trusts none of
that: the candidate cannot work on the inputs unseen before the clock starts, and when the clock stops the outputs
must be where the judge reads them.
"""

from __future__ import annotations

import contextlib
import enum
import math
import os
import random
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from harness.judge.cross_check.kernel_profile import believed_launches
from harness.judge.reference.session import ReferenceSession
from harness.judge.session import EvaluationSession
from harness.process.worker_process import Worker
from harness.result import CandidateFailure, Status
from harness.timing.rounds import InputCase, RunConfig

# ms of a burst: so long that what its begin and end may be wrong by (forged_clock.BURST_MS) is a twentieth of it
_TARGET_MS = {"cuda": 8.0, "cpu": 10.0}
_UNHELD_TARGET_MS = 20.0  # where the way to the worker and back is in it
# of a burst: gates, marks and launches have to fit a device's queue; on a CPU each call is a request
MOST_CALLS = {"cuda": 128, "cpu": 32}
_COMPARED_CALLS = 8  # of a burst: leaving out one call in four is found nine times in ten
# The least of some readings is that of a call whose inputs were lucky, if work depends on them. So what is no matter
# of others' work is the mean of so many calls, but for those that took longest, which others may have disturbed.
CALLS_OF_A_MEAN, _UNDISTURBED = 8, 0.75
_MEMORY_SHARE = 3  # a burst may take one part in so many of what is free
MOST_S = 10.0  # seconds, after which no further reading begins
QUEUE = 600  # launches that fit a device's queue behind a gate, with a margin

_random = random.SystemRandom()


@dataclass(frozen=True)
class Reading:
    """``burst_ms`` is how long so many calls took, hot, and ``overhead_ms`` what a burst takes besides its calls.

    ``cpu_ms`` is the CPU time of one call, without what a call takes besides, and ``busiest_ms`` that of the thread
    that had most of it, both ``mean_of_undisturbed``; None on a GPU. ``others`` is the share of the cores that other
    programs had between bursts, looked for where a claim differs.
    ``held`` says whether launches were kept out of it. ``reference_ms`` is a call of the reference
    meanwhile, on inputs as hot; None where that has launches in it, or was not asked for.
    """

    burst_ms: float
    overhead_ms: float
    reference_ms: float | None
    calls: int
    held: bool
    cpu_ms: float | None = None
    busiest_ms: float | None = None
    others: float = 0.0

    @property
    def call_ms(self) -> float:
        """The judge's figure for one call."""
        return max(0.0, self.burst_ms - self.overhead_ms) / self.calls

    def least(self, other: Reading) -> Reading:
        """Return the lower times of two readings of as many calls: work of others only ever adds time."""
        known = [r.reference_ms for r in (self, other) if r.reference_ms is not None]
        return replace(
            self,
            burst_ms=min(self.burst_ms, other.burst_ms),
            overhead_ms=min(self.overhead_ms, other.overhead_ms),
            reference_ms=min(known, default=None),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "call_ms": round(self.call_ms, 6), "reference_ms": self.reference_ms and round(self.reference_ms, 6),
            "calls": self.calls, "queue_held": self.held,
            "overhead_ms": round(self.overhead_ms, 6),
        }  # fmt: skip


class Claim(enum.Enum):
    """Agreement of the times that the worker reports with a reading of the judge's clock."""

    AGREES = enum.auto()
    DIFFERS = enum.auto()  # by what is added to them
    FORGED = enum.auto()  # so far that the candidate is rejected


class NotHeld(Exception):
    """The candidate's calls wait for the device, which waits for the gate, or have work on other streams of theirs.

    A stream that waits for another one behind a gate goes on at the device's next slice of time, some 2 ms later.
    """


class NotRead(Exception):
    """The judge cannot read its own clock on this machine; the message says why."""


@dataclass(frozen=True)
class Called:
    """One call of a burst that is to be compared.

    ``inputs`` are the judge's own, drawn from ``drawn`` as ``trial`` says, and the call was told ``seed``. ``outputs``
    and ``inputs_left``, the tensors among its inputs, are what the judge read after it.
    """

    trial: InputCase
    inputs: list
    drawn: int
    seed: int
    outputs: list[torch.Tensor]
    inputs_left: list[torch.Tensor]


Check = Callable[[Called], None]
Fork = Callable[[list[int]], Worker]  # a worker that is never given a candidate, and inherits these descriptors


@contextlib.contextmanager
def of_no_candidate() -> Iterator[None]:
    """Raise NotRead for a failure of a worker that holds no candidate: it is the machine's."""
    try:
        yield
    except CandidateFailure as failure:
        raise NotRead(f"a worker without a candidate failed: {failure.message}") from failure


class Rehearsal:
    """Overhead of a burst, measured with a worker that is never given a candidate.

    ``fd`` is a file in memory that the candidate's worker inherits.
    """

    def __init__(self, judge: ReferenceSession, timeout_s: float, fd: int):
        self.fd, self.timeout_s = fd, timeout_s
        self.setting, self.facts = judge.reference.setting, judge.prepared.facts
        self.timer = judge.timer

    def close(self) -> None:
        os.close(self.fd)

    def ask_idle(self, idle: Worker, **request: Any) -> dict[str, Any]:
        """Ask the worker without a candidate; a failure there is the machine's."""
        with of_no_candidate():
            return idle.request(request, self.timeout_s)

    def fit(self) -> int:
        """Return how many calls a burst may have by the memory that is free now."""
        return self.free_bytes() // _MEMORY_SHARE // max(self.facts.traffic, 1)

    def free_bytes(self) -> int:
        raise NotImplementedError


class WallClockCheck:
    """The judge's own clock on the candidate of ``session``."""

    def __init__(self, session: EvaluationSession, rehearsal: Rehearsal):
        self.session, self.rehearsal = session, rehearsal
        self.setting, self.reference = rehearsal.setting, session.reference.timed_model()

    def calls(self, claimed_ms: float, launches: int, held: bool) -> int:
        """Return how many calls of so many launches a burst should have; 0 where not even one fits the memory."""
        wanted = calls_of_a_burst(self.setting.device.type, claimed_ms, launches, held)
        self.make_room(wanted)
        return min(wanted, self.rehearsal.fit())

    def leaves_room(self) -> bool:
        """Return whether a burst of one call leaves as much memory as the judge ever took for the reference."""
        self.session.release_caches()
        return self.rehearsal.free_bytes() >= _MEMORY_SHARE * self.rehearsal.facts.traffic + self.taken_bytes()

    def make_room(self, calls: int) -> None:
        """Release what allocators keep, if it is needed: freeing and taking memory again holds up the whole driver."""
        if self.rehearsal.fit() < calls:
            self.session.release_caches()

    def read(
        self, calls: int, held: bool, reference_launches: int, check: Check, claim_by: Callable[[Reading], Claim]
    ) -> Reading:
        """Return the longest of the readings of each input case, once the claim agrees or all tries are made.

        Others' work may be in some bursts, a forged clock is in all.
        ``check`` gets calls that nobody could foresee of each burst that may count.
        Raises NotHeld where launches are to be ``held`` back and cannot be, and NotRead.
        """
        raise NotImplementedError

    def taken_bytes(self) -> int:
        """Return the most bytes that the judge took, of those that ``free_bytes`` counts."""
        return 0


def compared_calls(calls: int) -> frozenset[int]:
    """Return random calls of a burst, those that are compared."""
    return frozenset(_random.sample(range(calls), min(calls, _COMPARED_CALLS)))


def input_cases(setting: RunConfig) -> list[InputCase]:
    """Return the inputs that bursts are made on, one case for all calls of a burst, in random order.

    Inputs with rare large elements tell work that is left out, but all else may be wrong by much there, or has no
    value. Other inputs tell what is wrong, but not what is left out. So what each case takes is read apart, and the
    longest counts.
    """
    cases = [setting.timed, *([setting.rare] if setting.rare else [])]
    return _random.sample(cases, len(cases))


def mean_of_undisturbed(values: Sequence[float]) -> float:
    """Return the mean of the lowest three quarters of some values."""
    return statistics.fmean(sorted(values)[: math.ceil(_UNDISTURBED * len(values))])


def longest(readings: Iterable[Reading]) -> Reading:
    """Return the reading of the case whose calls take longest, with a call of the reference in another's if need be.

    It is asked for only where a claim differs, in the burst at hand, and tells how busy the machine is. CPU times are
    the most of any case: who waits in one case would else hide what it works in the other.
    """
    readings = list(readings)
    found = max(readings, key=lambda reading: reading.call_ms)
    known = [r.reference_ms for r in readings if r.reference_ms is not None]
    worked = {"cpu_ms": [r.cpu_ms for r in readings], "busiest_ms": [r.busiest_ms for r in readings]}
    most = {name: max(times) for name, times in worked.items() if None not in times}
    if found.reference_ms is None:
        most["reference_ms"] = min(known, default=None)
    return replace(found, **most)


def calls_of_a_burst(device_type: str, claimed_ms: float, launches: int, held: bool) -> int:
    """Return as many calls as make it long; behind a device's gate no more than its queue holds.

    Time and launches are the candidate's word. With few calls much is allowed to each, so more
    launches than fit the time are not believed.
    """
    target_ms = _TARGET_MS[device_type] if held else _UNHELD_TARGET_MS
    wanted = min(int(target_ms / max(claimed_ms, 1e-3)) + 1, MOST_CALLS[device_type])
    if held and device_type == "cuda":
        wanted = min(wanted, max(1, QUEUE // believed_launches(launches, claimed_ms)))
    return wanted


def order_in_memory(answer: dict[str, Any], call: int, output: int, dimensions: int) -> list[int]:
    """Return in which order the dimensions of an output lie; raises CandidateFailure where the worker names none."""
    try:
        order = answer["orders"][call][output]
        if all(type(dimension) is int for dimension in order) and sorted(order) == list(range(dimensions)):
            return order
    except (KeyError, IndexError, TypeError):
        pass
    raise CandidateFailure(Status.CRASHED, "the worker does not say how the outputs of a call in a row lie in memory")
