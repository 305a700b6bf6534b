"""Builds on all cores, one judge a device, one queue between them: the evaluation on one host.

The process that runs this imports no torch. It owns the results log and starts
the judges (processes of their own, each of which owns a device) and the builds.
A device takes the next built candidate as soon as it is free.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait

from harness.build import Artefact, BuildContext, CacheError, build
from harness.build.cost import NOTHING, Cost, expected_cost
from harness.process import ForkServer, available_memory_bytes
from harness.solution import Solution
from kernelbench.execution import Evaluated, Options, Pair, Skipped, Status
from kernelbench.judges import Judge, judged, open_judges

_MEMORY_SHARE = 0.75  # of what is available at the start, for compilers; the rest for judges and candidates


class Pipeline:
    """The executor of one host; ``judges`` are taken over, and opened as the options say without."""

    def __init__(self, options: Options, judges: list[Judge] | None = None):
        self._options = options
        self._judges = judges or open_judges(options)
        self.device = self._judges[0].device
        self.devices = len(self._judges)

    def evaluate(self, pairs: list[Pair], status: Status = lambda what, text: None) -> Iterator[Evaluated | Skipped]:
        """One of each as they end. On GPUs builds and evaluations overlap; on a CPU everything
        is built first, because a compiler on the same cores would spoil the timings.
        """
        if not pairs:
            return
        built: queue.SimpleQueue = queue.SimpleQueue()
        ended: queue.SimpleQueue = queue.SimpleQueue()
        shown = _Shown(status)
        threads = [threading.Thread(target=self._judge, args=(judge, built, ended, shown), daemon=True)
                   for judge in self._judges]  # fmt: skip
        with ForkServer() as server, ThreadPoolExecutor(max(1, self._options.jobs)) as pool:
            try:
                futures = self._submit(pairs, server, pool, shown)
                if self.device["type"] == "cpu":
                    wait(futures)
                for future, pair in futures.items():
                    future.add_done_callback(lambda future, pair=pair: built.put((pair, future)))
                for thread in threads:
                    thread.start()
                yield from self._ending([solution for _, solution in pairs], ended)
            except BaseException:
                self.kill()
                raise
            finally:
                for _ in threads:
                    built.put(None)
                pool.shutdown(wait=False, cancel_futures=True)
                server.close()  # ends the builds that run, which the pool would wait for

    def _submit(self, pairs, server: ForkServer, pool: ThreadPoolExecutor, shown: _Shown) -> dict[Future, Pair]:
        """Start all builds; the cheapest first, so that no device waits for one that takes long.

        That is Johnson's rule for two stages (Naval Research Logistics Quarterly 1, 1954),
        with evaluations that all take as long. On a CPU nobody waits, and evaluations stay in order.
        """
        jobs, judge = max(1, self._options.jobs), self._judges[0]
        context = BuildContext(
            server, judge.arch, judge.torch_version, self._options.build_timeout_s, self._options.memory_bytes,
            jobs=max(1, (os.cpu_count() or 1) // min(jobs, len(pairs))),
        )  # fmt: skip
        memory = Memory(int(available_memory_bytes() * _MEMORY_SHARE))
        costs = {solution: _cost(solution, context) for _, solution in pairs}

        def work(solution: Solution) -> Artefact:
            with memory.taken(costs[solution].memory_bytes), shown.going_on("building", solution.name):
                return build(solution, context)

        if self.device["type"] != "cpu":
            pairs = sorted(pairs, key=lambda pair: costs[pair[1]].seconds)
        return {pool.submit(work, solution): (file, solution) for file, solution in pairs}

    def _judge(self, judge: Judge, built, ended, shown: _Shown) -> None:
        """Evaluate what is built, one after the other, as long as there is a device: the work of one thread."""
        try:
            while not judge.lost and (item := built.get()):
                (file, solution), future = item
                with shown.going_on("judging", solution.name) as phase:
                    ended.put(judged(judge, file, solution, self._options.workload, future.result, phase))
            ended.put(_Gone(judge.lost))
        except BaseException as error:
            ended.put(error)

    def _ending(self, solutions: list[Solution], ended) -> Iterator[Evaluated | Skipped]:
        """One of each as they end; what is left when the last device is lost is listed as skipped."""
        left, judges = dict.fromkeys(solutions), len(self._judges)
        while left and judges:
            item = ended.get()
            if isinstance(item, BaseException):
                raise item
            if isinstance(item, _Gone):
                judges, reason = judges - 1, item.reason
                continue
            del left[item.solution]
            yield item
        for solution in left:
            yield Skipped(solution, f"no device is left to evaluate on: {reason}")

    def close(self) -> None:
        for judge in self._judges:
            judge.close()

    def kill(self) -> None:
        for judge in self._judges:
            judge.kill()


class _Gone:
    """A judge takes no more work."""

    def __init__(self, reason: str | None):
        self.reason = reason


class Memory:
    """How much of the host's memory builds may take together; one alone may take any amount."""

    def __init__(self, limit_bytes: int):
        self._limit = limit_bytes
        self._taken = 0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def taken(self, size: int) -> Iterator[None]:
        """Hold ``size`` bytes; waits until they fit."""
        with self._changed:
            self._changed.wait_for(lambda: self._taken == 0 or self._taken + size <= self._limit)
            self._taken += size
        try:
            yield
        finally:
            with self._changed:
                self._taken -= size
                self._changed.notify_all()


class _Shown:
    """What goes on now, from several threads, as one line of names for each activity."""

    def __init__(self, status: Status):
        self._status = status
        self._lock = threading.Lock()
        self._now: dict[str, dict[str, str]] = {"building": {}, "judging": {}}

    @contextlib.contextmanager
    def going_on(self, what: str, name: str) -> Iterator[Callable[[str], None]]:
        """Show ``name``; yields what shows its phase too."""
        self._show(what, name, name)
        try:
            yield lambda phase: self._show(what, name, f"{name}: {phase}")
        finally:
            self._show(what, name, None)

    def _show(self, what: str, name: str, text: str | None) -> None:
        with self._lock:
            if text is None:
                self._now[what].pop(name, None)
            else:
                self._now[what][name] = text
            self._status(what, ", ".join(self._now[what].values()))


def _cost(solution: Solution, context: BuildContext) -> Cost:
    """What the build will take; what cannot be told is for the build to report."""
    try:
        return expected_cost(solution, context)
    except (CacheError, OSError):
        return NOTHING
