"""`kb starter`"""

from __future__ import annotations

from pathlib import Path

import click

from harness.problem import ProblemError
from kernelbench.cli import WRONG_USAGE, fail, precision_option


@click.command("starter")
@click.argument("problem")
@click.option("--kind", type=click.Choice(["py", "cu", "cpp"]), default="cu", show_default=True)
@precision_option
@click.option("--problem-dir", type=click.Path(path_type=Path), help="Another folder of problems.")
def command(problem: str, kind: str, precision: str, problem_dir: Path | None) -> None:
    """Print a starter file for a problem: it builds as it is and awaits the kernel.

    \b
    Example:
      mkdir -p mine/level1 && kb starter 1/19 > mine/level1/19_relu.cu
    """
    from kernelbench import starter  # imports torch

    try:
        click.echo(starter.source(problem, kind, precision, problem_dir), nl=False)
    except (ValueError, ProblemError) as error:
        fail(error, WRONG_USAGE)
