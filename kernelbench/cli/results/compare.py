"""`kb compare`"""

from __future__ import annotations

from pathlib import Path

import click

from kernelbench.cli import WRONG_USAGE, fail, say
from kernelbench.run import Run, RunError
from kernelbench.views import comparison, tables


@click.command("compare")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(tables.FORMATS), default="terminal", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def command(before: Path, after: Path, form: str, as_json: bool) -> None:
    """Compare two runs problem by problem: faster, slower, a tie, newly broken, newly fixed.

    Speedups are compared, each against the baseline of its own run. What the intervals of their samples
    cannot tell apart is a tie. Speedups of different sizes, or of sizes that a log does not name, are not compared.

    \b
    Example:
      kb compare runs/monday runs/tuesday
    """
    try:
        say(comparison.render(Run.load(before), Run.load(after), "json" if as_json else form))
    except RunError as error:
        fail(error, WRONG_USAGE)
