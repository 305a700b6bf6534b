"""Source -> loadable artefact, in processes of their own, cached by content. Needs no GPU.

A solution kind is one module with a ``build`` function and its line in ``KINDS``.
"""

from __future__ import annotations

import dataclasses
import time

from harness.build import library, prebuilt, python
from harness.build.artefact import Artefact, BuildContext
from harness.build.cache import CacheError
from harness.build.cost import remember
from harness.result import CandidateFailure, Status
from harness.solution import Solution

KINDS = {"py": python.build, "cu": library.build_cuda, "cpp": library.build_cpp, "so": prebuilt.build}

__all__ = ["Artefact", "BuildContext", "CacheError", "build"]


def build(solution: Solution, context: BuildContext) -> Artefact:
    """The artefact of a solution.

    Raises CandidateFailure where the source does not build, ToolchainError where
    this machine cannot build this kind, and CacheError where the cache cannot be
    written.
    """
    begin = time.perf_counter()
    try:
        artefact = KINDS[solution.kind](solution, context)
    except CandidateFailure as failure:
        if failure.status is Status.TIMEOUT:
            failure.message = f"the build took longer than {context.timeout_s:g} s"
        raise
    except OSError as error:
        raise CandidateFailure(Status.BUILD_ERROR, f"cannot build {solution.name}: {error}") from error
    remember(solution, context)
    return dataclasses.replace(artefact, seconds=time.perf_counter() - begin)
