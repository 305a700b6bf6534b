"""`kb leaderboard`"""

from __future__ import annotations

from pathlib import Path

import click

from harness.problem.module import ProblemError
from kernelbench.cli import WRONG_USAGE, fail, say
from kernelbench.run import Run, RunError
from kernelbench.suite import SelectorError
from kernelbench.views import ranking, tables


@click.command("leaderboard")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option("--problems", "selector", metavar="SELECTOR",
              help="Problems that count for every run. Without it, those that any of the runs counts.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(tables.FORMATS), default="terminal", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def command(runs: tuple[Path, ...], selector: str | None, form: str, as_json: bool) -> None:
    """Rank runs: models, agents or GPUs, on the same problems.

    A problem without a solution counts. Runs that differ by no more than chance share a rank.

    \b
    Examples:
      kb leaderboard runs/ours runs/theirs
      kb leaderboard runs/* --problems level1 --format csv > level1.csv
    """
    try:
        data = ranking.standings([Run.load(path) for path in dict.fromkeys(runs)], selector)
    except (RunError, SelectorError, ProblemError) as error:
        fail(error, WRONG_USAGE)
    say(ranking.render(data, "json" if as_json else form))
