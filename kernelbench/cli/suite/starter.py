"""`kb starter`"""

from __future__ import annotations

from pathlib import Path

import click

from harness.problem.module import ProblemError
from kernelbench.cli import UNFIT, WRONG_USAGE, fail, precision_option, say
from kernelbench.run_files.log import write_new

_KINDS = ("py", "cu", "cpp")


@click.command("starter")
@click.argument("problem")
@click.option("--kind", type=click.Choice(_KINDS),
              help="Without it, as --out ends; else what runs here: cu with a GPU, cpp without.")  # fmt: skip
@precision_option
@click.option("--problem-dir", type=click.Path(path_type=Path), help="Another folder of problems.")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="PATH",
              help="File to write, or a folder of solutions: then a file in it named after the problem.")  # fmt: skip
def command(problem: str, kind: str | None, precision: str, problem_dir: Path | None, out: Path | None) -> None:
    """Print a starter file for a problem, or write it: it builds as it is and awaits the kernel.

    \b
    Examples:
      kb starter 1/19 -o mine              # mine/level1/19_relu.cu, or .cpp without a GPU
      kb starter 1/19 --kind py > relu.py
    """
    from kernelbench import starter, suite  # import torch

    kind = kind or _of_suffix(out) or _that_runs_here(precision)
    try:
        source = starter.source(problem, kind, precision, problem_dir)
        (file,) = suite.find(problem, problem_dir)
    except (ValueError, ProblemError) as error:
        fail(error, WRONG_USAGE)
    if out is None:
        say(source, nl=False)
        return
    path = out if _of_suffix(out) else out / f"level{file.id.level}" / f"{file.id.number}_{file.name}.{kind}"
    if path.suffix != f".{kind}":
        fail(f"{path} does not end in .{kind}, which --kind says", WRONG_USAGE)
    if path != out and path.parent.is_symlink():
        fail(f"{path.parent} is a link, which nobody named: name the file itself with --out", WRONG_USAGE)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_new(path, source.encode())
    except FileExistsError:
        fail(f"{path} is there already, and may be your work: remove it first, or name another --out", WRONG_USAGE)
    except OSError as error:
        fail(f"cannot write {path}: {error.strerror}", UNFIT)
    say(path)


def _of_suffix(out: Path | None) -> str | None:
    return out.suffix[1:] if out and out.suffix[1:] in _KINDS else None


def _that_runs_here(precision: str) -> str:
    import torch

    from kernelbench import starter

    kind, why = starter.kind_for("cuda" if torch.cuda.is_available() else "cpu", precision)
    say(f"kind: {kind}, which runs here ({why}); choose another with --kind", err=True)
    return kind
