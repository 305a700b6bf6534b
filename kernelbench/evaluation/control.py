"""Keep a candidate from withdrawing by a machine that fails with it: the reference in its place, and its library.

Of a candidate that may build extensions the reference builds one too, which no cache has: a full disk fails both.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from typing import Any

from harness.compile import Artefact
from harness.compile.cache import Cache
from harness.compile.python import runs_when_built
from harness.job import encode_artefact, encode_solution
from harness.problem.module import ProblemFile
from harness.process.owned_folders import scratch
from harness.solution.discover import Solution, read_solution
from harness.solution.includes import read_bytes

_AS_CANDIDATE = """

ModelNew = Model
"""
_BUILDS = """
from torch.utils import cpp_extension
source = 'extern "C" int kb_control() {{ return 0x{token}; }}'
cpp_extension.load_inline("kb_control", source, no_implicit_headers=True, is_python_module=False)
"""


@contextlib.contextmanager
def reference_as_candidate(
    job: dict[str, Any], file: ProblemFile, solution: Solution
) -> Iterator[dict[str, Any]]:
    """Give the job of a candidate, the ``solution``, with the reference in its place.

    Raises OSError or SolutionError where it cannot.
    """
    more = _AS_CANDIDATE + (_BUILDS.format(token=secrets.token_hex(3)) if runs_when_built(solution) else "")
    with scratch() as folder:
        path = folder / "reference.py"
        path.write_bytes(read_bytes(file.path) + more.encode())
        reference = read_solution(path, problem=file.id, settings=False)
        yield job | {"solution": encode_solution(reference), "artefact": encode_artefact(Artefact())}


def holding(built: Callable[[], Artefact], held: contextlib.ExitStack) -> Callable[[], Artefact]:
    """Return ``built`` with a library that stays where it says until the end of ``held``.

    A candidate can have so much built that its own leaves the cache, from where the judge copies it again and again.
    """

    def stays() -> Artefact:
        with contextlib.suppress(FileNotFoundError):  # somebody clears the cache
            return _held(built(), held)
        return _held(built(), held)

    return stays


def _held(artefact: Artefact, held: contextlib.ExitStack) -> Artefact:
    if not artefact.library:
        return artefact
    name = held.enter_context(Cache().work_folder()) / artefact.library.name
    try:
        os.link(artefact.library, name)
    except FileNotFoundError:
        raise
    except OSError:  # a file system without second names
        shutil.copyfile(artefact.library, name)
    return dataclasses.replace(artefact, library=name)


def worked(answer: dict[str, Any]) -> bool:
    """Return whether the answer of a judge to such a job shows that the machine works: outputs were compared."""
    return bool(answer.get("result", {}).get("correctness"))


def told_of_tries(tries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a record says of tries before: each may be the candidate's doing, which chose another."""
    killed = [one["killed"] for one in tries if one.get("killed")]
    failures = sum("unevaluated" in one for one in tries)
    return {"killed_before": killed[0]} if killed else {"machine_failed_before": failures} if failures else {}
