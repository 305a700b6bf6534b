"""`kb try`"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from harness.baselines import BASELINES
from kernelbench import escaping
from kernelbench.attempt import text, warm_client
from kernelbench.attempt.request import Request
from kernelbench.attempt.warm_place import IDLE_S, NoPlace
from kernelbench.attempt.watch import saved, wait_for_change
from kernelbench.cli import (
    INTERRUPTED,
    UNFIT,
    WRONG_USAGE,
    Number,
    device_option,
    fail,
    json_option,
    precision_option,
    say,
    say_json,
)
from kernelbench.cli.library_option import library_option


@click.command("try")
@click.argument("file", required=False, type=click.Path())
@click.option("--problem", metavar="ID", help="What it solves, as in 1/19. Without it, as its name or a comment says.")
@click.option("--problem-dir", type=click.Path(), help="Another folder of problems.")
@device_option()
@click.option("--workload", metavar="NAME", help="Which sizes. Without it, full on a GPU and small on a CPU.")
@precision_option
@click.option("--baseline", type=click.Choice(list(BASELINES)), default="eager", show_default=True,
              help="What the speedup is over.")  # fmt: skip
@library_option
@click.option("--timeout", type=Number(min=0, min_open=True), default=120, show_default=True,
              help="Seconds that one step of the solution may take.")  # fmt: skip
@click.option("--server/--no-server", default=True, show_default=True,
              help="Keep judge and builder ready for the next call, in a server that this one starts.")  # fmt: skip
@click.option("--idle", type=Number(min=1), default=IDLE_S, show_default=True,
              help="Seconds without a call after which that server ends.")  # fmt: skip
@click.option("--stop", is_flag=True, help="End your servers and free their devices; judge nothing.")
@click.option("--watch", is_flag=True, help="Judge the file again whenever it is saved, until Ctrl-C.")
@click.option("--schema", is_flag=True, help="Print the JSON schema of --json; judge nothing.")
@json_option
def command(
    file, problem, problem_dir, device, workload, precision, baseline, track, timeout, server, idle, stop, watch,
    schema, as_json,
) -> None:  # fmt: skip
    """Judge one file and say what to do next.

    A server keeps judge and builder ready, so that the next call is quicker. With --json and --watch each
    verdict is a line of its own.

    Exit status: 0 correct, 1 not correct, 2 wrong usage, 3 the machine could not judge it.

    \b
    Examples:
      kb try mine/level1/19_relu.cu
      kb try kernel.py --problem 1/19 --json
      kb try mine/level1/19_relu.cu --watch
    """
    if schema:
        from kernelbench.attempt import report

        say_json(report.schema())
        return
    if stop:
        _stop()
        return
    if file is None:
        raise click.UsageError("name one file: kb try FILE")
    conditions = {
        "device": device, "workload": workload, "precision": precision, "timeout_s": timeout,
        "baselines": [baseline], "track": track,
    }  # fmt: skip
    request = Request(file, problem, problem_dir, conditions)
    first = True
    try:
        while True:
            seen = saved(Path(file)) if watch else {}
            attempt = _judged(request, idle if server else None)
            say(escaping.json_line(attempt) if as_json else text.page(attempt))
            if not watch or first and attempt["exit_status"] == WRONG_USAGE:
                sys.exit(attempt["exit_status"])
            first = False  # the call is right; what the file says may be wrong until it is saved again
            wait_for_change(Path(file), seen)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _stop() -> None:
    try:
        say(f"{warm_client.stop()} server(s) end")
    except NoPlace as error:
        fail(error, UNFIT)


def _judged(request: Request, idle_s: float | None) -> dict[str, Any]:
    """Return the attempt, of the warm server or, without ``idle_s``, of an evaluator that ends with this process."""
    if idle_s is None:
        from kernelbench.attempt.judge import judge_file

        return judge_file(request)[0]
    try:
        return warm_client.try_file(request, idle_s)[0]
    except (NoPlace, warm_client.ServerError) as error:
        from kernelbench.attempt.report import not_evaluated

        return not_evaluated(str(error), request.file, UNFIT, request.problem)
