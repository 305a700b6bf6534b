"""A run directory of KernelBench: its generated kernels, and what its ``eval_results.json`` claims of them.

Kernels are ``level_{L}_problem_{P}_sample_{S}_kernel.py``. Problems are KernelBench's, so the directory brings no
definitions of its own.
"""

from __future__ import annotations

import re
from pathlib import Path

from harness.problem.module import ProblemId
from harness.result import Result
from harness.solution.discover import readable
from kernelbench.formats import claims, kernelbench
from kernelbench.formats.archive import Archive, ArchiveError, Kernel, ReadOptions, text_of

RESULTS = "eval_results.json"
_KERNEL = re.compile(r"level_(\d{1,9})_problem_(\d{1,9})_sample_(\d{1,9})_kernel", re.ASCII)


def accepts(path: Path) -> bool:
    """Return whether a directory holds kernels under KernelBench's names."""
    return path.is_dir() and any(_KERNEL.fullmatch(file.stem) for file in path.iterdir())


def read(path: Path, options: ReadOptions) -> Archive:
    """Return kernels and claims; speedups need a file of baseline timings. Raises ArchiveError."""
    found = [(match, file) for file in sorted(path.iterdir()) if (match := _KERNEL.fullmatch(file.stem))]
    if not found:
        raise ArchiveError(f"{path} holds no kernels such as level_1_problem_19_sample_0_kernel.py")
    levels = {int(match[1]) for match, _ in found}
    claimed = _claimed(path / RESULTS, levels, options)
    archive, seen = Archive(), set()
    for match, file in found:
        level, number, sample = of = tuple(map(int, match.groups()))
        if of in seen:
            archive.left_out.append((readable(file.name), f"another file is sample {sample} of {level}/{number} too"))
            continue
        seen.add(of)
        source, why_not = text_of(path, file)
        if source is None:
            archive.left_out.append((readable(file.name), why_not))
            continue
        told = claimed.get((f"{level}/{number}", sample))
        archive.add(Kernel(
            ProblemId(level, number), source, file.suffix, sample,
            claims.speedups(_over(told)), told and told.status.value,
            claims.number(((told and told.timing) or {}).get("mean_ms")), file.name,
        ))  # fmt: skip
    return archive


def _over(told: Result | None) -> dict[str, float | None]:
    """Return the claimed speedup by the name of its baseline."""
    return {next(iter(told.baselines), "eager"): told.speedup} if told else {}


def _claimed(path: Path, levels: set[int], options: ReadOptions) -> dict[tuple[str, int], Result]:
    """Return the results that the directory claims, by problem and sample; none where it has no such file."""
    if not path.is_file():
        return {}
    if path.is_symlink():
        raise ArchiveError(f"{path} is a link, which may lead out of the archive: put the file itself there")
    if options.level is None and len(levels) > 1:
        raise ArchiveError(f"{path} is of one level, and the kernels are of {sorted(levels)}: give --level")
    level = options.level or min(levels)
    try:
        results = kernelbench.read_eval_results(path, level, options.baseline)
    except kernelbench.FormatError as error:
        raise ArchiveError(str(error)) from None
    return {(result.problem, result.solution["sample"]): result for result in results}
