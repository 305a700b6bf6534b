"""`kb check`"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from harness.result import Status
from harness.solution import readable
from kernelbench import ci, gate
from kernelbench.cli import GATE_FAILED, UNFIT, WRONG_USAGE, Number, fail
from kernelbench.cli.evaluating import evaluate, evaluation_options
from kernelbench.run import Run, RunError, write_whole


class _Share(click.ParamType):
    name = "PERCENT"

    def convert(self, value, parameter, context) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", str(value).strip())
        if not match or float(match[1]) > 100:
            self.fail(f"'{value}' is no percentage, as in 5%", parameter, context)
        return float(match[1]) / 100


class _Arch(click.ParamType):
    name = "ARCH"

    def convert(self, value, parameter, context) -> str:
        if not re.fullmatch(r"\d+\.\d", str(value)):
            self.fail(f"'{value}' is no compute capability, as in 9.0", parameter, context)
        return value


@click.command("check")
@evaluation_options
@click.option("--require", type=click.Choice([status.value for status in Status]), multiple=True, default=["ok"],
              show_default=True, help="Status that a solution must have; several are alternatives.")  # fmt: skip
@click.option("--min-speedup", type=Number(min=0), metavar="X", help="Fail a solution that is slower.")
@click.option("--max-regression", type=_Share(), help="Fail a solution whose speedup fell by more, as in 5%.")
@click.option("--against", type=click.Path(path_type=Path), metavar="RUN", help="The run that regressions are against.")
@click.option("--arch", type=_Arch(), default="9.0", show_default=True,
              help="Compute capability to build CUDA solutions for where there is no GPU.")  # fmt: skip
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write JUnit XML.")
@click.option("--summary", type=click.Path(path_type=Path), metavar="FILE", envvar="GITHUB_STEP_SUMMARY",
              help="Append a Markdown summary. On GitHub, the job's page.")  # fmt: skip
@click.option("--annotations", is_flag=True, envvar="GITHUB_ACTIONS",
              help="Print annotations for GitHub. On GitHub, always.")  # fmt: skip
def command(require, min_speedup, max_regression, against, arch, junit, summary, annotations, **parameters) -> None:
    """Evaluate as `kb eval` does, and fail unless every solution holds to the limits.

    Exit status: 0 the gate holds, 1 it fails, 2 wrong usage, 3 something could not be checked that this
    machine should be able to check. Without a GPU, GPU solutions are built and named as not checked.

    \b
    Examples:
      kb check --solutions kernels --min-speedup 1.0
      kb check --solutions kernels --max-regression 5% --against runs/main --junit kb.xml
    """
    if (max_regression is None) != (against is None):
        raise click.UsageError("--max-regression and --against need each other")
    try:
        earlier = Run.load(against) if against else None
    except RunError as error:
        fail(error, WRONG_USAGE)
    outcome = evaluate(**parameters)
    limits = gate.Limits(frozenset(map(Status, require)), min_speedup, max_regression)
    checks = gate.check_outcome(outcome, limits, earlier, arch)
    notes = gate.missing(outcome, earlier)
    notes += [f"{readable(path)}: {reason}" for path, reason in outcome.unmapped]
    if outcome.unselected:
        notes.append(f"{outcome.unselected} solution(s) of other problems than the selected ones")
    click.echo(ci.summary(checks, notes, "terminal"))
    if annotations:
        click.echo(ci.annotations(checks, parameters["solutions"]))
    unwritten = []
    for path, write, text in (
        (junit, write_whole, lambda: ci.junit(checks)),
        (summary, _append, lambda: ci.summary(checks, notes, "markdown") + "\n"),
    ):
        try:
            if path:
                write(path, text())
        except OSError as error:
            unwritten.append(error)
            click.echo(f"error: {error}", err=True)
    if any(check.broken for check in checks):
        sys.exit(GATE_FAILED)
    unchecked = any(check.evaluable and not check.checked for check in checks) or outcome.unknown
    if unwritten or unchecked or not any(check.checked for check in checks):
        sys.exit(UNFIT)


def _append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)
