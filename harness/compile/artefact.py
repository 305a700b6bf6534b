"""Input and output of a build."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.process.fork_server import ForkServer
from harness.process.worker_process import Builder, Worker
from harness.solution.languages import caches


class ToolchainError(Exception):
    """A build needs something that this machine lacks; the message says what to install."""


@dataclass(frozen=True)
class Translator:
    """The way from solutions of a kind to CUDA C++.

    ``command`` is called with the solution's file, the file to write, and ``--problem`` with the problem's module.
    ``folders`` hold headers; ``missing`` says what this machine lacks, '' for nothing.
    """

    command: tuple[str, ...] = field(repr=False)
    flags: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    missing: str = ""

    def to_json(self) -> dict[str, Any]:
        """The translator as JSON, for a process that is told on its command line."""
        return {**vars(self), "folders": [str(folder) for folder in self.folders]}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Translator:
        """Return the translator that ``to_json`` wrote."""
        folders = tuple(map(Path, record["folders"]))
        return cls(tuple(record["command"]), tuple(record["flags"]), folders, record["missing"])


@dataclass(frozen=True)
class BuildContext:
    """``arch`` is the compute capability to build for, as in ``9.0``, or None without a GPU.

    ``translators`` turn solutions of further kinds into CUDA C++, by kind.
    """

    server: ForkServer = field(repr=False)
    arch: str | None
    torch_version: str
    timeout_s: float
    memory_bytes: int
    jobs: int = 1  # compilations that one build may run side by side
    translators: Mapping[str, Translator] = field(default_factory=dict, repr=False)

    def worker(self, *readable: Path, env: dict[str, str] | None = None, build: Builder | None = None) -> Worker:
        """A process to build in, as of ``ForkServer.fork``: it leaves the cores to what is timed meanwhile.

        ``readable`` are real paths.
        """
        return self.server.fork(env or {}, self.memory_bytes, build=build, readable=readable, background=True)


@dataclass(frozen=True)
class Artefact:
    """A built solution: what the worker needs besides the source."""

    library: Path | None = None  # shared library with the symbol `solution`
    env: dict[str, str] = field(default_factory=dict)  # for the worker, so that it finds what was built
    cached: bool = False
    seconds: float = 0.0
    flags: tuple[str, ...] = ()
    compiler: str = ""
    note: str = ""
    keys: tuple[str, ...] = ()  # the entries of the cache that it consists of

    @property
    def writable(self) -> list[Path]:
        """The folders of this candidate alone in which its calls keep what they compile."""
        return [Path(folder) for name, folder in self.env.items() if name in caches()]

    def to_json(self) -> dict:
        return {
            "cached": self.cached,
            "seconds": round(self.seconds, 3),
            "flags": list(self.flags),
            "compiler": self.compiler,
            "note": self.note,
        }
