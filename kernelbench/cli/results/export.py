"""`kb export`"""

from __future__ import annotations

from pathlib import Path

import click

from harness.integrity.library_only import TRACKS
from harness.problem.module import ProblemError
from kernelbench.cli import UNFIT, WRONG_USAGE, OutputFile, fail, say
from kernelbench.formats import exchange
from kernelbench.run import Run, RunError
from kernelbench.suite import SelectorError


@click.command("export")
@click.argument("runs", nargs=-1, metavar="[RUN...]", type=click.Path(path_type=Path))
@click.option("--to", "form", type=click.Choice([*exchange.FORMATS, "harbor"]), required=True,
              help="Format: files of other tools or a table of runs; for harbor tasks of problems.")
@click.option("--level", type=click.IntRange(min=1), help="Level to export to kernelbench, where there are several.")
@click.option("--problems", metavar="SELECTOR", help="Problems to write as tasks for Harbor.")
@click.option("--judge", metavar="WHEEL", help="What the verifier's box installs: a wheel of kernelbench, or a "
              "requirement of pip.")
@click.option("--device", type=click.Choice(["cuda", "cpu"]), default="cuda", show_default=True,
              help="Of Harbor's boxes.")
@click.option("--track", type=click.Choice(TRACKS), help="Of Harbor's tasks: kernels for cuda, open for cpu.")
@click.option("--image", help="Base image of Harbor's boxes: PyTorch, and for cuda nvcc.")
@click.option("--gpu-type", "gpu_types", multiple=True, metavar="NAME", help="GPU that Harbor's boxes ask for.")
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, metavar="PATH",
              help="File to write; for Harbor the folder of the tasks.")  # fmt: skip
def command(runs: tuple[Path, ...], form: str, level: int | None, problems: str | None, out: Path, **harbor) -> None:
    """Write runs for other tools, or problems as tasks for Harbor.

    KernelBench's files have no word for sizes: ours stand under a key `workload`, which `kb import` reads.

    \b
    Examples:
      kb export runs/mine --to kernelbench --level 1 -o eval_results.json
      kb export runs/* --to csv -o results.csv
      kb export --to harbor --problems smoke --judge dist/kernelbench-0.1.0-py3-none-any.whl -o tasks
    """
    if form == "harbor":
        _harbor(runs, problems, out, **harbor)
        return
    if not runs:
        fail(f"--to {form} needs a run, for example `kb export runs/mine --to {form}`", WRONG_USAGE)
    if problems or harbor["judge"]:
        fail("--problems and --judge are for --to harbor", WRONG_USAGE)
    out = OutputFile().convert(out, None, click.get_current_context())
    try:
        exchange.export([Run.load(path) for path in runs], form, out, level)
    except OSError as error:
        fail(error, UNFIT)
    except (RunError, SelectorError, ProblemError, exchange.ExchangeError) as error:
        fail(error, WRONG_USAGE)


def _harbor(
    runs: tuple[Path, ...], problems: str | None, out: Path, judge: str | None, device: str, track: str | None,
    image: str | None, gpu_types: tuple[str, ...],
) -> None:  # fmt: skip
    from kernelbench.formats import harbor  # imports torch

    if runs:
        fail("--to harbor writes problems, not runs: leave the runs out", WRONG_USAGE)
    if not problems or not judge:
        fail("--to harbor needs --problems and --judge, for example --problems smoke --judge dist/kernelbench.whl",
             WRONG_USAGE)  # fmt: skip
    plan = harbor.Plan(judge, device, track or ("kernels" if device == "cuda" else "open"), image, gpu_types)
    try:
        written = harbor.export(problems, out, plan)
    except (harbor.HarborError, SelectorError) as error:
        fail(error, WRONG_USAGE)
    except OSError as error:
        fail(f"cannot write {error.filename}: {error.strerror}", UNFIT)
    say(f"{len(written)} tasks in {out}")
