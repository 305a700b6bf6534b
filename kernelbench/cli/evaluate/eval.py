"""`kb eval`"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.solution.discover import readable
from kernelbench import escaping
from kernelbench.cli import UNFIT, say
from kernelbench.cli.evaluation_options import evaluate, evaluation_options
from kernelbench.cli.grouped import GroupedCommand
from kernelbench.evaluation.directory import Outcome
from kernelbench.views import leaderboard


@click.command("eval", cls=GroupedCommand)
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--solutions", type=click.Path(path_type=Path), help="Directory of solutions, the same as PATH.")
@click.option("--problem", metavar="ID", help="Problem that one file solves. Else as its name says.")
@evaluation_options
@click.option("--json", "as_json", is_flag=True, help="Print the leaderboard as JSON.")
def command(path: Path | None, solutions: Path | None, as_json: bool, **parameters) -> None:
    """Build, check and time every solution in a directory, or one file.

    \b
    Examples:
      kb eval --solutions mine
      kb eval --solutions mine --problems level1 -o runs/mine --resume
      kb eval relu.cu --problem 1/19
    """
    if (path is None) == (solutions is None):
        raise click.UsageError("name one directory of solutions or one file: kb eval --solutions DIR, or kb eval FILE")
    outcome = evaluate(solutions or path, **parameters)
    data = leaderboard.summary(outcome.run, outcome.problems)
    say(escaping.json_text(data) if as_json else _report(outcome, data))
    failed = [skipped for skipped in outcome.skipped + outcome.unconfirmed if not skipped.elsewhere]
    if failed or outcome.skipped and not outcome.run.results:
        sys.exit(UNFIT)


def _report(outcome: Outcome, data: dict) -> str:
    results = outcome.run.latest()
    parts = [leaderboard.result_table(results)]
    if failures := leaderboard.failure_list(results):
        parts.append(f"Failures:\n{failures}")
    if outcome.skipped:
        lines = [f"    {s.solution.problem} {s.solution.name}: {s.reason}" for s in outcome.skipped]
        parts.append(f"Not evaluated here ({len(lines)}):\n" + "\n".join(lines))
    if outcome.unconfirmed:
        lines = [f"    {s.solution.problem} {s.solution.name}: {s.reason}" for s in outcome.unconfirmed]
        parts.append(f"Best of several samples, not measured again ({len(lines)}):\n" + "\n".join(lines))
    if outcome.unmapped:
        lines = [f"    {readable(path)}: {reason}" for path, reason in outcome.unmapped]
        parts.append(f"Files without a problem ({len(lines)}):\n" + "\n".join(lines))
    if outcome.unselected:
        parts.append(f"{outcome.unselected} solution(s) of other problems than the selected ones.")
    parts += [leaderboard.fast_p_table(data), f"Results: {outcome.run.path}\nAs a page: kb report {outcome.run.path}"]
    return "\n\n".join(parts)
