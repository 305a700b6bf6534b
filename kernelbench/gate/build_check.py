"""Builds of solutions that this machine cannot run: all that a gate without a GPU can say of a CUDA source."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from harness.compile import BuildContext, build
from harness.compile.artefact import ToolchainError
from harness.faults import MachineFault
from harness.isolated_call import ApartError, TooMuch, apart
from harness.process.fork_server import ForkServer
from harness.process.procfs import default_memory_bytes
from harness.result import CandidateFailure
from harness.solution.discover import Solution
from harness.solution.private_copy import Changed, PrivateCopies, private_copies
from kernelbench import suite
from kernelbench.ucutlass.codegen.build.translate import translators


class Build(NamedTuple):
    """``built`` says whether a solution builds (None: not tried), ``message`` what there is to say."""

    built: bool | None
    message: str


class NotMade(Build):
    """A build that this machine should have made and could not: another try may end otherwise."""


def build_only(
    solutions: Sequence[Solution],
    arch: str,
    problem_dir: Path | None,
    *,
    precision: str,
    timeout_s: float,
    memory_bytes: int | None,
) -> list[Build]:
    """Build each solution for ``arch``, a compute capability as in 9.0; ``problem_dir`` has what they solve.

    The others are as in an evaluation: the type of tensors, and limits of one build.
    """
    if not solutions:
        return []
    torch_version = importlib.metadata.version("torch")
    with ForkServer() as server, private_copies() as copies:
        context = BuildContext(server, arch, torch_version, timeout_s=timeout_s,
                               memory_bytes=memory_bytes or default_memory_bytes(),
                               translators=translators(precision))  # fmt: skip
        files = {file.id: file.path for file in suite.find("all", problem_dir)}
        return [_build(solution, copies, context, files.get(solution.problem)) for solution in solutions]


def _build(original: Solution, copies: PrivateCopies, context: BuildContext, problem: Path | None) -> Build:
    copies.release()  # of the one before: so none takes the room of others
    try:
        solution = copies.of(original)
    except Changed:
        return NotMade(None, "not built: one of its files changed meanwhile")
    except OSError as error:
        return NotMade(None, f"not built: its files cannot be copied: {error.strerror}")
    if solution.kind == "py" and solution.language == "cuda":
        # its import would build against the PyTorch that is here, which may be one without CUDA
        return _parse(solution)
    try:
        build(solution, context, problem)
    except CandidateFailure as failure:
        return Build(False, failure.message)
    except ToolchainError as error:  # a language of Python's that is not installed here still has its syntax
        return _parse(solution) if solution.kind == "py" else Build(None, f"not built: {error}")
    except MachineFault as error:
        return NotMade(None, f"not built: {error}")
    return Build(True, "built only" if solution.kind in ("cu", "dsl") else "only its syntax was checked")


def _parse(solution: Solution) -> Build:
    try:
        error = apart("harness.solution.source_facts:python", str(solution.path), str(solution.root))["error"]
    except (TooMuch, ApartError) as failed:  # what parsing takes is the candidate's affair
        error = f"it cannot be read: {failed}"
    return Build(False, error) if error else Build(True, "only its syntax was checked")
