"""`kb findings`"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click
from tabulate import tabulate

from harness.integrity.static import Finding, findings
from harness.integrity.static.rules import INFO
from harness.problem import ProblemId
from harness.solution import SUFFIXES, read_solution
from kernelbench.cli import WRONG_USAGE, fail


@click.command("findings")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--all", "everything", is_flag=True, help="Also what is only worth knowing, such as library calls.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(paths: tuple[Path, ...], everything: bool, as_json: bool) -> None:
    """Parse solutions and list what a reviewer should look at: file, line, rule.

    A finding is no verdict, and a source without any may cheat all the same.

    \b
    Examples:
      kb findings mine/level1/19_relu.py
      kb findings mine/**/*.py --json
    """
    found = [finding for path in paths for finding in _of(path) if everything or finding.severity != INFO]
    if as_json:
        click.echo(json.dumps([finding.to_json() for finding in found], indent=2))
        return
    rows = [(f"{f.file}:{f.line}", f.severity, f.rule, f.code, f.to_json()["explanation"]) for f in found]
    click.echo(tabulate(rows, ("where", "severity", "rule", "code", "why"), maxcolwidths=[40, None, None, 40, 50]))
    click.echo(f"\n{len(found)} finding(s) in {len(paths)} file(s)")


def _of(path: Path) -> list[Finding]:
    if path.suffix not in SUFFIXES:
        fail(f"{path} is no source of a solution: expected a file ending in {', '.join(SUFFIXES)}", WRONG_USAGE)
    try:
        solution = read_solution(path, problem=ProblemId(1, 1))
    except OSError as error:
        fail(f"cannot read {path}: {error.strerror}", WRONG_USAGE)
    return [replace(finding, file=str(path)) for finding in findings(solution)]
