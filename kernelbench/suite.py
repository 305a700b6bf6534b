"""The suite: problems that exist, and how people name them on the command line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from harness.problem.module import ProblemError, ProblemFile, ProblemId, find_problems, load_problem
from kernelbench.audit.record import FILE, AuditFile
from kernelbench.formats.tritonbench import checkout, suites

# Named subsets, as selectors of their own.
SUBSETS = {
    # a dozen that build and run quickly, one of each kind of work
    "smoke": "1/1,1/19,1/23,1/26,1/40,1/47,1/76,1/95,2/40,2/76,3/1,3/43",
    # what language models are made of: appendix A.3 of the muCUTLASS paper
    "llm": "1/1-4,1/6-9,1/16-18,1/21-23,1/25,1/26,1/36,1/40,1/47,1/48,1/67,1/76,1/86-92,1/95,1/97,"
    "2/9,2/28,2/29,2/37,2/40,2/41,2/53,2/56,2/59,2/62,2/63,2/66,2/70,2/76,2/81,2/86,2/88,2/94,2/97,2/99,"
    "3/1-3,3/43,3/44,3/48-50",
}  # fmt: skip
_MOST_PARTS = 1_000  # of a selector
SOUND = "sound"  # those that pass the audit: nothing trivial passes, and most mutants are found
_SOUND_GRADES = ("A", "B")

_LEVEL = re.compile(r"level(\d{1,9})")
_RANGE = re.compile(r"(?P<level>\d{1,9})/(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?")
_EXAMPLES = "1/19   1/1-20   level2   all   llm   1/19,level3   'llm&level1'   all~smoke"


class SelectorError(ValueError):
    """A problem selector that is malformed or matches nothing."""


def problem_root() -> Path:
    """The suite's folder: inside the package once installed, beside it in a checkout."""
    package = Path(__file__).resolve().parent
    installed = package / "problems"
    return installed if installed.is_dir() else package.parent / "problems"


def find(selector: str = "all", root: Path | None = None) -> list[ProblemFile]:
    """Problems that ``selector`` names, in order of their ids.

    A selector is ``1/19``, ``1/1-20``, ``level2``, ``all`` or a subset (``smoke``, ``llm``,
    ``sound``), in a checkout of TritonBench also a kernel's name, or several of them, read
    from left to right: ``a,b`` both, ``a&b`` what is in both, ``a~b`` the first without the
    second. Raises SelectorError where a part is malformed
    or matches nothing, or nothing is left.
    """
    return _found(selector, root or problem_root(), checkout.find)


def ids(selector: str, root: Path | None = None) -> list[ProblemId]:
    """Return the ids of what ``find`` finds, and run nothing of ``root``: a run of somebody else may name it."""
    return [file.id for file in _found(selector, root or problem_root(), checkout.listed)]


def _found(selector: str, root: Path, of_checkout: Callable[[Path], list[ProblemFile]]) -> list[ProblemFile]:
    try:
        return _chosen(selector, root, of_checkout(root) if checkout.is_checkout(root) else find_problems(root))
    except (OSError, RuntimeError) as error:  # links in a circle are a RuntimeError before Python 3.13
        raise SelectorError(f"problems cannot be read in {root}: {error}") from None


def _chosen(selector: str, root: Path, files: list[ProblemFile]) -> list[ProblemFile]:
    problems = {problem.id: problem for problem in files}
    chosen: set[ProblemId] = set()
    parts = re.split(r"([,&~])", "," + selector)
    if len(parts) // 2 > _MOST_PARTS:  # in a run of others
        raise SelectorError(f"a selector of {len(parts) // 2:,} parts, and at most {_MOST_PARTS:,} are taken")
    known: dict[str, set[ProblemId]] = {}  # a run of others may repeat a part, and `sound` reads the audit
    for operation, part in zip(parts[1::2], parts[2::2]):
        name = part.strip()
        named = known[name] = known[name] if name in known else _named(name, problems, root)
        if operation == ",":
            chosen |= named
        elif operation == "&":
            chosen &= named
        else:
            chosen -= named
    if not chosen:
        raise SelectorError(f"no problem is left in '{selector}', which is read from left to right")
    return [problems[key] for key in sorted(chosen)]


def audits(root: Path | None = None) -> AuditFile:
    """Return what is known about the problems in ``root``."""
    return AuditFile((root or problem_root()) / FILE)


def names(root: Path | None) -> dict[str, ProblemId]:
    """Return the problem that a file name stands for in ``root``, where solutions are named by problems."""
    return checkout.names(root) if root and checkout.is_checkout(root) else {}


def unloadable(problems: list[ProblemFile], root: Path | None = None) -> dict[ProblemId, str]:
    """Return why problems in ``root`` do not load on this machine, by id; imports torch, and the problems' code."""
    if root and checkout.is_checkout(root):
        reasons = checkout.unloadable(root, {problem.name for problem in problems})
        return {problem.id: reasons[problem.name] for problem in problems if problem.name in reasons}
    found = {}
    for problem in problems:
        try:
            load_problem(problem)
        except ProblemError as error:
            found[problem.id] = str(error)
    return found


def _named(part: str, problems: dict[ProblemId, ProblemFile], root: Path) -> set[ProblemId]:
    if part == "all":
        named = set(problems)
    elif part in SUBSETS:
        named = {key for piece in SUBSETS[part].split(",") for key in _in_range(piece, problems)}
    elif part == SOUND:
        known = audits(root)
        graded = {key: known.get(problem) for key, problem in problems.items()}
        named = {key for key, record in graded.items() if record and record.grade in _SOUND_GRADES}
    elif part in suites.SUITES:
        wanted = suites.members(part, {problem.name for problem in problems.values()})
        named = {key for key, problem in problems.items() if problem.name in wanted}
    elif checkout.is_checkout(root) and any(problem.name == part for problem in problems.values()):
        named = {key for key, problem in problems.items() if problem.name == part}
    elif level := _LEVEL.fullmatch(part):
        named = {key for key in problems if key.level == int(level[1])}
    else:
        named = _in_range(part, problems)
    if not named:
        raise SelectorError(f"no problem matches '{part}'; `kb problems list` shows what there is")
    return named


def _in_range(part: str, problems: dict[ProblemId, ProblemFile]) -> set[ProblemId]:
    match = _RANGE.fullmatch(part)
    if not match:
        raise SelectorError(f"'{part}' is not a problem selector; examples: {_EXAMPLES}")
    level, first = int(match["level"]), int(match["first"])
    last = int(match["last"] or first)
    return {key for key in problems if key.level == level and first <= key.number <= last}
