"""CUDA-L1's archive: JSON lines, one a task of KernelBench, with definition, solution and claimed speedups.

Fields: ``level_id``, ``task_id``, ``ref_code`` (a module of KernelBench), ``custom_code`` (defines ``ModelNew``; null,
empty or the word None where there is none), and one ``score_*`` for each baseline.

References
----------
Li et al., "CUDA-L1: Improving CUDA Optimization via Contrastive Reinforcement Learning" (2025).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.json_text import parse_json
from harness.problem.module import ProblemId
from kernelbench.formats import claims
from kernelbench.formats.archive import Archive, ArchiveError, Kernel, ReadOptions, first_line, lines_of

# Its word for a baseline -> ours; the first is the one that it leads with.
_BASELINES = {
    "score_default": "eager",
    "score_torch_compile_default": "compile",
    "score_torch_compile_reduce_overhead": "compile-reduce-overhead",
    "score_cuda_graph": "cuda_graph",
    "score_cudnn": "cudnn",
}
_NO_SOURCE = ("", "None")  # the second is how its authors' Python wrote what it did not have
_NEEDED = {"level_id", "task_id", "custom_code"}


def accepts(path: Path) -> bool:
    """Return whether the first line is a task of such an archive."""
    if not path.is_file() or path.suffix != ".jsonl":
        return False
    return _NEEDED <= _object(first_line(path)).keys()


def read(path: Path, options: ReadOptions) -> Archive:
    """Return definitions, solutions and claims. Raises ArchiveError for a line that is no task."""
    archive = Archive()
    for place, line in lines_of(path):
        _add(archive, _task(line, f"{path}, line {place},"), f"line {place}")
    return archive


def _add(archive: Archive, task: dict[str, Any], origin: str) -> None:
    problem = ProblemId(task["level_id"], task["task_id"])
    reference, source = task.get("ref_code"), task["custom_code"]
    if isinstance(reference, str) and reference.strip():
        if archive.problems.setdefault(problem, reference) != reference:
            archive.left_out.append((origin, f"{problem} is defined otherwise in an earlier line"))
            return
    claimed = claims.speedups({name: task.get(field) for field, name in _BASELINES.items()})
    if not isinstance(source, str) or source.strip() in _NO_SOURCE:
        without = f", and a claim of {next(iter(claimed.values())):g}x" if claimed else ""
        archive.left_out.append((origin, f"{problem} has no solution{without}"))
        return
    archive.add(Kernel(problem, source, speedups=claimed, origin=origin))


def _task(line: str, where: str) -> dict[str, Any]:
    task = _object(line)
    if not _NEEDED <= task.keys():
        raise ArchiveError(f"{where} is no task of CUDA-L1: expected an object with {', '.join(sorted(_NEEDED))}")
    if not all(type(task[key]) is int and 0 <= task[key] < 10**9 for key in ("level_id", "task_id")):
        raise ArchiveError(f"{where} names no task: level_id and task_id must be whole numbers")
    return task


def _object(line: str) -> dict[str, Any]:
    try:
        found = parse_json(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
