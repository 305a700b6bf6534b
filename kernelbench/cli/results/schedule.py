"""`kb schedule`"""

from __future__ import annotations

import re
from pathlib import Path

import click

from harness.problem.module import ProblemError
from kernelbench.cli import UNFIT, WRONG_USAGE, OutputFile, Percent, fail, say
from kernelbench.metrics import scheduling
from kernelbench.run import Run, RunError
from kernelbench.scheduling import picture, text, traces
from kernelbench.scheduling.study import Grid, Variant, study
from kernelbench.suite import SelectorError
from kernelbench.views import plotting, ranking, tables

_EPSILONS = ",".join(f"{eps:.0%}" for eps in scheduling.EPSILONS)
_WINDOWS = ",".join(map(str, scheduling.WINDOWS))


def _epsilons(context: click.Context, parameter: click.Parameter, value: str) -> list[float | None]:
    found: list[float | None] = []
    for part in value.split(","):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", part.strip())
        if not match and part.strip() != "off":
            raise click.BadParameter(f"'{part}' is no headroom threshold: write a percentage such as 25%, or off")
        found.append(float(match[1]) / 100 if match else None)
    return found


def _windows(context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    try:
        found = [int(part) for part in value.split(",")]
    except ValueError:
        found = [-1]
    if min(found) < 0:
        raise click.BadParameter(f"'{value}' is no list of windows: write numbers of attempts such as 0,4,8; 0 is off")
    return found


def _prices(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    prices = {}
    for value in values:
        name, _, price = value.rpartition("=")
        if not name or not re.fullmatch(r"\d+(\.\d+)?", price):
            raise click.BadParameter(f"'{value}' is not RUN=USD: write the run's name and a price, as in refine=0.25")
        prices[name] = float(price)
    return prices


@click.group("schedule")
def command() -> None:
    """Ask what a scheduling policy would have saved."""


@command.command("replay")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option("--eps", "epsilons", default=_EPSILONS, show_default=True, callback=_epsilons, metavar="LIST",
              help="Headroom thresholds: stop a problem that is ahead and within this of t_SOL under FP16; or off.")
@click.option("--window", "windows", default=_WINDOWS, show_default=True, callback=_windows, metavar="LIST",
              help="Attempts in a row without a settled improvement that stop a problem that is ahead; 0 is off.")
@click.option("--problems", "selector", metavar="SELECTOR", help="Problems that count. Without it, those of any run.")
@click.option("--price", "prices", multiple=True, callback=_prices, metavar="RUN=USD",
              help="USD per million tokens of a run's model, in and out alike. Without it, the costs in its log.")
@click.option("--unsolved", type=click.Choice(scheduling.UNSOLVED), default=scheduling.SKIP, show_default=True,
              help="Leave an unsolved problem out of means, or count it as 1.")
@click.option("--retain", "least", type=Percent(), default=f"{scheduling.LEAST_RETENTION:.0%}", show_default=True,
              help="Share of the geometric mean that a best policy keeps at least.")
@click.option("--plot", type=OutputFile(), metavar="FILE", help="Picture of cost against speedup: png, svg or pdf.")
@click.option("--format", "form", type=click.Choice(tables.FORMATS), default="terminal", show_default=True)  # fmt: skip
def replay(runs, epsilons, windows, selector, prices, unsolved, least, plot, form) -> None:
    """Replay runs of `kb solve` under every combination of the two rules, and say what each saves and loses.

    Each run is a variant. Nothing is asked or evaluated. Attempts count by their first measurement, as a policy
    would have seen them.

    \b
    Examples:
      kb schedule replay runs/refine runs/mantis
      kb schedule replay runs/mantis --eps off --window 0,4,8 --price mantis=0.25 --plot pareto.png
    """
    try:
        loaded = [Run.load(path) for path in dict.fromkeys(runs)]
        problems = ranking.counted(loaded, selector)
        if not problems:
            raise RunError(f"no results yet in {', '.join(str(run.path) for run in loaded)}: nothing to replay")
        names = ranking.labels(loaded)
        if unknown := set(prices) - set(names):
            raise RunError(f"--price names {', '.join(sorted(unknown))}, and the runs are {', '.join(names)}")
        variants = [
            Variant(name, traces.of_run(run, problems), prices.get(name)) for name, run in zip(names, loaded)
        ]
    except (RunError, SelectorError, ProblemError) as error:
        fail(error, WRONG_USAGE)
    data = study(variants, Grid(scheduling.grid(epsilons, windows), unsolved, least))
    say(text.render(data, form))
    if plot:
        try:
            plotting.save(picture.pareto(data), plot)
        except plotting.PictureError as error:
            fail(error, UNFIT)
