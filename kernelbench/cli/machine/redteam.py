"""`kb redteam`"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kernelbench import escaping
from kernelbench.cli import (
    GATE_FAILED,
    INTERRUPTED,
    UNFIT,
    WRONG_USAGE,
    device_option,
    fail,
    json_option,
    out_option,
    say,
)
from kernelbench.evaluation.executor import EnvironmentUnfit
from kernelbench.evaluation.progress import Progress
from kernelbench.redteam.catalogue import CLASSES
from kernelbench.redteam.examination import Row, examine
from kernelbench.run_files.log import write_named
from kernelbench.views import tables

_EVIDENCE_CHARACTERS = 100


class _Numbers(click.ParamType):
    name = "N,..."

    def convert(self, value, parameter, context) -> set[int]:
        known = {str(number): number for number in CLASSES}
        parts = [part.strip() for part in str(value).split(",")]
        numbers = {known[part] for part in parts if part in known}
        if len(numbers) < len(parts):
            self.fail(f"'{value}' is not a list of classes from 1 to {max(CLASSES)}", parameter, context)
        return numbers


@click.command("redteam")
@device_option()
@click.option("--class", "numbers", type=_Numbers(), help="Only these classes.")
@json_option
@out_option("Write a Markdown table too.")
def command(device: str | None, numbers: set[int] | None, as_json: bool, out: Path | None) -> None:
    """Try to cheat: run a program for every known trick, and honest ones that look alike.

    Exit status: 0 every class that could be tried here is prevented or detected and every honest program is ok,
    1 something got through or an honest program was refused.

    \b
    Examples:
      kb redteam
      kb redteam --class 4,16,22 --device cpu
    """
    progress = Progress()
    try:
        rows = examine(numbers, device, progress)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except EnvironmentUnfit as error:
        fail(error, UNFIT)
    finally:
        progress.close()
    say(escaping.json_text([row.to_json() for row in rows]) if as_json else _report(rows))
    if out:
        try:
            write_named(out, _table(rows, "markdown") + "\n")
        except OSError as error:
            fail(error, WRONG_USAGE)
    if not all(row.holds for row in rows):
        sys.exit(GATE_FAILED)


def _report(rows: list[Row]) -> str:
    counts = {
        grade: sum(row.grade == grade for row in rows) for grade in ("prevented", "detected", "missed", "not run")
    }
    told = ", ".join(f"{count} {grade}" for grade, count in counts.items() if count)
    refused = [
        f"\nhonest, and yet {verdict.grade}: {verdict.program}: {verdict.evidence}"
        for row in rows
        for verdict in row.honest
        if not verdict.expected
    ]
    return f"{_table(rows, 'terminal')}\n\n{len(rows)} classes: {told}{''.join(refused)}"


def _table(rows: list[Row], form: str) -> str:
    lines = []
    for row in rows:
        honest = ", ".join(verdict.grade for verdict in row.honest)
        for index, verdict in enumerate(row.exploits):
            first = (row.number, row.title, row.grade) if index == 0 else ("", "", "")
            evidence = verdict.evidence[:_EVIDENCE_CHARACTERS]
            lines.append((*first, verdict.program.partition(".")[0], evidence, honest if index == 0 else ""))
    return tables.table(("", "class", "grade", "program", "evidence", "honest"), lines, form)
