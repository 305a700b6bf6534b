"""Return whether a worker that was told to stop has come to rest, and whether it stays so."""

from __future__ import annotations

import time
from collections.abc import Callable

from harness.integrity import runs_unasked
from harness.process.procfs import (
    at_rest,
    cpu_times_ns,
    descendants,
    identities,
    tasks_that_stop,
    turns,
    unrested,
    usable_cores,
)
from harness.result import CandidateFailure, Status

Turns = tuple[int, int, int]  # see ``turns``

_SETTLED_S = 1e-4  # what a thread had since the last tick is counted when it has left its core, after it is stopped
_SPIN_S = 5e-4  # to stop takes so long at most, unless a system call has to end first
# Who takes longer to look at is a crowd: one of them can end meanwhile, and nobody knows how long it ran. One process
# takes 0.03 ms and one of 64 threads 0.6 ms (AMD EPYC, 2026-11-27).
_LOOK_S = 3e-4 + 1e-5 * usable_cores()
_REST_S = 2.0  # a system call that takes longer is no candidate's business


class WorkerRest:
    """CPU times of the processes of one worker, when it was stopped and at rest."""

    def __init__(self, pid: int):
        self._pid = pid
        self._resting: dict[int, int] | None = None  # CPU times at the last ``wait``
        self._family: list[int] = []  # its processes then
        self.cpu_ms = 0.0  # CPU time of all of them by then
        self.busiest_ms = 0.0  # what the thread had of it, since the ``wait`` before, that had most
        self.waited = 1.0  # how many times as long that, or one that waited for a core, took
        self._is_watched = False  # whether anybody waits for it to rest, as on a CPU
        self._present: set[tuple[int, str]] = set()  # its processes right after it was stopped
        self._turns: dict[str, Turns] = {}  # how their threads had had a core then: see ``turns``
        self._stopped = 0.0  # the moment when they were last told to stop
        self._ran_ns: dict[int, int] = {}  # their CPU times right after it
        self._is_crowd = False  # whether it took long to look at them then

    def stop(self, send: Callable[[], None]) -> None:
        """Have ``send`` stop its processes, and note how they were."""
        send()
        self._stopped = time.perf_counter()
        self._ran_ns = cpu_times_ns(self._family)  # not before: they would work unseen while a crowd is looked at
        self._present = identities(descendants(self._pid)) if self._is_watched else set()
        self._is_crowd = time.perf_counter() - self._stopped > _LOOK_S

    def wait(self, has_ended: Callable[[], bool]) -> float:
        """Wait until none of its processes runs. A process that is stopped in a system call completes that first.

        Returns the moment (``perf_counter``) since which this holds: when it was seen, or earlier by the CPU time that
        shows how long its processes ran after the answer. Raises CandidateFailure if it takes long.
        """
        self._is_watched = True
        begin = time.perf_counter()
        while not has_ended():
            family = descendants(self._pid)  # it cannot grow: a stopped process does not fork
            if at_rest(family):
                seen, times = time.perf_counter(), cpu_times_ns(family)
                time.sleep(_SETTLED_S)
                if cpu_times_ns(family) == times:
                    return self._rests_since(seen, family, times)
            waited_s = time.perf_counter() - begin
            if waited_s > _REST_S:
                state = unrested(family) or "unknown"
                message = f"{_REST_S:g} s after its answer something that it started still runs (state {state})"
                raise CandidateFailure(Status.CRASHED, message)
            if waited_s > _SPIN_S:
                time.sleep(1e-4)
        return time.perf_counter()

    def _rests_since(self, seen: float, family: list[int], times: dict[int, int]) -> float:
        before, self._turns = self._turns, turns(family)
        self._family, self._resting = family, times
        self.cpu_ms = sum(times.values()) / 1e6
        since = [_since(before.get(thread, (0, 0, 0)), now) for thread, now in self._turns.items()]
        busiest_ns = max((ns for ns, _, _ in since), default=0)
        self.busiest_ms = busiest_ns / 1e6
        self.waited = max(ns + waited_ns for ns, waited_ns, _ in since) / busiest_ns if busiest_ns else 1.0
        if self._is_crowd or self._present != identities(family):  # nobody knows how long those ran that are gone
            return seen
        ran_ns = sum(ns - self._ran_ns.get(process, 0) for process, ns in times.items())
        return min(seen, self._stopped + ran_ns / 1e9)

    def check(self, has_ended: Callable[[], bool]) -> float:
        """Return for how many ms of CPU time it has run since ``wait``; raise CandidateFailure where that is much."""
        then, self._resting = self._resting, None
        if then is None or has_ended():
            return 0.0
        family = descendants(self._pid)
        resumed = not self._turns or _slices(turns(family)) != _slices(self._turns)
        return runs_unasked.check(then, cpu_times_ns(family), resumed)

    @property
    def threads(self) -> int:
        """Threads of its first process now: all have to stop after each answer, but those that have ended."""
        return len(tasks_that_stop(self._pid))


def _since(then: Turns, now: Turns) -> Turns:
    """Return what a thread had since; all that it had, where its number was another's, as after an execve."""
    return tuple(b - a for a, b in zip(then, now)) if all(a <= b for a, b in zip(then, now)) else now


def _slices(of_threads: dict[str, Turns]) -> int:
    return sum(count for _, _, count in of_threads.values())
