"""`kb findings`"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from harness.integrity.library_only import LEAST_SHARE
from harness.integrity.origin import Origin
from harness.integrity.static import Finding, findings
from harness.integrity.static.rules import INFO
from harness.problem.module import ProblemId
from harness.solution.discover import SUFFIXES, Solution, read_solution, readable
from harness.solution.naming import SolutionError
from kernelbench.cli import WRONG_USAGE, fail, say, say_json
from kernelbench.machine import ncu
from kernelbench.views import tables


@click.command("findings")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--all", "everything", is_flag=True, help="Also what is only worth knowing, such as library calls.")
@click.option("--ncu", "log", type=click.Path(path_type=Path), metavar="LOG",
              help="What `ncu --csv` wrote of one solution's kernels: say which of them are its own.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(paths: tuple[Path, ...], everything: bool, log: Path | None, as_json: bool) -> None:
    """Parse solutions and list what a reviewer should look at: file, line, rule.

    A finding is no verdict, and a source without any may cheat all the same.

    \b
    Examples:
      kb findings mine/level1/19_relu.py
      kb findings mine/**/*.py --json
      ncu --csv --log-file log.csv --metrics gpu__time_duration.sum python my_test.py
      kb findings mine/level1/19_relu.py --ncu log.csv
    """
    if log and len(paths) > 1:
        fail("--ncu is a log of one solution: name one FILE", WRONG_USAGE)
    solutions = [(path, _read(path)) for path in paths]
    found = [finding for path, solution in solutions for finding in _of(path, solution)]
    found = [finding for finding in found if everything or finding.severity != INFO]
    kernels = _kernels(log, solutions[0][1]) if log else []
    if as_json:
        listed = [finding.to_json() for finding in found]
        say_json({"findings": listed, "kernels": kernels} if log else listed)
        return
    rows = [(f"{f.file}:{f.line}", f.severity, f.rule, f.code, f.to_json()["explanation"]) for f in found]
    columns = ("where", "severity", "rule", "code", "why")
    say(tables.table(columns, rows, "terminal", widths=[None, None, None, 40, 50]))
    say(f"\n{len(found)} finding(s) in {len(paths)} file(s)")
    if log:
        _tell(kernels)


def _read(path: Path) -> Solution:
    if path.suffix not in SUFFIXES:
        fail(f"{path} is no source of a solution: expected a file ending in {', '.join(SUFFIXES)}", WRONG_USAGE)
    try:
        return read_solution(path, problem=ProblemId(1, 1))
    except SolutionError as error:
        fail(f"{path}: {error}", WRONG_USAGE)
    except OSError as error:
        fail(f"cannot read {path}: {error.strerror}", WRONG_USAGE)


def _of(path: Path, solution: Solution) -> list[Finding]:
    return [replace(finding, file=readable(path)) for finding in findings(solution)]


def _kernels(log: Path, solution: Solution) -> list[dict]:
    """Return each kernel's share of the time, and whether it is the solution's own."""
    try:
        return ncu.whose(ncu.read(ncu.read_log(log)), Origin.of(solution))
    except (OSError, ncu.NsightError) as error:
        fail(f"cannot read {log}: {getattr(error, 'strerror', None) or error}", WRONG_USAGE)


def _tell(kernels: list[dict]) -> None:
    rows = [(k["name"], k["launches"], f"{k['share']:.1%}", "its own" if k["own"] else "a library's") for k in kernels]
    columns = ("kernel", "launches", "of the time", "whose")
    say("\n" + tables.table(columns, rows, "terminal", widths=[70, None, None, None]))
    share = sum(kernel["share"] for kernel in kernels if kernel["own"])
    only = ": in the track 'kernels' it would be rejected as library_only" if share < LEAST_SHARE else ""
    say(f"\nits own kernels take {share:.1%} of the time{only}")
