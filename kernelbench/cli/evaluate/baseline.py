"""`kb baseline`"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.baselines import BASELINES
from harness.result import first_line
from kernelbench import suite
from kernelbench.cli import Number, device_option, json_option, precision_option, say, say_json
from kernelbench.cli.evaluation_options import cv_option, exit_statuses
from kernelbench.cli.grouped import GroupedCommand
from kernelbench.evaluation.executor import Options
from kernelbench.evaluation.measure_baselines import Case, Watcher, measure_selection, table
from kernelbench.evaluation.progress import Bar
from kernelbench.views.leaderboard import duration

_ALL = "all"


def _configurations(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    names = tuple(BASELINES) if value == _ALL else tuple(dict.fromkeys(name.strip() for name in value.split(",")))
    if unknown := [name for name in names if name not in BASELINES]:
        raise click.BadParameter(f"there is no '{unknown[0]}'; there are: {', '.join(BASELINES)}, and all of them")
    return names


@click.command("baseline", cls=GroupedCommand)
@click.argument("selector")
@click.option("--configs", "configurations", default=_ALL, show_default=True, metavar="NAME,...",
              callback=_configurations, help="Of " + ", ".join(BASELINES) + ".")  # fmt: skip
@device_option()
@click.option("--workload", metavar="NAME,...",
              help="Which sizes, or all. Without it, full on a GPU and small on a CPU.")  # fmt: skip
@precision_option
@cv_option
@click.option("--problem-dir", type=click.Path(path_type=Path), help="Another folder of problems.")
@click.option("--timeout", type=Number(min=0, min_open=True), default=900, show_default=True,
              help="Seconds that one configuration may take, compilation included.")  # fmt: skip
@click.option("--again", is_flag=True, help="Measure anew what has a record that still holds, too.")
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Where records are kept. Without it, results/<gpu>/baselines.jsonl.")  # fmt: skip
@json_option
def command(
    selector, configurations, device, workload, precision, cv_target, problem_dir, timeout, again, out, as_json
) -> None:  # fmt: skip
    """Measure references, as they are and as torch.compile makes them, to compare with later.

    What has a record that still holds (same problem, device, PyTorch) is not measured again, so that an
    interrupted run goes on where it was.

    \b
    Examples:
      kb baseline level1
      kb baseline 1/19 --configs eager,compile -o mine.jsonl
      kb eval --solutions mine --baseline mine.jsonl:eager
    """
    options = Options(device, workload, precision, cv_target=cv_target)
    progress = _Progress()
    with exit_statuses(progress, lambda: "what was measured is kept. The same command goes on."):
        measured = measure_selection(
            suite.find(selector, problem_dir), configurations, options,
            timeout_s=timeout, out=out, again=again, watcher=progress,
        )  # fmt: skip
    if as_json:
        say_json(measured.records)
    else:
        say(f"{table(measured.records)}\n\n{measured.path}")


class _Progress(Bar, Watcher):
    def started(self, device: dict[str, Any], path: Path, todo: int, kept: int) -> None:
        self.say_device(device)
        if kept:
            self.say(f"{kept} baseline(s) in {path} still hold and are kept")
        self.start(todo, "baseline")

    def status(self, case: Case, phase: str) -> None:
        self._bar.set_postfix_str(f"{case}: {phase}", refresh=True)

    def ended(self, case: Case, record: dict[str, Any]) -> None:
        error = record["error"]
        self.say(f"  {case}  " + (f"error: {first_line(error)}" if error else duration(record["timing"])))
        self._bar.update()
