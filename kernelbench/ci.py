"""Checks as continuous integration shows them: text, Markdown, JUnit XML, annotations of GitHub."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from kernelbench import tables
from kernelbench.gate import Check

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def summary(checks: Sequence[Check], notes: Sequence[str], form: str) -> str:
    """A line a solution, then what does not hold and what was not checked; ``form`` is terminal or markdown."""
    rows = [
        (_verdict(c), f"{c.problem}", c.name, c.result.status.value if c.result else "-", _speed(c)) for c in checks
    ]
    parts = [headline(checks), tables.table(("", "problem", "solution", "status", "speedup"), rows, form)]
    mark = "- " if form == "markdown" else "    "
    broken = [f"{mark}{c.problem} {c.name}: {_first_lines(text, mark)}" for c in checks for text in c.broken]
    unchecked = [f"{mark}{c.problem} {c.name}: {text}" for c in checks for text in c.unchecked]
    unchecked += [f"{mark}{note}" for note in notes]
    parts += ["Does not hold:\n\n" + "\n".join(broken)] if broken else []
    parts += ["Not checked here:\n\n" + "\n".join(unchecked)] if unchecked else []
    return "\n\n".join(parts)


def headline(checks: Sequence[Check]) -> str:
    failed = sum(bool(check.broken) for check in checks)
    verdict = f"The gate fails: {failed} of {len(checks)} solution(s)" if failed else "The gate holds"
    return f"{verdict}. {sum(check.result is not None for check in checks)} of {len(checks)} evaluated."


def junit(checks: Sequence[Check]) -> str:
    """A test suite with a test case for each solution, in the form that CI servers read."""
    suite = ElementTree.Element(
        "testsuite", name="kb check", tests=str(len(checks)),
        failures=str(sum(bool(c.broken) for c in checks)), errors="0",
        skipped=str(sum(not c.broken and c.result is None for c in checks)),
        time=f"{sum(c.result.seconds for c in checks if c.result):.3f}",
    )  # fmt: skip
    for check in checks:
        seconds = check.result.seconds if check.result else 0
        case = ElementTree.SubElement(
            suite, "testcase", classname=check.problem, name=_xml(check.name), time=f"{seconds:.3f}"
        )
        for text in check.broken:
            failure = ElementTree.SubElement(case, "failure", message=_xml(text.splitlines()[0]))
            failure.text = _xml(text)
        if not check.broken and check.result is None:
            ElementTree.SubElement(case, "skipped", message=_xml("; ".join(check.unchecked)))
        elif check.unchecked:
            ElementTree.SubElement(case, "system-out").text = _xml("\n".join(check.unchecked))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def annotations(checks: Sequence[Check], solutions: Path) -> str:
    """Workflow commands of GitHub Actions: an error at each file that fails, a notice for what was not checked."""
    lines = []
    for check in checks:
        path = os.path.relpath(solutions / check.name)
        title = f"kb check: {check.problem} {Path(check.name).name}"
        for text in check.broken:
            place = {"file": path, "line": _line(text, check.name), "title": title}
            lines.append(_command("error", place, text))
        if check.unchecked and not check.broken:
            lines.append(_command("notice", {"file": path, "title": title}, "\n".join(check.unchecked)))
    return "\n".join(lines)


def _command(kind: str, properties: dict[str, str], message: str) -> str:
    given = ",".join(f"{key}={_escape(value, ':,')}" for key, value in properties.items() if value)
    return f"::{kind} {given}::{_escape(message)}"


def _escape(text: str, more: str = "") -> str:
    """Percent-encode what would end a workflow command or one of its properties."""
    return "".join(f"%{ord(c):02X}" if c in "%\r\n" + more else c for c in text)


def _line(message: str, name: str) -> str:
    """The first line of the solution's source that a compiler or interpreter names; '' without one."""
    match = re.search(rf"{re.escape(Path(name).name)}(?::|\W+line )(\d+)", message)
    return match[1] if match else ""


def _verdict(check: Check) -> str:
    return "FAILS" if check.broken else "holds" if check.result else "built" if check.built else "-"


def _speed(check: Check) -> str:
    return f"{check.result.speedup:.2f}x" if check.result and check.result.speedup else ""


def _first_lines(text: str, mark: str) -> str:
    return f"\n{' ' * len(mark)}  ".join(text.splitlines()[:4])


def _xml(text: str) -> str:
    return _NOT_XML.sub("?", text)
