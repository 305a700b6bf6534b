"""Sources of a run, kept beside its log: candidates, references, and a solver's trajectory.

``sources/<sha256>.<kind>`` holds a candidate's source under the digest that its results name, and
``sources/<digest>.helpers.json`` path, digest and text of each file that it imports, includes or names;
``references/<level>_<number>.py`` a problem's module, so that a report can be made later and elsewhere.
``trajectory.jsonl``, where a solver wrote one, has a line for each of its attempts.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from harness.json_text import parse_json
from harness.limits import MAX_JSON_BYTES, MAX_SOURCE_BYTES
from harness.problem.module import ProblemError, ProblemFile
from harness.record.fields import PROBLEM
from harness.record.shape import FROM_0, LIST, OBJECT, TEXT, count, or_none, shape
from harness.result import Result
from harness.solution.discover import PREBUILT_SUFFIX, Solution, digest_of_helpers
from harness.solution.includes import is_named_digest, read_bytes, read_head
from kernelbench import suite
from kernelbench.run import Run, RunError, WriteError
from kernelbench.run_files.folder import leads_by_a_link_in, read_lines
from kernelbench.run_files.log import MOST_LOG_BYTES, write_below

SOURCES = "sources"
_MOST_HELPER_BYTES = 1 << 20  # of a solution's helpers: more than anybody reads, and room for a thousand
REFERENCES = "references"
TRAJECTORY = "trajectory.jsonl"
# What model calls and attempts have in common.
ASKED = {
    "cost_usd": or_none(FROM_0),  # below it would give back what was spent
    "seconds": or_none(FROM_0),
    "tags": or_none(OBJECT),
    "tags.iteration": count(),
    "tags.strategy": or_none(TEXT),
    "tags.unit": count(),
    "tokens": or_none(OBJECT),
    "tokens.*": or_none(FROM_0),
}
ORIGIN = {**ASKED, "parent": or_none(count()), "turn": or_none(count())}  # of an attempt
_HELPERS = shape(
    {"files!": LIST, "files[].name!": TEXT, "files[].sha256!": TEXT, "files[].text!": or_none(TEXT)}
)
_ATTEMPT = shape({**ORIGIN, "problem!": PROBLEM, "sample!": count(), "prompt": or_none(LIST), "prompt[]": OBJECT})


def keep(run: Run, solution: Solution, problem: ProblemFile, measured: str = "") -> None:
    """Copy the sources of ``solution`` and of its problem into the run's directory, once each.

    A problem that has changed takes the place of what it was: results of that are evaluated again. But not one that
    was written since it was ``measured``, which is the digest that the result has.
    A file that is gone or too large is left out, and so is a prebuilt library. Raises WriteError.
    """
    if f".{solution.kind}" != PREBUILT_SUFFIX:
        _copy(solution.path, run.path / SOURCES, lambda content: f"{_digest(content)}.{solution.kind}")
    if solution.helpers:
        _write(run.path / SOURCES, _helpers_name(solution.helpers), json.dumps({"files": _texts(solution)}).encode())
    named = _reference_name(str(problem.id))
    _copy(problem.path, run.path / REFERENCES, lambda content: named if measured in ("", _digest(content)) else "")


def source_of(run: Run, result: Result) -> str | None:
    """The source that ``result`` is of: the kept one, else the file in the directory of solutions if it is unchanged.

    No link in the run is followed. That directory may be one in the run's own, which has been moved since.
    """
    sha256, kind, name = (result.solution.get(key) for key in ("sha256", "kind", "name"))
    solutions = Path(run.config.get("solutions") or "")
    kept = run.path.resolve() / SOURCES / f"{sha256}.{kind}"
    beside = () if leads_out(name) else (solutions / name, run.path / solutions.name / name)
    for path in (kept, *beside):
        content = None if leads_by_a_link_in(run.path, path) else _read(path, in_place=path == kept)
        if content is not None and _digest(content) == sha256 and path.suffix != PREBUILT_SUFFIX:
            return content.decode("utf-8", errors="replace")
    return None


def leads_out(name: str) -> bool:
    """Return whether a solution's name leads out of its directory: a run of others may say so."""
    return os.path.isabs(name) or ".." in Path(name).parts


def helpers_of(run: Run, result: Result) -> dict[str, str | None] | None:
    """Texts of the files that the source of ``result`` takes in, by their paths from its folder on.

    None for one that is no text or too large; None in place of all where they are not kept, or are not those.
    """
    wanted = result.solution.get("helpers") or ""
    if not wanted:
        return {}
    content = _read(run.path.resolve() / SOURCES / _helpers_name(wanted), in_place=True, most=MAX_JSON_BYTES)
    try:
        kept = parse_json(content or b"")
        _HELPERS.check(kept)
        right = all(map(_is_unchanged, kept["files"]))
    except ValueError:
        return None
    if not right or digest_of_helpers(file["sha256"] for file in kept["files"]) != wanted:
        return None
    return {file["name"]: file["text"] for file in kept["files"]}


def reference_of(run: Run, problem: str, measured: str = "") -> dict[str, Any] | None:
    """``source`` of a problem, and whether it is the ``kept`` one or the module as the suite has it now.

    With ``measured``, the digest that a result has, it is the one of them with this text; None where neither has it.
    A kept one that is a link is not followed, and a folder of problems that a run names is not looked into: a run may
    be somebody else's, and what this returns is shown and sent to models.
    """
    kept = run.path.resolve() / REFERENCES / _reference_name(problem)
    content = _of_digest(_read(kept, in_place=True), measured)
    is_kept = content is not None
    if not is_kept and not run.config.get("problem_dir"):
        with contextlib.suppress(suite.SelectorError, ProblemError):
            content = _of_digest(_read(suite.find(problem)[0].path), measured)
    return None if content is None else {"source": content.decode("utf-8", errors="replace"), "kept": is_kept}


def _of_digest(content: bytes | None, sha256: str) -> bytes | None:
    """Return what was read if it has this digest, or there is none to have."""
    return content if content is not None and sha256 in ("", _digest(content)) else None


def trajectory_of(run: Run) -> list[dict[str, Any]]:
    """The attempts that a solver logged, in order. Raises RunError for a log that is no plain file, or too large."""
    path = run.path / TRAJECTORY
    try:
        lines, rest = read_lines(path, MOST_LOG_BYTES)
        return attempts_in([*lines, rest])
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}") from None


def attempts_in(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    """Attempts as JSON; lines that are none (the last may still be written) are left out."""
    attempts = []
    for line in lines:
        try:
            attempt = parse_json(line)
            _ATTEMPT.check(attempt)
        except ValueError:
            continue
        attempts.append(attempt)
    return attempts


def _texts(solution: Solution) -> list[dict[str, str | None]]:
    """Return name, digest and text of the helpers: None for what is no text, or for which there is no more room.

    The smallest first, and with the six bytes that JSON has for some of one: large ones keep nobody from reading code.
    """
    texts: dict[Path, str] = {}
    left, folder = _MOST_HELPER_BYTES, solution.path.parent.resolve()
    for path, digest in sorted(solution.helper_files, key=lambda file: _size(file[0])):
        with contextlib.suppress(OSError, ValueError):  # ValueError: no text
            content = read_bytes(path, min(left, MAX_SOURCE_BYTES))
            left -= len(content)  # of what is no text, too: it was read, while another candidate may be timed
            text = content.decode()
            more = len(json.dumps(text)) - len(content)
            if more <= left and is_named_digest(digest, os.path.relpath(path, folder), content):
                texts[path], left = text, left - more
    return [
        {"name": os.path.relpath(path, folder), "sha256": digest, "text": texts.get(path)}
        for path, digest in solution.helper_files
    ]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # who reads it hears of it


def _is_unchanged(file: dict[str, Any]) -> bool:
    text = file["text"]
    return text is None or is_named_digest(file["sha256"], file["name"], text.encode())


def _copy(path: Path, folder: Path, name: Callable[[bytes], str]) -> None:
    try:
        content, size = read_head(path, MAX_SOURCE_BYTES)
    except OSError:
        return
    if size <= MAX_SOURCE_BYTES and (named := name(content)):
        _write(folder, named, content)


def _write(folder: Path, name: str, content: bytes) -> None:
    target = folder / name
    if folder.is_symlink():  # it may lead anywhere
        raise WriteError(f"{folder} is a link; put a folder in its place and continue with --resume")
    try:
        if _read(target, most=len(content)) == content:
            return
        write_below(folder.parent, f"{folder.name}/{name}", content)
    except OSError as error:
        raise WriteError(f"cannot write {target}: {error.strerror}; make room and continue with --resume") from error


def _read(path: Path, in_place: bool = False, most: int = MAX_SOURCE_BYTES) -> bytes | None:
    try:
        return read_bytes(path, most, in_place)
    except (OSError, ValueError):
        return None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _helpers_name(digest: str) -> str:
    return f"{digest}.helpers.json"


def _reference_name(problem: str) -> str:
    return problem.replace("/", "_") + ".py"
