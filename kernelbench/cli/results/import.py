"""`kb import`"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from harness.problem.module import ProblemError
from kernelbench.cli import UNFIT, WRONG_USAGE, fail, say
from kernelbench.formats import exchange, importing
from kernelbench.formats.archive import ArchiveError, ReadOptions
from kernelbench.formats.kernelbench import FormatError
from kernelbench.metrics.workloads import UNKNOWN
from kernelbench.run import RunError, WriteError

# What readers raise where a file's JSON is of other types, or nested deeper, than the format says.
_MALFORMED = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError)
_MOST_PLACES = 5  # named of those left out for one reason
_RESULTS = "eval-results"  # of KernelBench without the kernels: a run, and nothing to evaluate


@click.command("import")
@click.argument("archive", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice([*importing.READERS, _RESULTS]),
              help="Format of the archive. Without it, what its name and content say.")  # fmt: skip
@click.option("--level", type=click.IntRange(min=1), help="Level of an eval_results.json, which does not name it.")
@click.option("--baseline", type=click.Path(path_type=Path), metavar="FILE",
              help="Baseline timings of KernelBench. Without them its results have no speedups.")  # fmt: skip
@click.option("--workload", metavar="NAME",
              help="Sizes of results that do not name theirs, as full. Without it they are unknown.")  # fmt: skip
@click.option("--problem-dir", type=click.Path(path_type=Path),
              help="Checkout of TritonBench that the answers of a model are to.")  # fmt: skip
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="Directory to make.")
def command(
    archive: Path, form: str | None, level: int | None, baseline: Path | None, workload: str | None,
    problem_dir: Path | None, out: Path,
) -> None:  # fmt: skip
    """Import an archive of others' kernels with what they claim, to be measured here.

    Makes a folder of solutions, a folder of problems where the archive has definitions of its own, and
    claims.jsonl beside them. Nothing is run. `kb eval` measures the solutions, and `kb regrade` compares them with
    the claims. KernelBench's eval_results.json without its kernels becomes a run, for every view that runs have.

    \b
    Examples:
      kb import cuda_l1/h100.jsonl -o theirs
      kb import claims.csv -o theirs
      kb import answers.jsonl --problem-dir TritonBench -o theirs
      kb import TritonBench -o golden
      kb import KernelBench/runs/my_run --baseline baseline_time_torch.json -o theirs
      kb import eval_results.json --level 1 --baseline baseline_time_torch.json -o runs/imported
    """
    try:
        if form == _RESULTS or (form is None and archive.suffix == ".json"):
            _import_results(archive, level, baseline, workload, out)
        else:
            _import_archive(archive, form, ReadOptions(level, baseline, problem_dir), out)
    except WriteError as error:
        fail(error, UNFIT)
    except (ArchiveError, FormatError, RunError, ProblemError) as error:
        fail(error, WRONG_USAGE)
    except _MALFORMED as error:
        fail(f"{archive} is malformed: {type(error).__name__}: {error}", WRONG_USAGE)
    except OSError as error:
        fail(f"cannot write {error.filename or out}: {error.strerror or error}", UNFIT)


def _import_results(file: Path, level: int | None, baseline: Path | None, workload: str | None, out: Path) -> None:
    if level is None:
        raise click.UsageError("an eval_results.json does not name the level of its problems: give --level")
    run = exchange.import_kernelbench(file, level, out, baseline, workload)
    untimed = sum(result.correct and result.speedup is None for result in run.results)
    unknown = sum(result.workload["name"] == UNKNOWN for result in run.results)
    say(f"{len(run.results)} result(s) in {run.path}; {untimed} of the correct ones without a speedup")
    if unknown:
        say(f"{unknown} of unknown sizes, which `kb compare` compares with nothing: name them with --workload")


def _left_out(places: list[tuple[str, str]]) -> Iterator[str]:
    """Yield each reason with the places that it holds for, the first of many."""
    reasons: dict[str, list[str]] = {}
    for place, why in places:
        reasons.setdefault(why, []).append(place)
    for why, of in reasons.items():
        others = f" and {len(of) - _MOST_PLACES} more" if len(of) > _MOST_PLACES else ""
        yield f"{', '.join(of[:_MOST_PLACES])}{others}: {why}"


def _import_archive(archive: Path, form: str | None, options: ReadOptions, out: Path) -> None:
    made = importing.import_archive(archive, out, form, options)
    claimed = sum(claim.speedup is not None for claim in made.claims)
    say(f"{len(made.claims)} solution(s) in {out / importing.SOLUTIONS}, {claimed} with a claimed speedup")
    if made.left_out:
        say(f"left out ({len(made.left_out)}): " + "; ".join(_left_out(made.left_out)))
    problems = out / importing.PROBLEMS if made.problems else options.problem_dir
    own = f" --problem-dir {problems}" if problems else ""
    if made.problems:
        say(f"{made.problems} problem definition(s) of the archive in {out / importing.PROBLEMS}: read them before "
            "you use them, the judge runs them")  # fmt: skip
    say(f"next: kb eval --solutions {out / importing.SOLUTIONS}{own} --allow-library -o runs/{out.name}")
