"""Which problems exist, and how people name them on the command line."""

from __future__ import annotations

import re
from pathlib import Path

from harness.problem import ProblemFile, find_problems

_SELECTOR = re.compile(r"(?P<level>\d+)/(?P<first>\d+)(?:-(?P<last>\d+))?")


class SelectorError(ValueError):
    """A problem selector that is malformed or matches nothing."""


def problem_root() -> Path:
    """The suite's folder: inside the package once installed, beside it in a checkout."""
    package = Path(__file__).resolve().parent
    installed = package / "problems"
    return installed if installed.is_dir() else package.parent / "problems"


def find(selector: str = "all", root: Path | None = None) -> list[ProblemFile]:
    """Problems that ``selector`` names, in order of their ids.

    A selector is a comma-separated list of ``1/19``, ``1/1-20``, ``level2`` and
    ``all``. Raises SelectorError where a part is malformed or matches nothing.
    """
    problems = find_problems(root or problem_root())
    chosen: dict = {}
    for part in selector.split(","):
        part = part.strip()
        matching = [problem for problem in problems if _matches(part, problem)]
        if not matching:
            raise SelectorError(f"no problem matches '{part}'; `kb problems list` shows what there is")
        chosen.update({problem.id: problem for problem in matching})
    return [chosen[key] for key in sorted(chosen)]


def _matches(part: str, problem: ProblemFile) -> bool:
    if part == "all":
        return True
    if level := re.fullmatch(r"level(\d+)", part):
        return problem.id.level == int(level[1])
    match = _SELECTOR.fullmatch(part)
    if not match:
        raise SelectorError(
            f"'{part}' is not a problem selector; examples: 1/19   1/1-20   level2   all   1/19,level3"
        )
    first = int(match["first"])
    last = int(match["last"] or first)
    return problem.id.level == int(match["level"]) and first <= problem.id.number <= last
