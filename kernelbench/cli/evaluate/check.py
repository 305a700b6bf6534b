"""`kb check`"""

from __future__ import annotations

import errno
import re
import sys
from pathlib import Path

import click

from harness.result import Status
from harness.solution.discover import Solution
from kernelbench import escaping
from kernelbench.cli import UNFIT, WRONG_USAGE, Number, OutputFile, Percent, fail, json_option, say, writing
from kernelbench.cli.evaluation_options import evaluate, evaluation_options
from kernelbench.cli.grouped import GroupedCommand
from kernelbench.evaluation.directory import Outcome
from kernelbench.gate import ci, thresholds
from kernelbench.gate.build_check import Build, build_only
from kernelbench.run import Run, RunError
from kernelbench.run_files.folder import run_left_by_a_link
from kernelbench.run_files.log import write_named


class _Arch(click.ParamType):
    name = "ARCH"

    def convert(self, value, parameter, context) -> str:
        if not re.fullmatch(r"\d+\.\d", str(value)):
            self.fail(f"'{value}' is no compute capability, as in 9.0", parameter, context)
        return value


@click.command("check", cls=GroupedCommand)
@click.option("--solutions", required=True, type=click.Path(path_type=Path), help="Directory of solutions.")
@evaluation_options
@click.option("--require", type=click.Choice([status.value for status in Status]), multiple=True, default=["ok"],
              show_default=True, metavar="STATUS", help="Accepted status, once or more.")  # fmt: skip
@click.option("--min-speedup", type=Number(min=0), metavar="X",
              help="Fail if the speedup's interval lies below X.")  # fmt: skip
@click.option("--prove-speedup", type=Number(min=0), metavar="X",
              help="Fail unless that interval lies above X.")  # fmt: skip
@click.option("--max-regression", type=Percent(), help="Fail if the speedup fell by more, as in 5%.")
@click.option("--against", type=click.Path(path_type=Path), metavar="RUN",
              help="Run to compare with; its solutions must be there.")  # fmt: skip
@click.option("--allow-unmapped", is_flag=True, help="Accept files that map to no problem, or to that of another file.")
@click.option("--allow-missing", is_flag=True, help="Accept problems of --problems without a solution.")
@click.option("--allow-removed", is_flag=True, help="Accept that solutions of --against are gone.")
@click.option("--arch", type=_Arch(), default="9.0", show_default=True,
              help="Architecture to build for without a GPU.")  # fmt: skip
@click.option("--junit", type=OutputFile(), metavar="FILE", help="Write JUnit XML.")
@click.option("--summary", type=OutputFile(), metavar="FILE", envvar="GITHUB_STEP_SUMMARY",
              help="Append a Markdown summary.")  # fmt: skip
@click.option("--annotations", is_flag=True, envvar="GITHUB_ACTIONS",
              help="Print annotations for GitHub.")  # fmt: skip
@json_option
def command(
    solutions, require, min_speedup, prove_speedup, max_regression, against, allow_unmapped, allow_missing,
    allow_removed, arch, junit, summary, annotations, as_json, **parameters,
) -> None:  # fmt: skip
    """Evaluate as `kb eval` does, and fail unless every solution holds to the limits.

    Exit status: 0 the gate holds, 1 it fails, 2 wrong usage, 3 something could not be checked, such as a speedup
    that stays unstable in three measurements. docs/ci.md has a workflow to copy.

    \b
    Examples:
      kb check --solutions kernels --min-speedup 1.0
      kb check --solutions kernels --max-regression 5% --against runs/main --junit kb.xml
    """
    if max_regression is not None and against is None:
        raise click.UsageError("--max-regression needs --against, the run to compare with")
    if solutions.is_file():
        raise click.UsageError(f"{solutions} is a file: a gate is over a directory; `kb eval FILE` evaluates one file")
    try:
        earlier = Run.load(against) if against else None
    except RunError as error:
        fail(error, WRONG_USAGE)
    limits = thresholds.Limits(frozenset(map(Status, require)), min_speedup, prove_speedup, max_regression)
    outcome = _settled(solutions, limits, parameters)
    allowed = thresholds.Allowed(allow_unmapped, allow_missing, allow_removed)
    gaps, notes = thresholds.check_directory(outcome, earlier, allowed)
    builds = _built(thresholds.for_elsewhere(outcome), arch, **parameters)
    checks = thresholds.check_outcome(outcome, limits, earlier, builds) + gaps
    say(escaping.json_text(ci.to_json(checks, notes)) if as_json else ci.summary(checks, notes, "terminal"))
    if annotations:
        with writing(err=as_json):
            click.echo(ci.annotations(checks, solutions), err=as_json)  # each of its lines is a command of ours
    written = _write(junit, summary, checks, notes)
    sys.exit(thresholds.exit_status(checks) or (thresholds.HOLDS if written else UNFIT))


def _built(
    solutions: list[Solution], arch: str, *, problem_dir, precision, build_timeout, memory, **_
) -> list[Build]:
    """Build what this machine cannot run, under the options of the evaluation."""
    memory_bytes = memory and int(memory * 1e9)
    return build_only(
        solutions, arch, problem_dir, precision=precision, timeout_s=build_timeout, memory_bytes=memory_bytes
    )


def _settled(solutions: Path, limits: thresholds.Limits, parameters: dict) -> Outcome:
    """Evaluate, and measure again what is unstable and under a limit."""
    outcome = evaluate(solutions, **parameters)
    for _ in range(thresholds.MEASUREMENTS - 1):
        again = thresholds.unstable_cases(thresholds.results_of(outcome), limits)
        if not again:
            break
        say(f"measured again, because it is unstable: {len(again)} speedup(s)", err=True)
        outcome = evaluate(solutions, **{**parameters, "out": outcome.run.path, "resume": True}, again=again)
    return outcome


def _write(junit: Path | None, summary: Path | None, checks: list[thresholds.Check], notes: list[str]) -> bool:
    """Write the files that are wanted; whether that went well."""
    try:
        if junit:
            write_named(junit, ci.junit(checks))
        if summary:
            if run_left_by_a_link(summary):
                raise OSError(errno.ELOOP, "a link in a run is not written through", str(summary))
            with summary.open("a", encoding="utf-8") as file:
                file.write(ci.summary(checks, notes, "markdown") + "\n")
    except OSError as error:
        say(f"error: {error}", err=True)
        return False
    return True
