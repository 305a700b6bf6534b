"""Builds on all cores, one judge a device, one queue between them: the evaluation on one host.

The process that runs this imports no torch. It owns the results log and starts
the judges (processes of their own, each of which owns a device) and the builds.
A device takes the next built candidate as soon as it is free.
"""

from __future__ import annotations

import contextlib
import dataclasses
import queue
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any

from harness.compile import Artefact, BuildContext, CacheError, build
from harness.compile.cache import Cache
from harness.compile.cost import NOTHING, Cost, expected_cost
from harness.faults import MachineFault
from harness.problem.module import ProblemFile
from harness.process.fork_server import ForkServer
from harness.process.procfs import available_memory_bytes, usable_cores
from harness.result import CandidateFailure
from harness.result import Status as Verdict
from harness.solution.discover import Solution
from kernelbench.evaluation.executor import Evaluated, Options, Pair, Phase, Shown, Skipped, Status
from kernelbench.evaluation.host_limits import MemoryBudget, TimingLock
from kernelbench.evaluation.judge_process import EVALUATE, OUR_OWN, Judge, asked, open_judges
from kernelbench.ucutlass.codegen.build.translate import translators

_MEMORY_SHARE = 0.75  # of what is available at the start, for compilers; the rest for judges and candidates
# As compilers say that there is no room, and that no process can be started. Some limits are a share of what is free.
_TAKEN_BY_OTHERS = (
    "No space left on device", "Disk quota exceeded", "Resource temporarily unavailable", "out of memory",
    "Cannot allocate memory", "File too large", "the limit is",
)  # fmt: skip
_UNFIT_S = 60.0  # what waits is told at once; a queue may last for days, and the machine may have been at fault
_COMPILERS = 2  # of a CUDA extension, side by side

AS_OPTIONS = object()  # the workload that the options name


@dataclasses.dataclass(frozen=True)
class Order:
    """One piece of work for a device: of a solution, or without one of the problem alone.

    ``job`` says what to do, as of ``judge_process.asked``. ``known`` is asked once a solution is built: what it says,
    unless that is None, is the answer, and no device is needed. A solution that is known to have failed already, with
    ``failure``, only gets its record. ``phase`` is told ``building``, ``built``, ``judging``, and '' at the end.
    """

    file: ProblemFile
    solution: Solution | None
    phase: Phase = lambda text: None
    failure: CandidateFailure | None = None
    workload: Any = AS_OPTIONS
    job: dict[str, Any] = dataclasses.field(default_factory=lambda: dict(EVALUATE))
    known: Callable[[Artefact], Any] = lambda artefact: None


@dataclasses.dataclass(frozen=True)
class _Built:
    """An order whose build has ended: ``artefact`` is a future of it and of the answer, if that is known."""

    order: Order
    artefact: Future
    ended: Future


class Pipeline:
    """The executor of one host; ``judges`` are taken over, and opened as the options say without."""

    def __init__(self, options: Options, builds: bool = True, judges: list[Judge] | None = None):
        self.options = options
        self._server = ForkServer()
        if builds:
            self._server.start()  # imports torch while the judges do
        try:
            self._judges = judges or open_judges(options)
        except BaseException:
            self._server.close()
            raise
        self.device = self._judges[0].device
        self.devices = len(self._judges)
        self.torch_version = self._judges[0].torch_version

    def evaluate(
        self, pairs: list[Pair], status: Status = lambda what, text: None, workload: str | None = None
    ) -> Iterator[Evaluated | Skipped]:
        """One of each as they end; the cheapest builds first, so that no device waits for one that takes long.

        No wait here has a deadline of its own: builds end by theirs, and judges by those that they set for each step.

        That is Johnson's rule for two stages (Naval Research Logistics Quarterly 1, 1954),
        with evaluations that all take as long. On a CPU everything is built before anything is timed.
        """
        if not pairs:
            return
        shown = Shown(status)
        with self.line(len(pairs), dataclasses.replace(self.options, workload=workload)) as line:
            if self.device["type"] != "cpu":
                pairs = sorted(pairs, key=lambda pair: line.cost(pair[1]).seconds)
            ends = line.submit_all([(file, solution, shown.phase_of(solution.name)) for file, solution in pairs])
            for end in as_completed(ends):
                yield end.result()

    @contextlib.contextmanager
    def line(self, at_once: int, options: Options | None = None) -> Iterator[BuildQueue]:
        """Takes solutions as they come, about ``at_once`` of them in flight; left with an error, judges are killed."""
        server, self._server = self._server, ForkServer()
        line = BuildQueue(options or self.options, self._judges, server, at_once)
        try:
            yield line
        except BaseException:
            self.kill()
            raise
        finally:
            line.close()

    def close(self) -> None:
        self._server.close()
        with ThreadPoolExecutor() as pool:  # each takes a moment
            list(pool.map(Judge.close, self._judges))

    def kill(self) -> None:
        self._server.close()
        for judge in self._judges:
            judge.kill()


class BuildQueue:
    """Builds on all cores and one queue for all devices; ``submit`` may be called from several threads.

    On GPUs builds and evaluations overlap; on a CPU what is there to be built is built
    first, because a compiler on the same cores would spoil the timings. ``server`` is taken over.
    """

    def __init__(self, options: Options, judges: list[Judge], server: ForkServer, at_once: int):
        self._options = options
        self._built: queue.SimpleQueue = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._unfinished: dict[Future, Order] = {}
        self._judges_left = len(judges)
        self._reason: str | None = None  # why no device is left
        self._handed_on: set[Future] = set()  # what a lost device had, tried once more on another
        # problems and workloads whose reference hangs or does not fit: why, and until when
        self._unfit: dict[tuple[ProblemFile, Any], tuple[str, float]] = {}
        jobs = options.jobs or builds_at_once(judges[0].device["type"], len(judges))
        self._server = server
        self._context = BuildContext(
            self._server, judges[0].arch, judges[0].torch_version, options.build_timeout_s, options.memory_bytes,
            jobs=max(1, usable_cores() // min(jobs, at_once)), translators=translators(options.precision),
        )  # fmt: skip
        self._memory = MemoryBudget(int(available_memory_bytes() * _MEMORY_SHARE))
        self._cores = TimingLock(shared=judges[0].device["type"] != "cpu")
        self._pool = ThreadPoolExecutor(jobs)
        self._threads = [threading.Thread(target=self._judge, args=(judge,), daemon=True) for judge in judges]
        for thread in self._threads:
            thread.start()

    def submit(
        self,
        file: ProblemFile,
        solution: Solution,
        phase: Phase = lambda text: None,
        failure: CandidateFailure | None = None,
    ) -> Future:
        """A future of Evaluated or Skipped of the workload that the options name."""
        return self.order([Order(file, solution, phase, failure)])[0]

    def submit_all(self, work: list[tuple[ProblemFile, Solution, Phase]]) -> list[Future]:
        """Submit several at once: on a CPU none is timed before all are built."""
        return self.order([Order(*one) for one in work])

    def order(self, orders: list[Order]) -> list[Future]:
        """Submit several orders at once; a future of the answer of each."""
        self._cores.announce(len(orders))
        return [self._start(order) for order in orders]

    def build(self, file: ProblemFile, solution: Solution, phase: Phase = lambda text: None) -> Future:
        """A future of the artefact of a solution, for which no device is asked; it raises what a build raises."""
        self._cores.announce(1)
        return self._pool.submit(self._build, Order(file, solution, phase))

    def _start(self, order: Order) -> Future:
        ended: Future = Future()
        ended.set_running_or_notify_cancel()
        with self._lock:
            self._unfinished[ended] = order
            lost = self._judges_left == 0
        if lost:
            self._end(ended, Skipped(order.solution, self._no_device()))
        building = self._pool.submit(self._build, order)
        building.add_done_callback(lambda built: self._built.put(_Built(order, built, ended)))
        return ended

    def cost(self, solution: Solution) -> Cost:
        """Return what the build will take; what cannot be told is for the build to report."""
        try:
            return expected_cost(solution, self._context)
        except (CacheError, MachineFault, OSError):
            return NOTHING

    def _build(self, order: Order) -> tuple[Artefact | None, Any]:
        """The artefact, and the answer where it is known already."""
        with self._cores.building():
            if order.failure:
                raise order.failure
            if order.solution is None:
                return None, None
            artefact = self._built_in_turn(order)
            return artefact, order.known(artefact)

    def _built_in_turn(self, order: Order) -> Artefact:
        """Build; once more with the machine to itself where others may be to blame, who had the cores or the disk."""
        with self._memory.taken(self.cost(order.solution).memory_bytes) as beside_others:
            try:
                return self._built_once(order)
            except (CandidateFailure, MachineFault) as failure:
                if not _may_be_of_others(failure) or not beside_others():
                    raise
        with self._memory.taken(None):
            return self._built_once(order)

    def _built_once(self, order: Order) -> Artefact:
        order.phase("building")
        try:
            return build(order.solution, self._context, order.file.path)
        finally:
            order.phase("built")

    def _judge(self, judge: Judge) -> None:
        """Evaluate what is built, one after the other, as long as there is a device: the work of one thread."""
        while not judge.lost and (built := self._built.get()):
            try:
                self._judge_one(judge, built)
            except BaseException:  # nobody waits for ever for a slip of ours
                self._end(built.ended, Skipped(built.order.solution, f"{OUR_OWN}:\n{traceback.format_exc()}"))
        with self._lock:
            self._judges_left -= 1
            self._reason = judge.lost
            left = [] if self._judges_left or not judge.lost else list(self._unfinished.items())
        for ended, order in left:
            self._end(ended, Skipped(order.solution, self._no_device()))

    def _judge_one(self, judge: Judge, built: _Built) -> None:
        order, ended = built.order, built.ended
        if ended.done():
            return
        case = order.file, order.workload
        reason, until = self._unfit.get(case, ("", 0.0))
        if time.monotonic() < until:  # what took one solution's time for nothing takes no other's
            self._end(ended, Skipped(order.solution, reason))
            return
        item = self._answer(judge, built)
        if isinstance(item, Skipped) and item.every and not judge.lost:  # whose device may be to blame
            self._unfit[case] = item.reason, time.monotonic() + _UNFIT_S
        if not (judge.lost and isinstance(item, Skipped) and self._hand_on(built)):
            self._end(ended, item)

    def _answer(self, judge: Judge, built: _Built) -> Any:
        """Return what the build knows already, else the judge's answer; an exception is one, too."""
        order = built.order
        if built.artefact.exception() is None and (known := built.artefact.result()[1]) is not None:
            order.phase("")
            return known
        workload = self._options.workload if order.workload is AS_OPTIONS else order.workload
        with self._cores.timing():
            order.phase("judging")
            try:
                told = lambda text: order.phase(f"judging: {text}")  # noqa: E731
                return asked(judge, order, workload, lambda: self._artefact(built), told)
            except Exception:  # whatever it was about this candidate, the others go on
                return Skipped(order.solution, f"{OUR_OWN}:\n{traceback.format_exc()}")
            except BaseException as error:
                return error
            finally:
                order.phase("")

    def _artefact(self, built: _Built) -> Artefact | None:
        """Return what was built; what others took the room of in the cache meanwhile is built again."""
        artefact = built.artefact.result()[0]
        if artefact is None or all(map(Cache().renew, artefact.keys)):
            return artefact
        return self._built_in_turn(built.order)

    def _hand_on(self, built: _Built) -> bool:
        """Leave what a lost device had to another, once; whether there may be another."""
        with self._lock:
            if self._judges_left < 2 or built.ended in self._handed_on:
                return False
            self._handed_on.add(built.ended)
        self._built.put(built)
        return True

    def _no_device(self) -> str:
        return f"no device is left to evaluate on: {self._reason}"

    def _end(self, ended: Future, item: Any) -> None:
        with self._lock:
            if self._unfinished.pop(ended, None) is None:
                return
        if isinstance(item, BaseException):
            ended.set_exception(item)
        else:
            ended.set_result(item)

    def close(self) -> None:
        """Take no more work; what is unfinished stays so."""
        self._cores.share()
        for _ in self._threads:
            self._built.put(None)
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._server.close()  # ends the builds that run, which the pool would wait for


def _may_be_of_others(failure: CandidateFailure | MachineFault) -> bool:
    """Return whether a build may have failed for want of cores, memory, room or processes, which others took."""
    by_the_machine = isinstance(failure, MachineFault) or isinstance(failure.__cause__, MachineFault)  # each time
    if by_the_machine or failure.status is Verdict.TIMEOUT or failure.killed_by:
        return True
    return any(text in failure.message + failure.log for text in _TAKEN_BY_OTHERS)


def builds_at_once(device_type: str, judges: int) -> int:
    """Return as many as there are cores on a CPU, where nothing is timed meanwhile.

    Beside GPUs each build gets a core for its host's compiler and one for the device's, and each judge one: the
    first build ends in half the time, and a GPU is at work as much sooner.
    """
    return usable_cores() if device_type == "cpu" else max(1, (usable_cores() - judges) // _COMPILERS)
