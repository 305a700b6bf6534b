"""`kb ucutlass tune`"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from pathlib import Path
from typing import Any

import click
from tabulate import tabulate

from harness.faults import with_disk_room
from kernelbench.cli import UNFIT, WRONG_USAGE, device_option, fail, json_option, precision_option, say, say_json
from kernelbench.cli.generate.ucutlass_request import (
    checked,
    file_argument,
    folder_option,
    request,
    workload_option,
)
from kernelbench.run_files.folder import foreign, linked
from kernelbench.run_files.log import RunError, WriteError, append_line, write_whole

_LISTED = 20
_TUNED = Path("tuned")
_RECORDS, _BEST, _SUMMARY = "results.jsonl", "best.dsl", "tuning.json"


@click.command("tune")
@file_argument
@click.option("--problem", metavar="ID", help="What to measure on. Without it, what the file names.")
@workload_option
@folder_option
@precision_option
@device_option()
@click.option("--builds", type=click.IntRange(2, 200), default=12, show_default=True,
              help="The most variants that are built: 45 s and 4 GiB each on SM90.")  # fmt: skip
@click.option("--list", "only_list", is_flag=True, help="Only list the likeliest variants with predicted times.")
@click.option("--gpu", default="h100-sxm", show_default=True, help="With --list and no GPU: whose limits to take.")
@click.option("-o", "--out", type=click.Path(file_okay=False, path_type=Path), default=_TUNED, metavar="DIR",
              help="Folder that gets best.dsl, the variants and their records.")  # fmt: skip
@json_option
def command(file, problem, workload, problem_dir, precision, device, builds, only_list, gpu, out, as_json) -> None:
    """Search legal tiles, clusters, schedules, stages and orders of tiles; measure the likeliest on a GPU.

    A model of the device's limits ranks all legal variants. Few are built. The best is measured once more beside the
    program as given, in new processes, and replaces it only if it is faster beyond the noise.

    \b
    Examples:
      kb ucutlass tune gemm.dsl --problem 2/76 --precision fp16 --list
      kb ucutlass tune gemm.dsl --problem 2/76 --precision fp16 --builds 12 -o tuned
    """
    from kernelbench.ucutlass import tuning

    asked = request(file, problem or named_problem(file), workload, precision, problem_dir)
    if asked.problem is None:
        fail("name the problem to measure on, as in --problem 2/76: its sizes decide which tile is fast", WRONG_USAGE)
    program, _, bound = checked(asked, as_json)
    try:
        limits = _limits(device, gpu, only_list)
        kernel = program.kernels[0]
        size = tuning.sizes_of(kernel, bound.extents[0])

        def predict(one: Any) -> float:
            return tuning.predicted_ms(one, size, limits)

        if only_list:
            _list(tuning.ranked(tuning.structural_variants(program), predict), size, as_json)
            return
        if others := foreign(out) or (linked(out) if out == _TUNED else ""):
            fail(f"{others}; choose another --out", UNFIT)
        if used := _used(out):
            fail(f"{used} is there already, of another search: choose another --out", WRONG_USAGE)
        (out / "variants").mkdir(parents=True, exist_ok=True)
        _tune(program, asked, device, builds, out, predict, as_json)
    except tuning.NotTunable as error:
        fail(error, WRONG_USAGE)
    except tuning.Unevaluated as error:
        fail(f"{error}. {out / _RECORDS} has what was measured", UNFIT)
    except WriteError as error:
        fail(f"cannot write {out / _RECORDS}: {getattr(error.__cause__, 'strerror', error)}", UNFIT)
    except RunError as error:
        fail(error, WRONG_USAGE)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise  # which every command tells alike
        fail(f"cannot write {error.filename or out}: {error.strerror or error}", UNFIT)


def _used(out: Path) -> Path | None:
    """Return the first file that a search has left in a folder; None without one, and for records that are empty."""
    for path in (out / _BEST, out / _SUMMARY, out / _RECORDS):
        with contextlib.suppress(FileNotFoundError):
            if os.lstat(path).st_size:
                return path
    return None


def named_problem(file: Path) -> str | None:
    """The problem that a comment in the first lines of a file names; None where there is none."""
    from harness.solution.discover import SolutionError, read_solution

    if str(file) == "-" or not file.is_file():
        return None
    try:
        return str(read_solution(file).problem)
    except (SolutionError, OSError):
        return None


def _limits(device: str | None, gpu: str, only_list: bool) -> Any:
    import torch

    from harness import device as devices
    from harness.sol.hardware import UnknownDevice, limits_at_hand, limits_of

    try:
        if torch.cuda.is_available() and device != "cpu":
            return limits_at_hand(devices.select(device))
        if only_list:
            return limits_of(gpu)
    except devices.DeviceError as error:
        fail(error, UNFIT)
    except UnknownDevice as error:
        fail(error, WRONG_USAGE)
    fail("there is no GPU to measure on; --list ranks the variants without one", UNFIT)


def _rows(timed: list[tuple[float, Any]]) -> list[dict[str, Any]]:
    from kernelbench.ucutlass.canonical import digest

    return [{"predicted_ms": round(ms, 5), "hash": digest(program)} | choices(program.kernels[0])
            for ms, program in timed]  # fmt: skip


def choices(kernel: Any) -> dict[str, Any]:
    """Return the choices of a variant, as one row of a table."""
    tile = kernel.cta_tile
    found = {"cta": f"{tile.m}x{tile.n}x{tile.k}", "stages": kernel.stages}
    if kernel.scheduler:
        one = kernel.scheduler
        return found | {"cluster": f"{kernel.cluster.m}x{kernel.cluster.n}", "kernel": str(one.kernel),
                        "tiles": str(one.tile), "raster": str(one.raster), "max_swizzle": one.max_swizzle}  # fmt: skip
    return found | {"swizzle": str(kernel.swizzle), "split_k": kernel.split_k.slices}


def _list(timed: list[tuple[float, Any]], size: Any, as_json: bool) -> None:
    rows = _rows(timed)
    if as_json:
        say_json({"ok": True, "size": vars(size), "variants": rows})
        return
    say(tabulate(rows[:_LISTED], headers="keys"))
    say(f"\n{len(rows)} legal variants of M={size.m} N={size.n} K={size.k} batch={size.batch}; times are predictions")


def _tune(program, asked, device, builds: int, out: Path, predict, as_json: bool) -> None:
    from harness.problem.module import ProblemError
    from kernelbench.api import load_problem
    from kernelbench.evaluator.client import Conditions, problem_file
    from kernelbench.run import only_writer
    from kernelbench.ucutlass import tuning
    from kernelbench.ucutlass.canonical import source_text
    from kernelbench.ucutlass.tuning.measure import Evaluations

    try:
        conditions = Conditions(device=device, workload=asked.workload, precision=asked.precision)
        problem = problem_file(load_problem(asked.problem, asked.problem_dir), conditions)
    except (ValueError, ProblemError) as error:
        fail(error, WRONG_USAGE)

    def keep(record: Any) -> None:
        with_disk_room(lambda: append_line(out / _RECORDS, record.to_json()))

    measure = Evaluations(problem, conditions, out / "variants", predict, _tell, keep)
    with only_writer(out / _RECORDS) or contextlib.nullcontext():
        found = tuning.tune(program, predict, measure, builds)
        summary = {
            "ok": found.best.ms is not None, "problem": asked.problem, "precision": asked.precision, "builds": builds,
            "legal_variants": found.variants, "start": _row(found.start), "best": _row(found.best), "gain": found.gain,
            "tried": [_row(one) for one in found.tried],
        }  # fmt: skip
        best = f"# kb: problem={asked.problem}\n{source_text(found.best.program)}\n"
        write_whole(out / _BEST, best)
        write_whole(out / _SUMMARY, json.dumps(summary, indent=1) + "\n")
    if as_json:
        say_json(summary)
    elif found.best.ms is None:
        say(f"no variant was right; the first: {found.start.status} {found.start.message}", err=True)
    else:
        gain = f"{found.gain:.3f} times the program as given" if found.gain else "the program as given was not right"
        say(f"\n{out / _BEST}: {found.best.ms:.4f} ms, {gain}; both measured again")
    if found.best.ms is None:
        sys.exit(1)


def _row(one: Any) -> dict[str, Any]:
    from kernelbench.ucutlass.canonical import digest

    return {"hash": digest(one.program), "ms": one.ms, "predicted_ms": one.predicted_ms, "status": one.status,
            "message": one.message} | choices(one.program.kernels[0])  # fmt: skip


def _tell(one: Any) -> None:
    time = f"{one.ms:.4f} ms" if one.ms is not None else f"{one.status}: {one.message[:60]}"
    shown = " ".join(f"{name}={value}" for name, value in choices(one.program.kernels[0]).items())
    say(f"{time:<14} predicted {one.predicted_ms:.4f} ms  {shown}", err=True)
