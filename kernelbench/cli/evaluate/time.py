"""`kb time`"""

from __future__ import annotations

import sys
from pathlib import Path

import click
from tqdm import tqdm

from harness.problem.module import ProblemFile
from harness.result import Result
from harness.solution.discover import read_solution
from kernelbench import escaping
from kernelbench.cli import (
    GATE_FAILED,
    INTERRUPTED,
    UNFIT,
    WRONG_USAGE,
    Number,
    OutputFile,
    clock_option,
    device_option,
    fail,
    precision_option,
    say,
    say_json,
)
from kernelbench.cli.evaluation_options import WRONG_INPUT, cv_option, read_baselines
from kernelbench.cli.grouped import GroupedCommand
from kernelbench.cli.library_option import library_option
from kernelbench.evaluation.directory import evaluate_one
from kernelbench.evaluation.executor import EnvironmentUnfit, Options, Skipped
from kernelbench.metrics import settled
from kernelbench.run import Run, RunError
from kernelbench.views import timing_text
from kernelbench.views.plotting import PictureError


@click.command("time", cls=GroupedCommand)
@click.argument("solution")
@click.option("--from", "run", type=click.Path(path_type=Path), metavar="RUN",
              help="Show a result of this run instead of a new one.")  # fmt: skip
@click.option("--problem", help="Problem that it solves. Else as its name says.")
@click.option("--problem-dir", type=click.Path(path_type=Path), help="Another folder of problems.")
@device_option()
@click.option("--workload", help="Sizes. Else full on a GPU, small on a CPU.")
@precision_option
@click.option("--baseline", "baselines", metavar="NAME,...", default="eager", show_default=True,
              callback=read_baselines, help="As for `kb eval`.")  # fmt: skip
@cv_option
@clock_option("as observed")
@library_option
@click.option("--timeout", type=Number(min=0, min_open=True), default=120, show_default=True,
              metavar="SECONDS", help="Limit of a step of the solution.")  # fmt: skip
@click.option("--ncu", is_flag=True, help="Add counters of Nsight Compute. Runs without the sandbox.")
@click.option("--sanitize", is_flag=True, help="Run under compute-sanitizer. Runs without the sandbox.")
@click.option("--picture", type=OutputFile(), metavar="FILE",
              help="Draw the samples into a .png, .svg or .pdf file.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the record as JSON.")
def command(
    solution, run, problem, problem_dir, device, workload, precision, baselines, cv_target, clock_mhz, track, timeout,
    ncu, sanitize, picture, as_json,
) -> None:  # fmt: skip
    """Evaluate one solution and show everything about its timing.

    Statistics and verdict, the distribution of its samples and their course, what other witnesses saw, clocks,
    kernels, the speed of light, and where the time of the evaluation went.

    \b
    Examples:
      kb time mine/level1/19_relu.cu
      kb time kernel.cu --problem 1/19 --baseline eager,compile --ncu --picture timing.png
      kb time --from runs/mine 1/19
    """
    if run and (ncu or sanitize):
        raise click.UsageError("--ncu and --sanitize run a solution, and --from shows a result that is there already")
    options = Options(
        device, workload, precision, timeout_s=timeout, baselines=baselines, cv_target=cv_target,
        clock_mhz=clock_mhz, track=track,
    )  # fmt: skip
    try:
        if run:
            result = _recorded(run, solution)
        else:
            file, result = _evaluated(Path(solution), options, problem, problem_dir)
        counters = _counters(file, Path(solution), result, device or "cuda") if ncu else None
        sanitized = _sanitized(file, Path(solution), result, workload, device or "cuda") if sanitize else None
        if picture:
            from kernelbench.views.timing_plot import draw

            draw(result, picture)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except (EnvironmentUnfit, PictureError) as error:
        fail(error, UNFIT)
    except (*WRONG_INPUT, ValueError) as error:
        fail(error, WRONG_USAGE)
    if as_json:
        record = result.to_json() | {"settled": settled.to_json(result)} | ({"ncu": counters} if ncu else {})
        say_json(record | ({"sanitizer": sanitized} if sanitize else {}))
    else:
        say(timing_text.page(result, counters))
        if sanitize:
            say(f"\n{timing_text.sanitized(sanitized)}")
    if sanitize and not isinstance(sanitized, str) and sanitized:
        sys.exit(GATE_FAILED)


def _evaluated(
    path: Path, options: Options, problem: str | None, problem_dir: Path | None
) -> tuple[ProblemFile, Result]:
    """Ends this process where it could not be evaluated, through no fault of the solution's."""
    with tqdm(total=0, bar_format="{desc}", file=sys.stderr, disable=None, leave=False) as bar:
        file, item = evaluate_one(
            path, options, problem=problem, problem_dir=problem_dir,
            status=lambda what, text: bar.set_description_str(escaping.terminal(f"{what} {text}") if text else ""),
        )  # fmt: skip
    if isinstance(item, Skipped):
        fail(item.reason, UNFIT)
    return file, item.result


def _recorded(path: Path, wanted: str) -> Result:
    """The result of a run whose problem, or whose solution's name, is ``wanted``."""
    results = Run.load(path).latest()
    found = [r for r in results if wanted in (r.problem, r.solution["name"], f"{r.problem} {r.solution['name']}")]
    if not found:
        raise RunError(f"{path} has no result of '{wanted}'; its leaderboard.md says what it has")
    if len(found) > 1:
        names = "\n".join(f"  {r.problem} {r.solution['name']} ({r.workload['name']})" for r in found)
        raise RunError(f"{path} has {len(found)} results of '{wanted}'; name one of the solutions:\n{names}")
    return found[0]


def _sanitized(file: ProblemFile, path: Path, result: Result, workload: str | None, device: str) -> list | str:
    """The errors that compute-sanitizer finds, or why it was not run.

    At the small sizes where none are named: under it a call takes up to a hundred times as long.
    """
    from kernelbench.machine import sanitizer

    if result.device.get("type") != "cuda":
        return "not run: compute-sanitizer needs a GPU"
    say("compute-sanitizer runs the solution as a program of yours, outside the harness's process border", err=True)
    try:
        solution = read_solution(path, problem=file.id)
        return sanitizer.errors(file, solution, file.workload_name(workload, "cpu"), result.precision, device)
    except sanitizer.ToolError as error:
        return f"not run: {error}"


def _counters(file: ProblemFile, path: Path, result: Result, device: str) -> list | str:
    """Return those of Nsight Compute, or why there are none: that is no reason to lose the rest of the page."""
    from kernelbench.machine import ncu

    if result.device.get("type") != "cuda" or not result.correct:
        return "not taken: ncu needs a GPU" if result.correct else f"not taken: the solution is {result.status}"
    say("ncu runs the solution as a program of yours, outside the harness's process border", err=True)
    solution = read_solution(path, problem=file.id)
    try:
        return ncu.counters(file, solution, result.workload["name"], result.precision, device)
    except ncu.NsightError as error:
        return str(error)
