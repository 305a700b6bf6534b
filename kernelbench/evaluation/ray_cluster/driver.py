"""The driver of a run on a Ray cluster: it hands out work, and gives what a lost node had to another."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import time
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

from harness.compile.cost import NOTHING, Cost, compile_cost
from harness.problem.module import ProblemFile
from harness.result import CandidateFailure, first_line
from harness.solution.discover import Solution
from kernelbench import __version__
from kernelbench.evaluation.executor import EnvironmentUnfit, Evaluated, Options, Pair, Skipped, Status
from kernelbench.evaluation.ray_cluster.file_transfer import pack, pack_nothing

try:
    import ray
    from ray.exceptions import RayError, RayTaskError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError:
    ray = None
if ray:
    from kernelbench.evaluation.ray_cluster.node import Built, Timer, build_parcel

_ATTEMPTS = 3  # of an evaluation whose node is lost; Ray counts those of builds
_RECRUIT_S = 5.0  # how often to look for nodes that have joined
_GOODBYE_S = 15.0
_REACH_S = 10.0
_READY_S = 600.0  # until a timer greets: Ray starts a process, which has 300 s to start a judge
# Without any news, until the cluster is asked for a sign, and then again until it is given up. An evaluation may take
# hours, and has an end at each of its steps.
_SILENT_S = 600.0


class Cluster:
    """The executor of a Ray cluster; its nodes get ready for ``builds`` with the first that they have."""

    def __init__(self, options: Options, builds: bool):
        self._options = options
        self._timers: dict[tuple[str, int], Any] = {}  # by node and number on it
        self._starting: dict[Any, tuple[str, int]] = {}  # hello -> timer
        self._idle: list[tuple[str, int]] = []
        self._refused: dict[tuple[str, int], str] = {}
        self._ours = _connect(options)
        try:
            self._on_gpus = _on_gpus(options.device)
            self._meet()
        except BaseException:
            self.kill()
            raise

    def _meet(self) -> None:
        """Learn from a first timer what the devices are."""
        if self._on_gpus:
            self._recruit()
            while self._starting and not self._idle:
                greeted = ray.wait(list(self._starting), num_returns=1, timeout=_READY_S)[0]
                if not greeted:
                    raise EnvironmentUnfit(f"no node of the Ray cluster was ready within {_READY_S:g} s")
                self._welcome(greeted[0])
            if not self._idle:
                raise EnvironmentUnfit("\n".join(self._refused.values()) or "the Ray cluster has no GPU")
            return
        probe = ray.remote(Timer).options(num_cpus=1).remote(self._options, "cpu")
        try:
            self._check(ray.get(probe.hello.remote(), timeout=_READY_S))
        except RayError as error:  # a timeout is one
            raise EnvironmentUnfit(_no_timer(error)) from None
        finally:
            ray.kill(probe)

    def _check(self, hello: dict[str, Any]) -> None:
        """Take over the first device; refuse another one than that, or other software."""
        if "unfit" in hello:
            raise EnvironmentUnfit(hello["unfit"])
        if not hasattr(self, "device"):
            self.device, self.devices = hello["device"], max(1, len(self._slots()))
            self._arch, self.torch_version, self.missing = hello["arch"], hello["torch"], hello["missing"]
        ours = (self.device["name"], self.torch_version, __version__)
        theirs = (hello["device"]["name"], hello["torch"], hello["kernelbench"])
        if ours != theirs:
            raise EnvironmentUnfit(f"a node with {', '.join(theirs)} stays idle: this run is with {', '.join(ours)}")

    def _slots(self) -> dict[tuple[str, int], dict[str, float]]:
        """Return what a timer would own, for every device of the nodes that are alive."""
        slots = {}
        for node in ray.nodes():
            owned = node["Resources"] if node["Alive"] else {}
            if self._on_gpus:
                slots |= {(node["NodeID"], k): {"num_gpus": 1, "num_cpus": 0} for k in range(int(owned.get("GPU", 0)))}
            elif owned.get("CPU", 0) >= 1:
                slots[node["NodeID"], 0] = {"num_cpus": owned["CPU"]}
        return slots

    @property
    def has_no_core_left(self) -> bool:
        """Return whether timers own the cores of the nodes, so that Ray has no place for a build: they build it."""
        return not self._on_gpus and bool(self._timers)

    def _recruit(self) -> None:
        """Start a timer for every device that has none."""
        for slot, owned in self._slots().items():
            if slot in self._timers or slot in self._refused:
                continue
            here = NodeAffinitySchedulingStrategy(slot[0], soft=False)
            device = "cuda" if self._on_gpus else "cpu"
            timer = ray.remote(Timer).options(scheduling_strategy=here, **owned).remote(self._options, device)
            self._timers[slot] = timer
            self._starting[timer.hello.remote()] = slot

    def _welcome(self, ref) -> None:
        slot = self._starting.pop(ref)
        try:
            self._check(ray.get(ref))
            self._idle.append(slot)
        except (RayError, EnvironmentUnfit) as error:
            self._refused[slot] = _no_timer(error) if isinstance(error, RayError) else str(error)
            ray.kill(self._timers.pop(slot))

    def evaluate(
        self, pairs: list[Pair], status: Status = lambda what, text: None, workload: str | None = None
    ) -> Iterator[Evaluated | Skipped]:
        """One of each as they end. Without GPUs everything is built before the first is timed."""
        if pairs:
            evaluation = Evaluation(self, status)
            evaluation.add(pairs, workload)
            while evaluation.left:
                yield from evaluation.step(_RECRUIT_S)

    def close(self) -> None:
        goodbyes = [timer.close.remote() for timer in self._timers.values()]
        if goodbyes:
            ray.wait(goodbyes, num_returns=len(goodbyes), timeout=_GOODBYE_S)
        self.kill()

    def kill(self) -> None:
        for timer in self._timers.values():
            ray.kill(timer)
        self._timers.clear()
        if self._ours:
            ray.shutdown()


class Evaluation:
    """Items that are built, that wait for a device, and that are timed; ``left`` is all of it."""

    def __init__(self, cluster: Cluster, status: Status = lambda what, text: None):
        self._cluster, self._status = cluster, status
        self._sources: dict[ProblemFile, Any] = {}
        self._parcels: dict[Solution, Any] = {}
        self.left: dict[Solution, tuple[ProblemFile, str | None]] = {}  # with the workload
        self._skipped: list[Skipped] = []  # before anything was done
        self._waiting: deque[tuple[Solution, Any]] = deque()
        self._building: dict[Any, Solution] = {}
        self._running: dict[Any, tuple[Solution, Any, tuple[str, int]]] = {}
        self._lost: Counter[Solution] = Counter()
        self._news = time.monotonic()
        self._sign: Any = None  # of the cluster, once it was asked for one

    def add(self, pairs: list[Pair], workload: str | None, failure: CandidateFailure | None = None) -> None:
        """Begin with these; with ``failure`` they are known to have failed, and only get their records."""
        for file in {file for file, _ in pairs} - self._sources.keys():
            self._sources[file] = ray.put(file.path.read_bytes())
        self.left |= {solution: (file, workload) for file, solution in pairs}
        solutions = [solution for _, solution in pairs]
        if failure:
            for solution in solutions:
                self._record(solution, failure)
        else:
            self._submit_builds(solutions)
        self._news = time.monotonic()

    def step(self, timeout_s: float) -> Iterator[Evaluated | Skipped]:
        """Wait up to ``timeout_s`` seconds for news, and return what has ended."""
        cluster = self._cluster
        skipped, self._skipped = self._skipped, []
        for item in skipped:
            del self.left[item.solution]
            yield item
        if not self.left:
            return
        if cluster._on_gpus or not self._building:
            cluster._recruit()
            self._hand_out()
        self._show()
        watched = [*self._building, *cluster._starting, *self._running]
        if not watched:
            reasons = "; ".join(dict.fromkeys(cluster._refused.values()))
            yield from self._give_up(f"no node is left to evaluate on{': ' + reasons if reasons else ''}")
            return
        if time.monotonic() - self._news > _SILENT_S:
            if self._sign is not None:
                yield from self._give_up(f"the Ray cluster gave no sign for {_SILENT_S:g} s; look at `ray status`")
                return
            self._sign = ray.remote(_give_a_sign).options(num_cpus=0).remote()
            self._news = time.monotonic()
        for ref in ray.wait([*watched, *filter(None, [self._sign])], num_returns=1, timeout=timeout_s)[0]:
            if ref == self._sign:
                self._take_sign()
                continue
            self._news = time.monotonic()
            if ref in cluster._starting:
                cluster._welcome(ref)
            elif ref in self._building:
                self._take_build(ref)
            elif (item := self._take_result(ref)) and self.left.pop(item.solution, None):  # not given up before
                del self._parcels[item.solution]
                yield item

    def _submit_builds(self, solutions: list[Solution]) -> None:
        """Submit builds in order of cost, so that no device waits for a long one."""
        cluster, options = self._cluster, self._cluster._options
        task = ray.remote(build_parcel)
        largest = max((node["Resources"].get("memory", 0) for node in ray.nodes() if node["Alive"]), default=0)
        costs: dict[Solution, Cost] = {}
        for solution in solutions:
            try:
                costs[solution] = compile_cost(solution)
            except OSError as error:
                self._skipped.append(Skipped(solution, f"it cannot be read: {error.strerror}"))
        for solution, cost in sorted(costs.items(), key=lambda item: item[1].seconds):
            try:
                self._parcels[solution] = ray.put(pack(solution))
            except CandidateFailure as failure:
                self._record(solution, failure)
                continue
            except OSError as error:
                self._skipped.append(Skipped(solution, f"it cannot be read: {error.strerror}"))
                continue
            if cost == NOTHING or cluster.has_no_core_left:
                self._waiting.append((solution, Built()))
                continue
            placed = task.options(num_cpus=1, memory=min(cost.memory_bytes, largest), max_retries=_ATTEMPTS - 1)
            ref = placed.remote(self._parcels[solution], options, cluster._arch, cluster.torch_version)
            self._building[ref] = solution

    def _record(self, solution: Solution, failure: CandidateFailure) -> None:
        """Have a node write the record of a solution that has failed already."""
        self._parcels[solution] = ray.put(pack_nothing(solution))
        self._waiting.append((solution, Built(failure=(failure.status, failure.message, failure.log))))

    def _take_build(self, ref) -> None:
        solution = self._building.pop(ref)
        try:
            # Put again by the driver, which outlives every node: else it would be lost with the node that built it.
            built = ray.put(ray.get(ref))
        except RayError:
            built = Built()  # its nodes failed, or were lost time and again; the one that evaluates builds it
        self._waiting.append((solution, built))

    def _hand_out(self) -> None:
        while self._waiting and self._cluster._idle:
            slot = self._cluster._idle.pop()
            solution, built = self._waiting.popleft()
            file, workload = self.left[solution]
            timer = self._cluster._timers[slot]
            ref = timer.evaluate.remote(file, self._sources[file], self._parcels[solution], built, workload)
            self._running[ref] = (solution, built, slot)

    def _take_result(self, ref) -> Evaluated | Skipped | None:
        """None where the node was lost, and the solution waits for another."""
        solution, built, slot = self._running.pop(ref)
        try:
            item = ray.get(ref)
        except RayTaskError as error:  # as on a full disk; its device is still there
            self._cluster._idle.append(slot)
            return Skipped(solution, f"a node could not evaluate it: {error.cause!r}")
        except RayError as error:
            self._cluster._timers.pop(slot)
            self._lost[solution] += 1
            if self._lost[solution] < _ATTEMPTS and solution in self.left:
                self._waiting.appendleft((solution, built))
                return None
            reason = first_line(str(error))
            return Skipped(solution, f"its node was lost {_ATTEMPTS} times, the last time: {reason}")
        self._cluster._idle.append(slot)
        return dataclasses.replace(item, solution=solution)

    def _take_sign(self) -> None:
        sign, self._sign = self._sign, None
        with contextlib.suppress(RayError):  # as of a node that is lost: another one is asked
            ray.get(sign)
            self._news = time.monotonic()

    def _give_up(self, reason: str) -> Iterator[Skipped]:
        given_up, self.left = list(self.left), {}
        for of_them in (self._waiting, self._building, self._parcels):
            of_them.clear()
        for solution in given_up:
            yield Skipped(solution, reason)

    def _show(self) -> None:
        self._status("building", f"{len(self._building)}" if self._building else "")
        self._status("judging", ", ".join(solution.name for solution, _, _ in self._running.values()))


def _give_a_sign() -> None:
    """Run on any node of a cluster that is there."""


def _connect(options: Options) -> bool:
    """Return whether the connection is ours to close."""
    if ray is None:
        raise EnvironmentUnfit("--executor ray needs Ray: pip install 'kernelbench[ray]'")
    if ray.is_initialized():
        return False
    try:
        _check_port(options.address)
        ray.init(address=options.address, log_to_driver=False, logging_level="ERROR")
    except (OSError, ValueError, RuntimeError, RayError) as error:
        where = options.address or "the cluster that it finds"
        raise EnvironmentUnfit(f"Ray does not connect to {where}: {error}") from None
    return True


def _check_port(address: str | None) -> None:
    """Raises OSError where nobody listens, for which Ray itself waits several minutes."""
    host, _, port = (address or "").rpartition(":")
    if host and port.isdigit() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=_REACH_S).close()


def _on_gpus(device: str | None) -> bool:
    if device not in (None, "cpu", "cuda", "cuda:all"):
        raise EnvironmentUnfit(f"--executor ray takes --device cpu or cuda, not {device}: Ray says which GPU")
    return ray.cluster_resources().get("GPU", 0) >= 1 if device is None else device != "cpu"


def _no_timer(error: Exception) -> str:
    reason = str(error).strip().rpartition("\n")[2]
    return f"a node cannot evaluate; it needs kernelbench {__version__}, PyTorch and Ray as here: {reason}"
