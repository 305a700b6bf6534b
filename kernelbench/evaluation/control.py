"""The reference in the place of a candidate: whose fault it is where the machine fails again and again with one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.compile import Artefact
from harness.job import encode_artefact, encode_solution
from harness.problem.module import ProblemFile
from harness.process.owned_folders import remove_tree
from harness.solution.discover import read_solution
from harness.solution.includes import read_bytes

_AS_CANDIDATE = "\n\nModelNew = Model\n"


@contextmanager
def reference_as_candidate(job: dict[str, Any], file: ProblemFile) -> Iterator[dict[str, Any]]:
    """Give the job of a candidate with the reference in its place. Raises OSError or SolutionError where it cannot."""
    folder = Path(tempfile.mkdtemp(prefix="kb-control-"))
    try:
        path = folder / "reference.py"
        path.write_bytes(read_bytes(file.path) + _AS_CANDIDATE.encode())
        solution = read_solution(path, problem=file.id, settings=False)
        yield job | {"solution": encode_solution(solution), "artefact": encode_artefact(Artefact())}
    finally:
        remove_tree(folder)


def worked(answer: dict[str, Any]) -> bool:
    """Return whether the answer of a judge to such a job shows that the machine works: outputs were compared."""
    return bool(answer.get("result", {}).get("correctness"))
