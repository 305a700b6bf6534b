"""The reference in the place of a candidate: whose fault it is where the machine fails again and again with one.

Of a candidate that may build extensions the reference builds one too, which no cache has: a full disk fails both.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harness.compile import Artefact
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


@contextmanager
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


def lacks_its_library(job: dict[str, Any], reason: str) -> bool:
    """Return whether a job failed for the ``reason`` that what was built for it had left the cache.

    Somebody clears that meanwhile. That it is gone is not enough: a candidate can have more built than it may hold.
    """
    library = (job.get("artefact") or {}).get("library")
    return bool(library) and os.path.basename(library) in reason and not os.path.exists(library)


def worked(answer: dict[str, Any]) -> bool:
    """Return whether the answer of a judge to such a job shows that the machine works: outputs were compared."""
    return bool(answer.get("result", {}).get("correctness"))


def told_of_tries(tries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a record says of tries before: each may be the candidate's doing, which chose another."""
    killed = [signal for one in tries if (signal := one.get("result", {}).get("conditions", {}).get("killed_by"))]
    failures = sum("unevaluated" in one for one in tries)
    return {"killed_before": killed[0]} if killed else {"machine_failed_before": failures} if failures else {}
