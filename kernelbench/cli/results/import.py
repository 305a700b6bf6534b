"""`kb import`"""

from __future__ import annotations

from pathlib import Path

import click

from kernelbench.cli import UNFIT, WRONG_USAGE, fail, say
from kernelbench.formats import exchange
from kernelbench.formats.kernelbench import FormatError
from kernelbench.metrics.workloads import UNKNOWN
from kernelbench.run import RunError, WriteError


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--level", type=click.IntRange(min=1), required=True, help="Level of the problems; the file has none.")
@click.option("--baseline", type=click.Path(path_type=Path), metavar="FILE",
              help="Baseline timings of KernelBench. Without them there are no speedups.")  # fmt: skip
@click.option("--workload", metavar="NAME",
              help="Sizes of results that do not name theirs, as full. Without it they are unknown.")  # fmt: skip
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="Run directory to make.")
def command(file: Path, level: int, baseline: Path | None, workload: str | None, out: Path) -> None:
    """Make a run of KernelBench's eval_results.json, for every view that runs have.

    A speedup has an interval from means, deviations and numbers of trials; without them it is unstable. A
    baseline of other sizes than the solution's gives none.

    \b
    Example:
      kb import runs/theirs/eval_results.json --level 1 --baseline baseline_time_torch.json -o runs/imported
    """
    try:
        run = exchange.import_kernelbench(file, level, out, baseline, workload)
    except WriteError as error:
        fail(error, UNFIT)
    except (FormatError, RunError) as error:
        fail(error, WRONG_USAGE)
    untimed = sum(result.correct and result.speedup is None for result in run.results)
    unknown = sum(result.workload["name"] == UNKNOWN for result in run.results)
    say(f"{len(run.results)} result(s) in {run.path}; {untimed} of the correct ones without a speedup")
    if unknown:
        say(f"{unknown} of unknown sizes, which `kb compare` compares with nothing: name them with --workload")
