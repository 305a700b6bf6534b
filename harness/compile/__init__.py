"""Source -> loadable artefact, in processes of their own, cached by content. Needs no GPU.

A solution kind is one module with a ``build`` function and its line in ``KINDS``, or in ``TRANSLATED`` where another
program makes CUDA C++ of it.
"""

from __future__ import annotations

import dataclasses
import errno
import secrets
import time
from pathlib import Path

from harness.compile import library, prebuilt, python, translated
from harness.compile.artefact import Artefact, BuildContext, ToolchainError
from harness.compile.cache import CacheError
from harness.compile.cost import remember
from harness.faults import MachineFault, check_disk
from harness.problem.module import ProblemId
from harness.process.owned_folders import scratch
from harness.result import CandidateFailure, Status
from harness.solution.discover import Solution, read_solution

_COMPILED = ("cpp", "cu")
KINDS = {"py": python.build, "cu": library.build_cuda, "cpp": library.build_cpp, "so": prebuilt.build}
TRANSLATED = {"dsl": translated.build}  # these need the problem too

# The solution's files: missing, unreadable, or none.
_OF_FILES = {errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}
_OF_FILES |= {errno.EINVAL, errno.EFBIG, errno.E2BIG}  # no plain file, larger than a source is, too many includes

__all__ = ["Artefact", "BuildContext", "CacheError", "build", "must_be_readable"]


def build(solution: Solution, context: BuildContext, problem: Path | None = None) -> Artefact:
    """The artefact of a solution; ``problem`` is the module of what it solves, for kinds that are translated.

    Raises CandidateFailure where the source does not build, ToolchainError where
    this machine cannot build this kind, and MachineFault where the machine fails twice,
    CacheError among others. A build whose process was killed is tried again, too: the second
    time it is the candidate's failure. Where the machine fails, and builds another source of
    that kind, there is a third try.
    """
    must_be_readable(solution)
    begin = time.perf_counter()
    try:
        artefact = _built(solution, context, problem)
        if artefact is None:
            artefact = _built(solution, context, problem, last=True)
    except CandidateFailure as failure:
        if failure.status is Status.TIMEOUT:
            failure.message = f"the build took longer than {context.timeout_s:g} s"
        raise
    except ToolchainError:
        raise
    except Exception:  # the machine's, or one of our own that its source has found
        if not _builds_another(solution.kind, context):
            raise
        artefact = _built_at_last(solution, context)
    remember(solution, context)
    return dataclasses.replace(artefact, seconds=time.perf_counter() - begin)


def must_be_readable(solution: Solution) -> None:
    """Raise CandidateFailure where it is refused."""
    if solution.refused:
        raise CandidateFailure(Status.BUILD_ERROR, f"{solution.name} is not built: {solution.refused}")


def _builds_another(kind: str, context: BuildContext) -> bool:
    """Return whether the machine builds a source that is no candidate's, and in no cache; only for compiled kinds."""
    if kind not in _COMPILED:
        return False
    with scratch() as folder:
        path = folder / f"another.{kind}"
        path.write_text(f'extern "C" int another() {{ return 0x{secrets.token_hex(3)}; }}\n')
        try:
            return _built(read_solution(path, problem=ProblemId(1, 1), settings=False), context, None) is not None
        except Exception:
            return False


def _built_at_last(solution: Solution, context: BuildContext) -> Artefact:
    """Return what a third try gives; raise CandidateFailure where the machine fails again, as with nobody else.

    As one that is not evaluated the candidate would count nowhere: its author could withdraw what is wrong.
    """
    try:
        return _built(solution, context, None, last=True)
    except (CandidateFailure, ToolchainError):
        raise
    except Exception as error:
        message = f"the machine failed three times with the build of {solution.name}, not with another: {error}"
        raise CandidateFailure(Status.BUILD_ERROR, message) from error


def _built(
    solution: Solution, context: BuildContext, problem: Path | None, last: bool = False
) -> Artefact | None:
    """The artefact; None where the machine failed, or may have, and this is not the ``last`` try."""
    try:
        try:
            if solution.kind in TRANSLATED:
                return TRANSLATED[solution.kind](solution, context, problem)
            return KINDS[solution.kind](solution, context)
        except (CandidateFailure, FileNotFoundError, PermissionError):  # of the machine's own folders, perhaps
            check_disk()
            raise
    except CandidateFailure as failure:
        if last or not failure.killed_by:
            raise
    except MachineFault:
        if last:
            raise
    except OSError as error:
        if error.errno in _OF_FILES:
            raise CandidateFailure(Status.BUILD_ERROR, f"cannot build {solution.name}: {error}") from error
        if last:
            raise MachineFault(f"cannot build {solution.name}: {error}") from error
    return None
