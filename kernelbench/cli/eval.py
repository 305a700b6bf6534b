"""`kb eval`"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from harness.problem import ProblemError
from harness.solution import SolutionError
from kernelbench import leaderboard
from kernelbench.cli import UNFIT, WRONG_USAGE
from kernelbench.evaluation import Outcome, evaluate_directory
from kernelbench.execution import EXECUTORS, EnvironmentUnfit, Options
from kernelbench.progress import Progress
from kernelbench.run import RunError, WriteError
from kernelbench.suite import SelectorError

_INTERRUPTED = 130


@click.command("eval")
@click.option("--solutions", required=True, type=click.Path(path_type=Path), help="Directory of solutions.")
@click.option("--problems", "selector", metavar="SELECTOR",
              help="Problems that count: 1/19, 1/1-20, level2, all, or a comma-separated list. "
                   "Without it, those that have a solution.")  # fmt: skip
@click.option("--problem-dir", type=click.Path(path_type=Path),
              help="Another folder of problems, ours or KernelBench's.")  # fmt: skip
@click.option(
    "--device", help="cpu, cuda, cuda:INDEX, several as cuda:0,cuda:1, or cuda:all. Without it, a GPU if there is one."
)
@click.option("--workload", help="Which sizes. Without it, full on a GPU and small on a CPU.")
@click.option("--precision", type=click.Choice(["fp32", "fp16", "bf16"]), default="fp32", show_default=True)
@click.option("--jobs", type=click.IntRange(min=1), help="Builds side by side. Without it, one a core.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=120, show_default=True,
              help="Seconds that one step of a candidate may take: loading it, a round of calls.")  # fmt: skip
@click.option("--build-timeout", type=click.FloatRange(min=0, min_open=True), default=900, show_default=True,
              help="Seconds that a build may take.")  # fmt: skip
@click.option("--memory", type=click.FloatRange(min=0, min_open=True), metavar="GB",
              help="Host memory that a candidate may take. Without it, half of what is available.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Run directory. Without it, a new one under runs/.")
@click.option("--resume", is_flag=True, help="Continue the run in --out: evaluate what is missing or has changed.")
@click.option("--prebuilt", is_flag=True, help="Accept .so files, built by somebody else.")
@click.option("--executor", type=click.Choice(sorted(EXECUTORS)), default="local", show_default=True,
              help="Where it runs: this host, or the nodes of a Ray cluster.")  # fmt: skip
@click.option("--address", help="Of the Ray cluster. Without it, the one that Ray finds, or one on this host.")
@click.option("--json", "as_json", is_flag=True, help="Print the leaderboard as JSON.")
def command(
    solutions, selector, problem_dir, device, workload, precision, jobs, timeout, build_timeout, memory, out, resume,
    prebuilt, executor, address, as_json,
):  # fmt: skip
    """Build, check and time every solution in a directory.

    \b
    Examples:
      kb eval --solutions examples
      kb eval --solutions my_kernels --problems level1 --out runs/mine --resume
    """
    if resume and out is None:
        raise click.UsageError("--resume needs --out, the run directory to continue")
    if address and executor == "local":
        raise click.UsageError("--address needs --executor ray")
    given = {"jobs": jobs, "memory_bytes": memory and int(memory * 1e9)}
    options = Options(
        device, workload, precision, timeout_s=timeout, build_timeout_s=build_timeout,
        executor=executor, address=address, **{key: value for key, value in given.items() if value},
    )  # fmt: skip
    progress = Progress()
    try:
        outcome = evaluate_directory(
            solutions, options, selector=selector, problem_dir=problem_dir, out=out, resume=resume,
            prebuilt=prebuilt, watcher=progress,
        )  # fmt: skip
    except KeyboardInterrupt:
        progress.close()
        click.echo("interrupted; every finished result is kept. Continue with --resume and the same --out.", err=True)
        sys.exit(_INTERRUPTED)
    except (WriteError, EnvironmentUnfit) as error:
        _fail(error, UNFIT)
    except (SolutionError, SelectorError, ProblemError, RunError) as error:
        _fail(error, WRONG_USAGE)
    finally:
        progress.close()
    data = leaderboard.summary(outcome.run, outcome.problems)
    click.echo(json.dumps(data, indent=2) if as_json else _report(outcome, data))
    if not outcome.run.results and outcome.skipped:
        sys.exit(UNFIT)


def _report(outcome: Outcome, data: dict) -> str:
    results = outcome.run.latest()
    parts = [leaderboard.result_table(results)]
    if failures := leaderboard.failure_list(results):
        parts.append(f"Failures:\n{failures}")
    if outcome.skipped:
        lines = [f"    {s.solution.problem} {s.solution.name}: {s.reason}" for s in outcome.skipped]
        parts.append(f"Not evaluated here ({len(lines)}):\n" + "\n".join(lines))
    if outcome.unmapped:
        lines = [f"    {path}: {reason}" for path, reason in outcome.unmapped]
        parts.append(f"Files without a problem ({len(lines)}):\n" + "\n".join(lines))
    if outcome.unselected:
        parts.append(f"{outcome.unselected} solution(s) of other problems than the selected ones.")
    parts += [leaderboard.fast_p_table(data), f"Results: {outcome.run.path}"]
    return "\n\n".join(parts)


def _fail(error: Exception, status: int) -> None:
    click.echo(f"error: {error}", err=True)
    sys.exit(status)
