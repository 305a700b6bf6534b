"""`kb lineage`"""

from __future__ import annotations

from pathlib import Path

import click

from harness.problem.module import ProblemError
from kernelbench import suite
from kernelbench.cli import WRONG_USAGE, fail, json_option, say, say_json
from kernelbench.run import Run, RunError
from kernelbench.suite import SelectorError
from kernelbench.views import lineage


@click.command("lineage")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option("--problems", "selector", metavar="SELECTOR", help="Problems that count, solved or not.")
@click.option("--problem-dir", type=click.Path(path_type=Path), help="The folder that they are in.")
@json_option
def command(runs: tuple[Path, ...], selector: str | None, problem_dir: Path | None, as_json: bool) -> None:
    """Show what the searches of `kb solve` did, from their lineage.

    Quality by difficulty; how often each strategy was applied, succeeded, and led to the best kernel; speedup over
    attempts and dollars; where the time went; average regret. Fallback counts failures and regressions as 1.

    \b
    Examples:
      kb lineage runs/kernelband runs/geak runs/best_of_n
      kb lineage runs/kernelband --problems tritonbench-50 --problem-dir TritonBench --json
    """
    try:
        problems = [str(one) for one in suite.ids(selector, problem_dir)] if selector else None
        found = {str(path): lineage.of_run(Run.load(path), problems) for path in runs}
    except (RunError, SelectorError, ProblemError) as error:
        fail(error, WRONG_USAGE)
    say_json(found) if as_json else say(lineage.text(found))
