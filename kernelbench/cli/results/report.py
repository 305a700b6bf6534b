"""`kb report`"""

from __future__ import annotations

from pathlib import Path

import click

from harness.problem.module import ProblemError
from kernelbench.cli import UNFIT, WRONG_USAGE, fail, out_option, say
from kernelbench.report import page
from kernelbench.run import Run, RunError
from kernelbench.run_files.log import write_named, write_whole
from kernelbench.suite import SelectorError

_DEFAULT = "report.html"


@click.command("report")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@out_option(f"File to write. Without it, {_DEFAULT}.")
def command(runs: tuple[Path, ...], out: Path | None) -> None:
    """Write runs as one HTML file that opens anywhere: no server, no network.

    \b
    Examples:
      kb report runs/mine
      kb report runs/ours runs/theirs -o compared.html
    """
    try:
        text = page.report([Run.load(path) for path in dict.fromkeys(runs)])
        if out:
            write_named(out, text)
        else:
            write_whole(out := Path(_DEFAULT), text)
    except OSError as error:
        fail(error, UNFIT)
    except (RunError, SelectorError, ProblemError) as error:
        fail(error, WRONG_USAGE)
    say(f"{out} ({out.stat().st_size / 1e6:.1f} MB)")
