"""`kb compare`"""

from __future__ import annotations

from pathlib import Path

import click

from kernelbench import comparison, tables
from kernelbench.cli import WRONG_USAGE, fail
from kernelbench.run import Run, RunError


@click.command("compare")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(tables.FORMATS), default="terminal", show_default=True)
def command(before: Path, after: Path, form: str) -> None:
    """Compare two runs problem by problem: faster, slower, a tie, newly broken, newly fixed.

    Speedups are compared, each against the baseline of its own run. What the intervals of their samples
    cannot tell apart is a tie.

    \b
    Example:
      kb compare runs/monday runs/tuesday
    """
    try:
        click.echo(comparison.render(Run.load(before), Run.load(after), form))
    except RunError as error:
        fail(error, WRONG_USAGE)
