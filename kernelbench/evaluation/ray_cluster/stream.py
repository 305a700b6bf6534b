"""Solutions as they come, evaluated on the nodes of a Ray cluster: what ``BuildQueue`` is on one host."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future
from typing import Any

from harness.solution.discover import Solution
from kernelbench.evaluation.executor import EnvironmentUnfit, Options, Skipped
from kernelbench.evaluation.local_executor import AS_OPTIONS, Order
from kernelbench.evaluation.ray_cluster.driver import Cluster, Evaluation

_LOOK_S = 0.1  # how often to look for new submissions while others are evaluated


class Stream:
    """One thread that talks to Ray. Raises EnvironmentUnfit where the cluster cannot do it."""

    def __init__(self, options: Options):
        self._options = options
        self._inbox: queue.SimpleQueue = queue.SimpleQueue()
        self._futures: dict[Solution, Future] = {}
        self._lock = threading.Lock()
        self._reason = ""  # why nobody answers any more
        self._opened: Future = Future()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._cluster: Cluster = self._opened.result()
        self.device: dict[str, Any] = self._cluster.device
        self.missing: dict[str, str] = self._cluster.missing
        self.devices: int = self._cluster.devices

    @property
    def lost(self) -> bool:
        """Return whether the cluster is gone."""
        return not self._thread.is_alive()

    def order(self, orders: list[Order]) -> list[Future]:
        """Return a future of Evaluated or Skipped for each, as ``BuildQueue.order`` does. Phases are not told."""
        return [self._submit(order) for order in orders]

    def _submit(self, order: Order) -> Future:
        workload = self._options.workload if order.workload is AS_OPTIONS else order.workload
        ended: Future = Future()
        ended.set_running_or_notify_cancel()
        with self._lock:
            if self._reason:
                ended.set_exception(EnvironmentUnfit(self._reason))
            else:
                self._inbox.put((order.file, order.solution, order.failure, workload, ended))
        return ended

    def kill(self) -> None:
        """End judges and the connection; what is unfinished stays so."""
        self._inbox.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            cluster = Cluster(self._options, builds=True)
        except BaseException as error:
            self._opened.set_exception(error)
            return
        self._opened.set_result(cluster)
        evaluation = Evaluation(cluster)
        try:
            while self._take_new(evaluation):
                for item in evaluation.step(_LOOK_S):
                    self._futures.pop(item.solution).set_result(item)
        except Exception as error:  # Ray itself is gone: who waits has to hear of it, and who comes now
            self._fail_all(f"the Ray cluster is lost: {error}")
        finally:
            cluster.kill()

    def _fail_all(self, reason: str) -> None:
        waiting = list(self._futures.values())
        with self._lock:
            self._reason = reason
            while not self._inbox.empty():
                waiting += [new[-1]] if (new := self._inbox.get()) else []
        for ended in waiting:
            ended.set_exception(EnvironmentUnfit(reason))

    def _take_new(self, evaluation: Evaluation) -> bool:
        """Add what has been submitted, waiting where nothing else is to be done; return whether to go on."""
        block = not evaluation.left
        while True:
            try:
                new = self._inbox.get(block)
            except queue.Empty:
                return True
            if new is None:
                return False
            file, solution, failure, workload, ended = new
            self._futures[solution] = ended  # whatever comes of it
            try:
                evaluation.add([(file, solution)], workload, failure)
            except OSError as error:
                self._futures.pop(solution).set_result(Skipped(solution, f"it cannot be read: {error}"))
            block = not evaluation.left
