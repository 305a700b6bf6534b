"""`kb eval`"""

from __future__ import annotations

import json
import sys

import click

from harness.solution import readable
from kernelbench import leaderboard
from kernelbench.cli import UNFIT
from kernelbench.cli.evaluating import evaluate, evaluation_options
from kernelbench.evaluation import Outcome


@click.command("eval")
@evaluation_options
@click.option("--json", "as_json", is_flag=True, help="Print the leaderboard as JSON.")
def command(as_json: bool, **parameters) -> None:
    """Build, check and time every solution in a directory.

    \b
    Examples:
      kb eval --solutions examples
      kb eval --solutions my_kernels --problems level1 --out runs/mine --resume
    """
    outcome = evaluate(**parameters)
    data = leaderboard.summary(outcome.run, outcome.problems)
    click.echo(json.dumps(data, indent=2) if as_json else _report(outcome, data))
    if any(not skipped.elsewhere for skipped in outcome.skipped) or outcome.skipped and not outcome.run.results:
        sys.exit(UNFIT)


def _report(outcome: Outcome, data: dict) -> str:
    results = outcome.run.latest()
    parts = [leaderboard.result_table(results)]
    if failures := leaderboard.failure_list(results):
        parts.append(f"Failures:\n{failures}")
    if outcome.skipped:
        lines = [f"    {s.solution.problem} {s.solution.name}: {s.reason}" for s in outcome.skipped]
        parts.append(f"Not evaluated here ({len(lines)}):\n" + "\n".join(lines))
    if outcome.unmapped:
        lines = [f"    {readable(path)}: {reason}" for path, reason in outcome.unmapped]
        parts.append(f"Files without a problem ({len(lines)}):\n" + "\n".join(lines))
    if outcome.unselected:
        parts.append(f"{outcome.unselected} solution(s) of other problems than the selected ones.")
    parts += [leaderboard.fast_p_table(data), f"Results: {outcome.run.path}\nAs a page: kb report {outcome.run.path}"]
    return "\n\n".join(parts)
