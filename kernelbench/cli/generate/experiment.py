"""`kb experiment`"""

from __future__ import annotations

import contextlib
import datetime
import sys
from dataclasses import astuple
from pathlib import Path

import click
from tqdm import tqdm

from harness.solution.discover import readable
from kernelbench.cli import INTERRUPTED, UNFIT, WRONG_USAGE, fail, say
from kernelbench.cli.evaluation_options import WRONG_INPUT
from kernelbench.endpoint import ModelError, address_of
from kernelbench.evaluation.executor import EnvironmentUnfit
from kernelbench.experiment import pictures, plan, rendering
from kernelbench.experiment.forecast import forecast
from kernelbench.experiment.plan import Experiment, ExperimentError
from kernelbench.experiment.report import report
from kernelbench.experiment.running import Progress, run
from kernelbench.experiment.store import DEFINITION, FIGURES, Store
from kernelbench.run import WriteError
from kernelbench.run_files.folder import linked
from kernelbench.run_files.log import write_below
from kernelbench.solvers.plan import SolverError
from kernelbench.views import tables
from kernelbench.views.plotting import PictureError

_RUNS = Path("runs")
_HEADERS = ("variant", "runs", "problems", "attempts at most", "tokens", "USD", "seconds", "from")


@click.command("experiment")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Directory. Without it, runs/NAME.")
@click.option("--resume", is_flag=True, help="Continue: finished runs are kept, interrupted ones go on.")
@click.option("--dry-run", is_flag=True, help="Say what is left and what it will cost; run nothing.")
def command(file: Path, out: Path | None, resume: bool, dry_run: bool) -> None:
    """Run a matrix of solvers, settings, seeds and repeats, and write one report.

    FILE is TOML; docs/experiments.md says what it holds. The report is report.html, report.md and report.json in
    the directory; it is written again whenever the command ends. Exit status: 0 all runs are finished, 3 some are
    not, as a solver failed or a limit was reached.

    \b
    Examples:
      kb experiment scripts/experiments/landscape.toml --dry-run
      kb experiment scripts/experiments/landscape.toml -o runs/landscape
    """
    try:
        experiment = plan.read(file)
        if not out and (link := linked(_RUNS / experiment.name)):
            raise ExperimentError(f"{link}; name the folder with -o")
        out = out or _RUNS / experiment.name
        if dry_run:
            _say_costs(experiment, Store(out, experiment, True, writes=False) if (out / DEFINITION).exists() else None)
            return
        store = Store(out, experiment, resume)
        with contextlib.closing(store):
            progress = _run(experiment, store)
    except (WriteError, EnvironmentUnfit) as error:
        fail(error, UNFIT)
    except (*WRONG_INPUT, ExperimentError, SolverError, ModelError, ValueError) as error:  # of what a plan names
        fail(error, WRONG_USAGE)
    try:
        _write(experiment, store, file)
    except OSError as error:
        fail(f"cannot write {error.filename}: {error.strerror}; put it right and continue with --resume", UNFIT)
    for cell, reason in progress.unfinished.items():
        say(f"not finished: {cell.name}: {reason}", err=True)
    if progress.ceiling:
        say(f"ended early: {progress.ceiling}; raise it and continue with --resume", err=True)
    if store.left():
        sys.exit(UNFIT)


def _run(experiment: Experiment, store: Store) -> Progress:
    """Run what is left; Ctrl-C ends this process with its exit status."""
    left = store.left()
    with tqdm(total=len(left), unit="run", file=sys.stderr, disable=None) as bar:
        try:
            return run(experiment, store, lambda one: bar.update())
        except KeyboardInterrupt:
            bar.close()
            say(f"interrupted; finished runs are kept. Continue with --resume --out {store.folder}", err=True)
            sys.exit(INTERRUPTED)


def _say_costs(experiment: Experiment, store: Store | None) -> None:
    """Print what is left, and what it will cost as far as anything says so."""
    number = lambda value, form: "-" if value is None else format(value, form)  # noqa: E731
    rows = []
    for of in forecast(experiment, store):
        name, runs, problems, attempts, tokens, usd, seconds, source = astuple(of)
        rows.append((name, runs, problems, f"{attempts:,}", number(tokens, ",.0f"), number(usd, ",.2f"),
                     number(seconds, ",.0f"), source))  # fmt: skip
    say(tables.table(_HEADERS, rows, "terminal"))
    models = [one for one in (experiment.model, *(variant.model for variant in experiment.variant)) if one]
    for where, key in dict.fromkeys((address_of(one.base_url), one.key_variable) for one in models):
        place = readable(where) if where else "the address of the package"
        say(f"\nModels are asked at {place} with the key in {readable(key)}")
    limits = [f"{name} {limit:g}" for name, limit in vars(experiment.limits).items() if limit is not None]
    say("\nLimits of the whole experiment: " + (", ".join(limits) or "none"))
    if any(row[-1] == "unknown" for row in rows):
        say("Costs are unknown before a first run: put tokens, usd and seconds of one attempt into [estimate].")


def _write(experiment: Experiment, store: Store, file: Path) -> None:
    """Write the report of the runs that are finished."""
    date = datetime.datetime.now().astimezone().date().isoformat()
    finished = [store.finished[cell] for cell in experiment.cells() if cell in store.finished]
    made = report(experiment, finished, f"kb experiment {file}", date)
    folder = store.folder
    try:
        drawn = pictures.drawings(made, experiment)
    except PictureError as error:
        say(f"the report has no pictures: {error}", err=True)
        drawn = {}
    files = {f"{FIGURES}/{name}.svg": svg for name, svg in drawn.items()} | {
        "report.md": rendering.markdown(made, {name: f"{FIGURES}/{name}.svg" for name in drawn}),
        "report.html": rendering.html(made, drawn),
        "report.json": tables.to_json(made.data) + "\n",
    }
    for name, content in files.items():
        write_below(folder, name, content)
    say(f"Report: {folder / 'report.html'}")
