"""Options and errors of commands that evaluate a directory."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from harness.problem.module import ProblemError
from harness.solution.discover import SolutionError
from harness.timing.convergence import CV_TARGET
from kernelbench.cli import (
    INTERRUPTED,
    UNFIT,
    WRONG_USAGE,
    Number,
    Percent,
    clock_option,
    device_option,
    fail,
    precision_option,
    say,
)
from kernelbench.cli.library_option import library_option
from kernelbench.evaluation.chosen import Selection
from kernelbench.evaluation.directory import Outcome, evaluate_directory
from kernelbench.evaluation.executor import EXECUTORS, EnvironmentUnfit, Options
from kernelbench.evaluation.progress import Bar, Progress
from kernelbench.evaluation.stored_baselines import BaselineError, Stored, parse
from kernelbench.run import RunError, WriteError
from kernelbench.suite import SelectorError

WRONG_INPUT = (SolutionError, SelectorError, ProblemError, BaselineError, RunError)


def read_baselines(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str | Stored, ...]:
    """Return what ``--baseline`` names: callback of the option."""
    try:
        return parse(value)
    except BaselineError as error:
        raise click.BadParameter(str(error)) from None


cv_option = click.option(
    "--cv", "cv_target", type=Percent(), default=f"{CV_TARGET:.0%}", show_default=True,
    help="Variation at which timing ends.",
)  # fmt: skip

_CONDITIONS = [
    click.option("--problem-dir", type=click.Path(path_type=Path),
                 help="Another folder of problems, or KernelBench's."),
    device_option(several=True),
    click.option("--workload", metavar="NAME,...",
                 help="Sizes, or all. Else full on a GPU, small on a CPU."),
    precision_option,
    click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Parallel builds."),
    click.option("--timeout", type=Number(min=0, min_open=True), default=120, show_default=True,
                 metavar="SECONDS", help="Limit of a step of a candidate."),
    click.option("--build-timeout", type=Number(min=0, min_open=True), default=900, show_default=True,
                 metavar="SECONDS", help="Limit of a build."),
    click.option("--memory", type=Number(min=1e-3), metavar="GB",
                 help="Host memory of a candidate. Else half of it."),
    click.option("--baseline", "baselines", metavar="NAME", default="eager", show_default=True,
                 callback=read_baselines,
                 help="The speedup is over the first."),
    cv_option,
    clock_option("as observed"),
    library_option,
]  # fmt: skip
_SELECTION = [
    click.option("--problems", "selector", metavar="SELECTOR",
                 help="1/19, 1/1-20, level2, all. Else those with solutions."),
]  # fmt: skip
_RUN = [
    click.option("-o", "--out", type=click.Path(path_type=Path),
                 help="Run directory. Else a new one under runs/."),
    click.option("--resume", is_flag=True,
                 help="Continue the run in --out."),
    click.option("--held-out", type=click.IntRange(min=0), default=0, metavar="N",
                 help="Test on N more workloads, unseen."),
    click.option("--prebuilt", is_flag=True, help="Accept .so files."),
    click.option("--executor", type=click.Choice(sorted(EXECUTORS)), default="local",
                 help="This host (default), or a Ray cluster."),
    click.option("--address", help="Address of the Ray cluster."),
]  # fmt: skip


def evaluation_options(command: Callable) -> Callable:
    """Decorator: the options of ``evaluate`` without ``--solutions``, in the order in which help shows them."""
    return _decorated(command, [*_SELECTION, *_CONDITIONS, *_RUN])


def condition_options(command: Callable) -> Callable:
    """Decorator: those of them that say what is evaluated and how, for ``options_of``; and ``problem_dir``."""
    return _decorated(command, _CONDITIONS)


def _decorated(command: Callable, options: list[Callable]) -> Callable:
    for option in reversed(options):
        command = option(command)
    return command


def options_of(
    device, workload, precision, jobs, timeout, build_timeout, memory, baselines, cv_target, clock_mhz, track,
    **executor,
) -> Options:
    """Return what the options of the command line come to."""
    given = {"jobs": jobs, "memory_bytes": memory and int(memory * 1e9), **executor}
    return Options(
        device, workload, precision, timeout_s=timeout, build_timeout_s=build_timeout, baselines=baselines,
        cv_target=cv_target, clock_mhz=clock_mhz, track=track,
        **{key: value for key, value in given.items() if value},
    )  # fmt: skip


@contextlib.contextmanager
def exit_statuses(progress: Bar, kept: Callable[[], str], *wrong: type[Exception]) -> Iterator[None]:
    """Errors and Ctrl-C end this process with their exit status; wrong input may raise ``wrong`` too.

    ``kept`` tells who interrupts it what there is then, and how to go on.
    """
    try:
        yield
    except KeyboardInterrupt:
        progress.close()
        say(f"interrupted; {kept()}", err=True)
        sys.exit(INTERRUPTED)
    except (WriteError, EnvironmentUnfit) as error:
        fail(error, UNFIT)
    except (*WRONG_INPUT, *wrong) as error:
        fail(error, WRONG_USAGE)
    finally:
        progress.close()


def evaluate(
    solutions, selector, problem_dir, device, workload, precision, jobs, timeout, build_timeout, memory, baselines,
    cv_target, clock_mhz, track, out, resume, held_out, prebuilt, executor, address, problem=None, again=(),
) -> Outcome:  # fmt: skip
    """The outcome, with progress on standard error; an error or Ctrl-C ends this process with its exit status."""
    if resume and out is None:
        raise click.UsageError("--resume needs --out, the run directory to continue")
    if address and executor == "local":
        raise click.UsageError("--address needs --executor ray")
    options = options_of(
        device, workload, precision, jobs, timeout, build_timeout, memory, baselines, cv_target, clock_mhz,
        track, executor=executor, address=address, held_out=held_out,
    )  # fmt: skip
    progress = Progress()

    def kept() -> str:
        if progress.run is None:
            return "nothing was evaluated yet."
        return f"every finished result is kept. Continue with --resume --out {progress.run}"

    with exit_statuses(progress, kept):
        selection = Selection(solutions, selector, problem_dir, problem, prebuilt)
        return evaluate_directory(selection, options, out=out, resume=resume, again=again, watcher=progress)
