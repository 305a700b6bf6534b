"""Evaluation on the nodes of a Ray cluster: builds on their cores, one judge for each of their GPUs.

Ray places, retries and notices what is lost; there is no scheduler here. A build
is a task on one core that holds the memory it is expected to take. A judge lives
in an actor that owns a whole GPU; without GPUs, in one that owns all the cores
of a node, so that no build and no other timing goes on beside it. What is
running on a node when it is lost is given to another one.

Nodes need this package, PyTorch and compilers, and share no files: a solution
travels with the files beside it that it names, a problem with its source, and
what was built as entries of the cache. Ray's own processes never run a
candidate: that happens in workers which the harness forks, as on one host. But
Ray asks nobody who connects to it for a password, so a candidate that looks for
its ports can do what Ray's users can.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import socket
import tempfile
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.build import BuildContext, CacheError, build
from harness.build.artefact import Artefact, ToolchainError
from harness.build.cache import Cache, key_of
from harness.build.cost import NOTHING, compile_cost
from harness.problem import ProblemFile
from harness.process import fork_server
from harness.result import CandidateFailure
from harness.solution import Solution
from kernelbench import __version__
from kernelbench.execution import EnvironmentUnfit, Evaluated, Options, Pair, Skipped, Status
from kernelbench.judges import Judge, judged

try:
    import ray
    from ray.exceptions import RayError, RayTaskError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError:
    ray = None

_ATTEMPTS = 3  # of an evaluation whose node is lost; Ray counts those of builds
_RECRUIT_S = 5.0  # how often to look for nodes that have joined
_GOODBYE_S = 15.0
_REACH_S = 10.0
_FILE_NAME = re.compile(r"[\w-][\w.-]*\.\w+")


@dataclass(frozen=True)
class Parcel:
    """One solution with the files that it names, on its way to a node."""

    solution: Solution  # its path below the folder of solutions
    files: dict[str, bytes]  # by their paths below it

    @contextlib.contextmanager
    def unpacked(self) -> Iterator[Solution]:
        """The solution in a folder of its own, which goes again."""
        with tempfile.TemporaryDirectory(prefix="kb-") as folder:
            for name, content in self.files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            yield dataclasses.replace(self.solution, path=Path(folder, self.solution.path))


@dataclass(frozen=True)
class Built:
    """What a build on some node came to: entries of its cache by key, or how it failed."""

    entries: dict[str, dict[str, bytes]] = field(default_factory=dict)
    seconds: float = 0.0
    cached: bool | None = None  # None: left to the node that evaluates
    failure: tuple | None = None  # status, message, log
    unfit: str | None = None


def build_parcel(parcel: Parcel, options: Options, arch: str | None, torch_version: str) -> Built:
    """The task of one core."""
    with parcel.unpacked() as solution:
        try:
            artefact = build(solution, _context(options, arch, torch_version))
            entries = {key: Cache().contents(key) for key in artefact.keys}
        except CandidateFailure as failure:
            return Built(failure=(failure.status, failure.message, failure.log))
        except (ToolchainError, CacheError) as error:
            return Built(unfit=str(error))
    return Built({key: files for key, files in entries.items() if files}, artefact.seconds, artefact.cached)


class Timer:
    """The actor of one device; its judge is a process of its own."""

    def __init__(self, options: Options, device: str):
        os.environ.pop("OMP_NUM_THREADS", None)  # Ray's, by the cores of the actor; timings are to be as elsewhere
        self._options = options
        self._judge = Judge(options, device)

    def hello(self) -> dict[str, Any]:
        try:
            self._judge.wait_until_ready()
        except EnvironmentUnfit as error:
            return {"unfit": str(error)}
        judge = self._judge
        return {"device": judge.device, "arch": judge.arch, "torch": judge.torch_version, "kernelbench": __version__}

    def evaluate(
        self, problem: ProblemFile, source: bytes, parcel: Parcel, built: Built, workload: str | None
    ) -> Evaluated | Skipped:
        """Check and time one solution; what was built elsewhere is found in this node's cache."""
        path = _placed(problem.path.name, source)
        with parcel.unpacked() as solution:
            item = judged(
                self._judge, dataclasses.replace(problem, path=path), solution, workload,
                lambda: self._artefact(solution, built), lambda phase: None,
            )  # fmt: skip
        if self._judge.lost:
            ray.actor.exit_actor()  # its device is gone; the driver hears of it and gives the work to another
        return item

    def _artefact(self, solution: Solution, built: Built) -> Artefact:
        """Built once more, which the entries that came along make quick; compiled here where they do not fit."""
        if built.failure:
            raise CandidateFailure(*built.failure)
        if built.unfit:
            raise ToolchainError(built.unfit)
        for key, contents in built.entries.items():
            Cache().add(key, contents)
        artefact = build(solution, _context(self._options, self._judge.arch, self._judge.torch_version))
        if built.cached is None or not artefact.cached:
            return artefact
        return dataclasses.replace(artefact, cached=built.cached, seconds=built.seconds)

    def close(self) -> None:
        self._judge.close()


class Cluster:
    """The executor of a Ray cluster."""

    def __init__(self, options: Options):
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
                self._welcome(ray.wait(list(self._starting), num_returns=1)[0][0])
            if not self._idle:
                raise EnvironmentUnfit("\n".join(self._refused.values()) or "the Ray cluster has no GPU")
            return
        probe = ray.remote(Timer).options(num_cpus=1).remote(self._options, "cpu")
        try:
            self._check(ray.get(probe.hello.remote()))
        except RayError as error:
            raise EnvironmentUnfit(_no_timer(error)) from None
        finally:
            ray.kill(probe)

    def _check(self, hello: dict[str, Any]) -> None:
        """Take over the first device; refuse another one than that, or other software."""
        if "unfit" in hello:
            raise EnvironmentUnfit(hello["unfit"])
        if not hasattr(self, "device"):
            self.device, self.devices = hello["device"], max(1, len(self._slots()))
            self._arch, self.torch_version = hello["arch"], hello["torch"]
        ours = (self.device["name"], self.torch_version, __version__)
        theirs = (hello["device"]["name"], hello["torch"], hello["kernelbench"])
        if ours != theirs:
            raise EnvironmentUnfit(f"a node with {', '.join(theirs)} stays idle: this run is with {', '.join(ours)}")

    def _slots(self) -> dict[tuple[str, int], dict[str, float]]:
        """What a timer would own, for every device of the nodes that are alive."""
        slots = {}
        for node in ray.nodes():
            owned = node["Resources"] if node["Alive"] else {}
            if self._on_gpus:
                slots |= {(node["NodeID"], k): {"num_gpus": 1, "num_cpus": 0} for k in range(int(owned.get("GPU", 0)))}
            elif owned.get("CPU", 0) >= 1:
                slots[node["NodeID"], 0] = {"num_cpus": owned["CPU"]}
        return slots

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
            yield from _Evaluation(self, pairs, status, workload).ended()

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


class _Evaluation:
    """One stream of pairs: what is being built, what waits for a device, what is being timed."""

    def __init__(self, cluster: Cluster, pairs: list[Pair], status: Status, workload: str | None):
        self._cluster, self._status, self._workload = cluster, status, workload
        self._names = _files_by_name(pairs[0][1])
        self._sources = {file: ray.put(file.path.read_bytes()) for file in {file for file, _ in pairs}}
        self._parcels: dict[Solution, Any] = {}
        self._left = {solution: file for file, solution in pairs}
        self._waiting: deque[tuple[Solution, Any]] = deque()
        self._building: dict[Any, Solution] = {}
        self._running: dict[Any, tuple[Solution, Any, tuple[str, int]]] = {}
        self._lost: Counter[Solution] = Counter()

    def ended(self) -> Iterator[Evaluated | Skipped]:
        self._submit_builds()
        cluster = self._cluster
        while self._left:
            if cluster._on_gpus or not self._building:
                cluster._recruit()
                self._hand_out()
            self._show()
            watched = [*self._building, *cluster._starting, *self._running]
            if not watched:
                yield from self._give_up()
                return
            for ref in ray.wait(watched, num_returns=1, timeout=_RECRUIT_S)[0]:
                if ref in cluster._starting:
                    cluster._welcome(ref)
                elif ref in self._building:
                    self._take_build(ref)
                elif item := self._take_result(ref):
                    del self._left[item.solution]
                    yield item

    def _submit_builds(self) -> None:
        """In order of what they cost, so that no device waits for one that takes long."""
        cluster, options = self._cluster, self._cluster._options
        task = ray.remote(build_parcel)
        largest = max((node["Resources"].get("memory", 0) for node in ray.nodes() if node["Alive"]), default=0)
        costs = {solution: compile_cost(solution) for solution in self._left}
        for solution, cost in sorted(costs.items(), key=lambda item: item[1].seconds):
            self._parcels[solution] = ray.put(_pack(solution, self._names))
            if cost == NOTHING:
                self._waiting.append((solution, Built()))
                continue
            placed = task.options(num_cpus=1, memory=min(cost.memory_bytes, largest), max_retries=_ATTEMPTS - 1)
            ref = placed.remote(self._parcels[solution], options, cluster._arch, cluster.torch_version)
            self._building[ref] = solution

    def _take_build(self, ref) -> None:
        solution = self._building.pop(ref)
        try:
            # Put again by the driver, which outlives every node: else it would be lost with the node that built it.
            built = ray.put(ray.get(ref))
        except RayTaskError:
            raise
        except RayError:
            built = Built()  # its nodes were lost time and again; the one that evaluates builds it
        self._waiting.append((solution, built))

    def _hand_out(self) -> None:
        while self._waiting and self._cluster._idle:
            slot = self._cluster._idle.pop()
            solution, built = self._waiting.popleft()
            file = self._left[solution]
            timer = self._cluster._timers[slot]
            ref = timer.evaluate.remote(file, self._sources[file], self._parcels[solution], built, self._workload)
            self._running[ref] = (solution, built, slot)

    def _take_result(self, ref) -> Evaluated | Skipped | None:
        """None where the node was lost, and the solution waits for another."""
        solution, built, slot = self._running.pop(ref)
        try:
            item = ray.get(ref)
        except RayTaskError:
            raise
        except RayError as error:
            self._cluster._timers.pop(slot)
            self._lost[solution] += 1
            if self._lost[solution] < _ATTEMPTS:
                self._waiting.appendleft((solution, built))
                return None
            reason = str(error).splitlines()[0]
            return Skipped(solution, f"its node was lost {_ATTEMPTS} times, the last time: {reason}")
        self._cluster._idle.append(slot)
        return dataclasses.replace(item, solution=solution)

    def _give_up(self) -> Iterator[Skipped]:
        reasons = "; ".join(dict.fromkeys(self._cluster._refused.values()))
        for solution in self._left:
            yield Skipped(solution, f"no node is left to evaluate on{': ' + reasons if reasons else ''}")

    def _show(self) -> None:
        self._status("building", f"{len(self._building)}" if self._building else "")
        self._status("judging", ", ".join(solution.name for solution, _, _ in self._running.values()))


def _connect(options: Options) -> bool:
    """Whether the connection is ours to close."""
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
    reason = str(error).strip().splitlines()[-1]
    return f"a node cannot evaluate; it needs kernelbench {__version__}, PyTorch and Ray as here: {reason}"


def _context(options: Options, arch: str | None, torch_version: str) -> BuildContext:
    return BuildContext(fork_server(), arch, torch_version, options.build_timeout_s, options.memory_bytes)


def _placed(name: str, source: bytes) -> Path:
    """A problem's file on this node: in the cache, where the same one has the same path."""
    key = key_of("problem", name, source.decode(errors="replace"))
    Cache().add(key, {name: source})
    return Cache().get(key) / name


def _root(solution: Solution) -> Path:
    return solution.path.parents[len(Path(solution.name).parts) - 1]


def _files_by_name(solution: Solution) -> dict[str, list[Path]]:
    """All files of the solutions' folder."""
    found: dict[str, list[Path]] = {}
    for path in _root(solution).rglob("*"):
        if path.is_file():
            found.setdefault(path.name, []).append(path)
    return found


def _pack(solution: Solution, by_name: dict[str, list[Path]]) -> Parcel:
    """The solution and every file of its folder whose name it mentions, or one of those mentions."""
    root = _root(solution)
    files: dict[str, bytes] = {}
    todo = [solution.path]
    while todo:
        path = todo.pop()
        name = path.relative_to(root).as_posix()
        if name not in files:
            files[name] = path.read_bytes()
            text = "" if path.suffix == ".so" else files[name].decode(errors="replace")
            todo += [named for mention in set(_FILE_NAME.findall(text)) for named in by_name.get(mention, [])]
    return Parcel(dataclasses.replace(solution, path=solution.path.relative_to(root)), files)
