"""Tasks on a node: builds on one core each, and the actor of a device with its judge."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray

from harness.compile import TRANSLATED, BuildContext, build
from harness.compile.artefact import Artefact, ToolchainError
from harness.compile.cache import Cache, key_of
from harness.faults import MachineFault
from harness.problem.module import ProblemFile
from harness.process.fork_server import fork_server
from harness.process.owned_folders import sweep
from harness.result import CandidateFailure
from harness.solution import languages
from harness.solution.discover import Solution
from kernelbench import __version__
from kernelbench.evaluation.executor import EnvironmentUnfit, Evaluated, Options, Skipped
from kernelbench.evaluation.judge_process import Judge, judged
from kernelbench.evaluation.ray_cluster.file_transfer import Parcel
from kernelbench.ucutlass.codegen.build.translate import translators


@dataclass(frozen=True)
class Built:
    """Result of a build on some node: entries of its cache by key, or how it failed."""

    entries: dict[str, dict[str, bytes]] = field(default_factory=dict)
    seconds: float = 0.0
    cached: bool | None = None  # None: left to the node that evaluates
    failure: tuple | None = None  # status, message, log
    unfit: str | None = None


def build_parcel(parcel: Parcel, options: Options, arch: str | None, torch_version: str) -> Built:
    """The task of one core."""
    with parcel.unpacked() as solution:
        if solution.kind in TRANSLATED:
            return Built()  # needs the problem, which the node that evaluates has
        try:
            artefact = build(solution, _context(options, arch, torch_version))
            entries = {key: Cache().contents(key) for key in artefact.keys}
        except CandidateFailure as failure:
            return Built(failure=(failure.status, failure.message, failure.log))
        except ToolchainError as error:
            return Built(unfit=str(error))
        except MachineFault:
            return Built()  # this node's, not the candidate's: the one that evaluates builds it
    return Built({key: files for key, files in entries.items() if files}, artefact.seconds, artefact.cached)


class Timer:
    """The actor of one device; its judge is a process of its own."""

    def __init__(self, options: Options, device: str):
        os.environ.pop("OMP_NUM_THREADS", None)  # Ray's, by the cores of the actor; timings are to be as elsewhere
        self._options = options
        sweep()
        self._judge = Judge(options, device)

    def hello(self) -> dict[str, Any]:
        try:
            self._judge.wait_until_ready()
        except EnvironmentUnfit as error:
            return {"unfit": str(error)}
        judge, missing = self._judge, {name: languages.missing(name) for name in languages.languages()}
        software = {"torch": judge.torch_version, "kernelbench": __version__, "missing": missing}
        return {"device": judge.device, "arch": judge.arch} | software

    def evaluate(
        self, problem: ProblemFile, source: bytes, parcel: Parcel, built: Built, workload: str | None
    ) -> Evaluated | Skipped:
        """Check and time one solution; what was built elsewhere is found in this node's cache."""
        path = _placed(problem.path.name, source)
        with parcel.unpacked() as solution:
            item = judged(
                self._judge, dataclasses.replace(problem, path=path), solution, workload,
                lambda: self._artefact(solution, built, path), lambda phase: None,
            )  # fmt: skip
        if self._judge.lost:
            ray.actor.exit_actor()  # its device is gone; the driver hears of it and gives the work to another
        return item

    def _artefact(self, solution: Solution, built: Built, problem: Path) -> Artefact:
        """Built once more, which the entries that came along make quick; compiled here where they do not fit."""
        if built.failure:
            raise CandidateFailure(*built.failure)
        if built.unfit:
            raise ToolchainError(built.unfit)
        for key, contents in built.entries.items():
            Cache().add(key, contents)
        artefact = build(solution, _context(self._options, self._judge.arch, self._judge.torch_version), problem)
        if built.cached is None or not artefact.cached:
            return artefact
        return dataclasses.replace(artefact, cached=built.cached, seconds=built.seconds)

    def close(self) -> None:
        self._judge.close()


def _context(options: Options, arch: str | None, torch_version: str) -> BuildContext:
    return BuildContext(
        fork_server(), arch, torch_version, options.build_timeout_s, options.memory_bytes,
        translators=translators(options.precision),
    )  # fmt: skip


def _placed(name: str, source: bytes) -> Path:
    """A problem's file on this node: in the cache, where the same one has the same path."""
    key = key_of("problem", name, source.decode(errors="replace"))
    Cache().add(key, {name: source})
    return Cache().get(key) / name
