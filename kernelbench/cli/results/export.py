"""`kb export`"""

from __future__ import annotations

from pathlib import Path

import click

from kernelbench.cli import UNFIT, WRONG_USAGE, fail, out_option
from kernelbench.formats import exchange
from kernelbench.run import Run, RunError


@click.command("export")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option("--to", "form", type=click.Choice(exchange.FORMATS), required=True,
              help="Format: files of other tools, or a table.")  # fmt: skip
@click.option("--level", type=click.IntRange(min=1), help="Level to export to kernelbench, where there are several.")
@out_option("File to write.", required=True)
def command(runs: tuple[Path, ...], form: str, level: int | None, out: Path) -> None:
    """Write runs for other tools.

    KernelBench's files have no word for sizes: ours stand under a key `workload`, which `kb import` reads.

    \b
    Examples:
      kb export runs/mine --to kernelbench --level 1 -o eval_results.json
      kb export runs/* --to csv -o results.csv
    """
    try:
        exchange.export([Run.load(path) for path in runs], form, out, level)
    except OSError as error:
        fail(error, UNFIT)
    except (RunError, exchange.ExchangeError) as error:
        fail(error, WRONG_USAGE)
