"""Checks as continuous integration shows them: text, Markdown, JUnit XML, annotations of GitHub."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from harness.result import first_line, printable
from harness.solution.discover import name_shown
from kernelbench import escaping
from kernelbench.gate.thresholds import FAILS, HOLDS, UNDECIDED, Check, exit_status
from kernelbench.metrics import settled
from kernelbench.views import leaderboard, tables

_MOST_BYTES = 1_000_000  # of a summary: GitHub shows none of more than 1 MiB, of no author
_MOST_CHARACTERS = 1_000  # of one of its lines: a name has half of them
_WORDS = {HOLDS: "holds", FAILS: "FAILS", UNDECIDED: "undecided"}


def summary(checks: Sequence[Check], notes: Sequence[str], form: str) -> str:
    """Return a line for each solution, then what does not hold and what was not checked.

    ``form`` is terminal or markdown, which has no more than a forge shows: what is too much is counted.
    """
    rows = [
        (_verdict(c), f"{c.problem}", c.name, c.result.status.value if c.result else "-", speedup(c)) for c in checks
    ]
    parts = [headline(checks), tables.table(("", "problem", "solution", "status", "speedup"), rows, form)]
    unchecked = _lines(checks, "unchecked", form) + [_line_of(note, form) for note in notes]
    for title, lines in (
        ("Does not hold", _lines(checks, "broken", form)),
        ("Could not be checked", _lines(checks, "undecided", form)),
        ("Not checked here", unchecked),
    ):
        lines = _within(lines, _MOST_BYTES // 5) if form == "markdown" else lines
        parts += [f"{title}:\n\n" + "\n".join(lines)] if lines else []
    if form == "markdown" and sum(len(part.encode()) for part in parts) > _MOST_BYTES:
        parts[1] = f"The table of all {len(rows)} is too large to be shown here."
    return "\n\n".join(parts)


def _within(lines: list[str], most: int) -> list[str]:
    """Return the first of some items that have so many bytes, and how many more there are."""
    kept, size = 0, 0
    for line in lines:
        size += len(line.encode()) + 1
        if size > most:
            return [*lines[:kept], f"- and {len(lines) - kept} more"]
        kept += 1
    return lines


def headline(checks: Sequence[Check]) -> str:
    """Return the gate's verdict and how many checks it rests on, as a sentence."""
    status = exit_status(checks)
    count = sum(check.status == status for check in checks)
    verdict = {
        HOLDS: "The gate holds",
        FAILS: f"The gate fails: {count} of {len(checks)} do not hold",
        UNDECIDED: f"The gate is undecided: {count} of {len(checks)} could not be checked",
    }[status]
    return f"{verdict}. {sum(check.result is not None for check in checks)} of {len(checks)} evaluated."


def speedup(check: Check) -> str:
    """Return the settled speedup with its verdict, as in ``1.31x (faster)``; '' where the result is not correct."""
    result = check.result
    if result is None or not result.correct:
        return ""
    text, verdict = settled.speedup_text(result), settled.verdict(result)
    return f"{text} ({verdict})" if verdict in (settled.FASTER, settled.SLOWER) else text or "not timed"


def to_json(checks: Sequence[Check], notes: Sequence[str]) -> dict[str, Any]:
    """Return the gate as data: its verdict, and for each check what it found, with every figure of its result."""
    return {
        "verdict": _WORDS[exit_status(checks)].lower(),
        "exit_status": exit_status(checks),
        "checks": [
            {
                "problem": check.problem,
                "solution": check.name,
                "verdict": _verdict(check).lower(),
                "broken": check.broken,
                "undecided": check.undecided,
                "unchecked": check.unchecked,
                "result": leaderboard.row(check.result) if check.result else None,
            }
            for check in checks
        ],
        "notes": list(notes),
    }


def junit(checks: Sequence[Check]) -> str:
    """Return a test suite with a test case for each solution, in the form that CI servers read."""
    statuses = [check.status for check in checks]
    suite = ElementTree.Element(
        "testsuite", name="kb check", tests=str(len(checks)),
        failures=str(statuses.count(FAILS)), errors=str(statuses.count(UNDECIDED)),
        skipped=str(sum(map(_is_skipped, checks))),
        time=f"{sum(c.result.seconds for c in checks if c.result):.3f}",
    )  # fmt: skip
    for check in checks:
        seconds = check.result.seconds if check.result else 0
        case = ElementTree.SubElement(
            suite, "testcase", classname=check.problem, name=escaping.xml(check.name or check.problem),
            time=f"{seconds:.3f}",
        )
        _fill(case, check)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _fill(case: ElementTree.Element, check: Check) -> None:
    for tag, texts in (("failure", check.broken), ("error", check.undecided if not check.broken else [])):
        for text in texts:
            ElementTree.SubElement(case, tag, message=escaping.xml(first_line(text))).text = escaping.xml(text)
    if _is_skipped(check):
        ElementTree.SubElement(case, "skipped", message=escaping.xml("; ".join(check.unchecked)))
    shown = [f"speedup {speedup(check)}"] if speedup(check) else []
    shown += check.unchecked if check.result else []
    if shown:
        ElementTree.SubElement(case, "system-out").text = escaping.xml("\n".join(shown))


def _is_skipped(check: Check) -> bool:
    return check.status == HOLDS and check.result is None


def annotations(checks: Sequence[Check], solutions: Path) -> str:
    """Return workflow commands of GitHub Actions.

    An error at each file that fails or could not be checked, a notice for what was not checked.
    """
    lines = []
    for check in checks:
        path = os.path.relpath(solutions / name_shown(check.name))  # a forge looks for the file
        path = path if printable(path) == path else ""  # and may find another by what can be shown
        title = f"kb check: {check.problem} {Path(check.name).name}".rstrip()
        for text in check.broken:
            place = {"file": path, "line": _line(text, check.name), "title": title}
            lines.append(escaping.workflow_command("error", place, text))
        if check.undecided and not check.broken:
            text = "could not be checked: " + "\n".join(check.undecided)
            lines.append(escaping.workflow_command("error", {"file": path, "title": title}, text))
        if check.unchecked and check.status == HOLDS:
            text = "\n".join(check.unchecked)
            lines.append(escaping.workflow_command("notice", {"file": path, "title": title}, text))
    return "\n".join(lines)


def _line(message: str, name: str) -> str:
    """The first line of the solution's source that a compiler or interpreter names; '' without one."""
    match = re.search(rf"{re.escape(Path(name).name)}(?::|\W+line )(\d+)", message)
    return match[1] if match else ""


def _verdict(check: Check) -> str:
    if check.status != HOLDS or check.result:
        return _WORDS[check.status]
    return "built" if check.built else "-"


def _lines(checks: Sequence[Check], kind: str, form: str) -> list[str]:
    return [_line_of(f"{_name(check)}: {text}", form) for check in checks for text in getattr(check, kind)]


def _line_of(text: str, form: str) -> str:
    """The first lines of a text as an item of a list."""
    lines = [escaping.cut_apart(line, _MOST_CHARACTERS) for line in text.splitlines()[:4]]
    return f"- {escaping.markdown_lines(lines)}" if form == "markdown" else "    " + "\n      ".join(lines)


def _name(check: Check) -> str:
    return f"{check.problem} {check.name}".removeprefix("- ").rstrip()
