"""Names of solutions: the problem and the sample that a file's name or its ``kb:`` comment says; and those of runs."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from harness.limits import HEAD_BYTES, MAX_SAMPLE
from harness.problem.module import ProblemId

RUN_FILES = frozenset({"config.json", "results.jsonl"})  # of a run directory: what lies in one is no solution
_KERNELBENCH = re.compile(
    r"level_(?P<level>\d{1,9})_problem_(?P<number>\d{1,9})_sample_(?P<sample>\d{1,9})_kernel", re.ASCII
)
_PAIR = re.compile(r"(?P<level>\d{1,9})_(?P<number>\d{1,9})(?:_(?!s\d+$)\w+?)?(?:_s(?P<sample>\d{1,9}))?", re.ASCII)
_IN_LEVEL = re.compile(r"0*(?P<number>\d{1,9})(?:_(?!s\d+$)\w+?)?(?:_s(?P<sample>\d{1,9}))?", re.ASCII)
_SAMPLE = re.compile(r"_s(\d{1,9})$", re.ASCII)
_LEVEL_FOLDER = re.compile(r"level[_-]?(\d{1,9})", re.ASCII)
_COMMENT_MARKS = ("//", "/*", "#", "*")
DIRECTIVE_LINES = 10
BYTE_ORDER_MARK = "\ufeff"  # UTF-8's, as editors put it before a file's first line


class SolutionError(Exception):
    """A solution directory or file that cannot be used, and what to do about it."""


class NoProblem(SolutionError):
    """A file that says of no problem that it solves it."""


def mapping(
    path: Path,
    settings: dict[str, str],
    problem: ProblemId | None,
    names: Mapping[str, ProblemId] = MappingProxyType({}),
) -> tuple[ProblemId, int]:
    """Problem and sample: what the comment says wins over the name, the caller over both."""
    named, sample = _from_name(path)
    named = by_name(path, names) or named
    if "problem" in settings:
        try:
            named = ProblemId.parse(settings["problem"])
        except ValueError as error:
            raise SolutionError(f"kb comment: {error}") from error
    if "sample" in settings:
        if not re.fullmatch(r"\d{1,9}", settings["sample"], re.ASCII):
            raise SolutionError(f"kb comment: sample={settings['sample']:.80} is not a number from 0 to {MAX_SAMPLE}")
        sample = int(settings["sample"])
    named = problem or named
    if named is None:
        raise NoProblem(
            "maps to no problem: name it like level1/19_relu.py (letters, digits and _), 1_19.py, 1_19_s2.py for "
            "sample 2, or level_1_problem_19_sample_0_kernel.py, or add a first-lines comment `kb: problem=1/19`"
        )
    return named, sample


def clashes(
    claims: Iterable[tuple[Path, str, tuple[ProblemId, int]]], names: Mapping[str, ProblemId] = MappingProxyType({})
) -> dict[Path, str]:
    """Return which files must not have the problem and sample that they claim, and why.

    A claim is a path, how it is shown, and problem and sample. A path or name that says both wins over a comment:
    whoever writes a source must not push out another's. Of equals none has it.
    """
    of_place: dict[tuple[ProblemId, int], list[tuple[Path, str]]] = defaultdict(list)
    for path, shown, place in claims:
        of_place[place].append((path, shown))
    reasons = {}
    for place, files in of_place.items():
        if len(files) > 1:
            first = [file for file in files if _says(file[0], place, names)] or files
            reasons |= {file[0]: _clash(file, first, place) for file in files if first != [file]}
    return reasons


def _says(path: Path, place: tuple[ProblemId, int], names: Mapping[str, ProblemId]) -> bool:
    """Return whether path and name alone give this problem and sample."""
    try:
        return mapping(path, {}, None, names) == place
    except SolutionError:
        return False


def _clash(file: tuple[Path, str], first: list[tuple[Path, str]], place: tuple[ProblemId, int]) -> str:
    claim = f"claims {place[0]} sample {place[1]}"
    if len(first) == 1:
        return f"{claim}, which is that of {first[0][1]}"
    _, other = first[1] if first[0] == file else first[0]
    return (
        f"{claim}, and so does {other}: give each its own sample number, in its name (_s1) "
        "or in a first-lines comment (kb: problem=1/19 sample=1)"
    )


def by_name(path: Path, names: Mapping[str, ProblemId]) -> ProblemId | None:
    """Return the problem that a file's name stands for in ``names``, with the number of a sample or without."""
    return names.get(_SAMPLE.sub("", path.stem))


def _from_name(path: Path) -> tuple[ProblemId | None, int]:
    if match := _KERNELBENCH.fullmatch(path.stem):
        return ProblemId(int(match["level"]), int(match["number"])), int(match["sample"])
    folder = _LEVEL_FOLDER.fullmatch(path.parent.name)
    if folder and (match := _IN_LEVEL.fullmatch(path.stem)):
        return ProblemId(int(folder[1]), int(match["number"])), int(match["sample"] or 0)
    if match := _PAIR.fullmatch(path.stem):
        return ProblemId(int(match["level"]), int(match["number"])), int(match["sample"] or 0)
    sample = _SAMPLE.search(path.stem)
    return None, int(sample[1]) if sample else 0


def said_in(head: bytes) -> dict[str, str]:
    """Return the settings of the ``kb:`` comment among a source's first bytes.

    A line that is cut there is left out: the rest of a number would be another one.
    """
    if len(head) >= HEAD_BYTES:
        head = head[: head.rfind(b"\n") + 1]
    return _directive(head.decode(errors="replace"))


def _directive(source: str) -> dict[str, str]:
    """Settings of the ``kb: key=value ...`` comment among the first lines, if there is one."""
    for line in source.splitlines()[:DIRECTIVE_LINES]:
        if words := directive_words(line):
            pairs = (word.partition("=") for word in words)
            return {key: value for key, separator, value in pairs if separator}
    return {}


def directive_words(line: str) -> list[str]:
    """The words behind ``kb:`` of a line that is such a comment; none of any other.

    A byte order mark may come before it, as in the first line of a file.
    """
    line = line.removeprefix(BYTE_ORDER_MARK).strip()
    mark = next(filter(line.startswith, _COMMENT_MARKS), "")
    comment = line.removeprefix(mark).lstrip()
    if not mark or not comment.startswith("kb:"):
        return []
    return comment.removeprefix("kb:").removesuffix("*/").split()


def is_run(folder: Path) -> bool:
    """Return whether it is a run directory."""
    return all(os.path.lexists(folder / name) for name in RUN_FILES)
