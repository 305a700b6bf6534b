"""Import archives of solutions with claims: their formats, and the folders that they are written to.

A format is a module with

- ``accepts(path)``: whether a path looks like such an archive,
- ``read(path, options)``: its ``Archive``; raises ``ArchiveError``,

and its line in ``READERS``. A reader parses text. Nothing of an archive is imported, compiled or run, and
nothing that it claims enters a result.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from harness.limits import MAX_JSON_BYTES, MAX_SAMPLE, MAX_SOURCE_BYTES
from harness.problem.module import ProblemId
from harness.solution.discover import SUFFIXES
from harness.solution.naming import BYTE_ORDER_MARK, DIRECTIVE_LINES, directive_words
from kernelbench import escaping, suite
from kernelbench.formats import claims
from kernelbench.formats.archive import Archive, ArchiveError, Kernel, ReadOptions
from kernelbench.formats.claims import Claim
from kernelbench.run_files.log import write_whole

READERS = {  # the first that accepts a path reads it
    "kernelbench-run": "kernelbench.formats.kernelbench_run",
    "cuda-l1": "kernelbench.formats.cuda_l1",
    "tritonbench": "kernelbench.formats.tritonbench.answers",
    "csv": "kernelbench.formats.claims_table",
}
PROBLEMS, SOLUTIONS, ABOUT = "problems", "solutions", "archive.json"
_DRAFT = ".import"  # of an import that has not ended, or was killed
_COMMENT = {".py": "#", ".dsl": "#", ".cu": "//", ".cpp": "//"}
_UNNAMED = "task"


@dataclass(frozen=True)
class Imported:
    """An archive on disk, ready for `kb eval`."""

    path: Path
    form: str
    claims: list[Claim]
    problems: int
    left_out: list[tuple[str, str]]


def form_of(path: Path) -> str:
    """Return the name of the format of an archive. Raises ArchiveError for one that no reader accepts."""
    if not path.exists():
        raise ArchiveError(f"no such file or directory: {path}")
    found = next((name for name, module in READERS.items() if importlib.import_module(module).accepts(path)), None)
    if found is None:
        raise ArchiveError(f"{path} is in no known format; name one with --format: {', '.join(READERS)}")
    return found


def import_archive(path: Path, out: Path, form: str | None = None, options: ReadOptions | None = None) -> Imported:
    """Read an archive and write solutions, claims, and problem definitions where it has its own, to ``out``.

    Raises ArchiveError where it cannot be read, or ``out`` holds something, and OSError where it cannot be written.
    """
    form = form or form_of(path)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise _not_empty(out)
    archive = importlib.import_module(READERS[form]).read(path, options or ReadOptions())
    if not archive.kernels and not archive.left_out:
        raise ArchiveError(f"{path} holds no solution in the format {form}")
    with _taken(out) as draft:
        made = _write(archive, draft, form, str(path.name))
    return replace(made, path=out)


@contextlib.contextmanager
def _taken(out: Path) -> Iterator[Path]:
    """Give a hidden folder in one without content to who fills it; what is there at the end takes its place.

    Of two who import there one does. A part of an archive would look like all of it, so solutions come last, at once,
    and where the import is interrupted nothing stays. Raises ArchiveError for the other.
    """
    out.mkdir(parents=True, exist_ok=True)
    draft = out / _DRAFT
    try:
        draft.mkdir()
    except FileExistsError:
        raise _not_empty(out) from None
    placed: list[Path] = []
    try:
        if len(os.listdir(out)) > 1:
            raise _not_empty(out)
        (draft / SOLUTIONS).mkdir()
        yield draft
        for name in (claims.LOG, ABOUT, PROBLEMS, SOLUTIONS):
            if (draft / name).exists():
                os.rename(draft / name, out / name)
                placed.append(out / name)
    except BaseException:
        for path in placed:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _not_empty(out: Path) -> ArchiveError:
    return ArchiveError(f"{out} is not empty; choose another --out")


def _write(archive: Archive, out: Path, form: str, origin: str) -> Imported:
    """Write ``archive`` to ``out``; a source that is too large or cannot be encoded is left out, with the reason."""
    names = _names(archive)
    digests = {
        problem: _put(out / PROBLEMS / f"level{problem.level}" / f"{problem.number}_{names[problem]}.py", source)
        for problem, source in archive.problems.items()
    }
    made, left_out, following = [], list(archive.left_out), {}
    for kernel in archive.kernels:
        if reason := _fault(kernel):
            left_out.append((kernel.origin, reason))
            continue
        if (sample := _sample(kernel, following)) > MAX_SAMPLE:
            left_out.append((kernel.origin, f"no sample number up to {MAX_SAMPLE:,} is left for it"))
            continue
        name = f"level{kernel.problem.level}/{kernel.problem.number}_{names[kernel.problem]}_s{sample}{kernel.suffix}"
        digest = _put(out / SOLUTIONS / name, _source(kernel, sample))
        made.append(Claim(
            str(kernel.problem), name, digest, kernel.speedups, kernel.status, kernel.ms, kernel.origin,
            digests.get(kernel.problem, ""),
        ))  # fmt: skip
    about = {"archive": origin, "format": form, "solutions": len(made), "problems": len(digests), "left_out": left_out}
    text = claims.to_text(made)
    if len(text) > MAX_JSON_BYTES:
        raise ArchiveError(f"{origin}: its claims have {len(text):,} bytes, and {MAX_JSON_BYTES:,} are read of a log")
    write_whole(out / claims.LOG, text)
    write_whole(out / ABOUT, escaping.json_text(about) + "\n")
    return Imported(out, form, made, len(digests), left_out)


def _names(archive: Archive) -> dict[ProblemId, str]:
    """Return a name for each problem: the suite's where the archive's own definition is of a task that it has."""
    known = archive.names or {file.id: file.name for file in suite.find("all")}
    wanted: Iterable[ProblemId] = (*archive.problems, *(kernel.problem for kernel in archive.kernels))
    return {problem: re.sub(r"\W+", "_", known.get(problem, _UNNAMED), flags=re.ASCII) for problem in wanted}


def _fault(kernel: Kernel) -> str:
    """Return why a kernel cannot be a solution; '' where it can be one."""
    if kernel.suffix not in SUFFIXES:
        return f"a file ending in {kernel.suffix or 'nothing'} is no solution; expected {', '.join(SUFFIXES)}"
    try:
        size = len(kernel.source.encode())
    except UnicodeEncodeError:
        return "its source cannot be encoded as UTF-8"
    return f"its source has {size:,} bytes; the most is {MAX_SOURCE_BYTES:,}" if size > MAX_SOURCE_BYTES else ""


def _sample(kernel: Kernel, following: dict[tuple[ProblemId, int], int]) -> int:
    """Return the sample, or the next that is free; ``following`` has for each that is taken where to look next."""
    sample, passed = kernel.sample or 0, []
    while (kernel.problem, sample) in following:
        passed.append(sample)
        sample = following[kernel.problem, sample]
    for one in (*passed, sample):
        following[kernel.problem, one] = sample + 1
    return sample


def _source(kernel: Kernel, sample: int) -> str:
    """Return the source as it is, unless it has a `kb:` comment: then ours comes first, and decides."""
    if any(map(directive_words, kernel.source.splitlines()[:DIRECTIVE_LINES])):
        source = kernel.source.removeprefix(BYTE_ORDER_MARK)  # which may stand in the first line only
        return f"{_COMMENT[kernel.suffix]} kb: problem={kernel.problem} sample={sample}\n{source}"
    return kernel.source


def _put(path: Path, text: str) -> str:
    """Write a file and return its digest."""
    content = text.encode(errors="replace")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
    return hashlib.sha256(content).hexdigest()
