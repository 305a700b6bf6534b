"""`kb problems`"""

from __future__ import annotations

import sys
from pathlib import Path

import click
from tabulate import tabulate

from harness.problem import ProblemError
from kernelbench import suite
from kernelbench.cli import WRONG_USAGE

_folder = click.option(
    "--problem-dir", type=click.Path(path_type=Path), help="Another folder of problems, ours or KernelBench's."
)


@click.group("problems")
def command() -> None:
    """List the problems of the suite, or show one."""


@command.command("list")
@click.argument("selector", default="all")
@_folder
def list_(selector: str, problem_dir: Path | None) -> None:
    """List problems.

    \b
    Examples:
      kb problems list
      kb problems list level2
    """
    try:
        problems = suite.find(selector, problem_dir)
    except (suite.SelectorError, ProblemError) as error:
        raise click.UsageError(str(error)) from error
    rows = [(p.id, p.name, ", ".join(p.workload_names()), p.summary()) for p in problems]
    click.echo(tabulate(rows, ("problem", "name", "workloads", "what it computes"), disable_numparse=True))


@command.command("show")
@click.argument("problem")
@click.option("--workload", help="Which sizes. Without it, the published ones.")
@_folder
def show(problem: str, workload: str | None, problem_dir: Path | None) -> None:
    """Show a problem: its source, sizes, work and the signature of a .cu or .cpp solution.

    \b
    Example:
      kb problems show 1/19
    """
    from kernelbench import starter  # imports torch

    try:
        click.echo(starter.description(problem, workload, problem_dir))
    except (ValueError, ProblemError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(WRONG_USAGE)
