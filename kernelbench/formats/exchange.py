"""Runs from and for other tools: KernelBench's files in and out, tables for notebooks out."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.result import printable
from kernelbench import escaping, suite
from kernelbench.formats import kernelbench
from kernelbench.formats.tritonbench import accuracy
from kernelbench.review import labels
from kernelbench.run import Run
from kernelbench.run_files.log import write_named
from kernelbench.views import leaderboard, tables
from kernelbench.views.ranking import counted

FORMATS = ("kernelbench", "baseline", "tritonbench", "csv", "parquet")


class ExchangeError(Exception):
    """An export that is not possible; the message says what to do."""


def import_kernelbench(
    path: Path, level: int, out: Path, baseline: Path | None = None, workload: str | None = None
) -> Run:
    """A run of the results in ``eval_results.json``; every problem of the level counts.

    ``workload`` names the sizes of what does not say its own; without it they are unknown.

    Raises upstream.FormatError for a file in another format, RunError where ``out`` is a run already.
    """
    results = kernelbench.read_eval_results(path, level, baseline, workload)
    names = {result.device["name"] for result in results}
    workloads = {result.workload["name"] for result in results}
    config = {
        "solutions": str(path), "problem_dir": None, "problems": _all_of(level),
        "device": names.pop() if len(names) == 1 else None,
        # None for several: a run of ours would have evaluated each solution on all that it names
        "workload": workloads.pop() if len(workloads) == 1 else None, "precision": "fp32",
    }  # fmt: skip
    run = Run.open(out, config, resume=False, results=results)
    run.close()
    return run


def export(runs: Sequence[Run], form: str, out: Path, level: int | None = None) -> None:
    """Write ``runs`` to ``out`` in one of ``FORMATS``; KernelBench's take one run, and its results one level.

    Raises ExchangeError where there is no result, the form cannot hold them, or a package is missing, and for
    TritonBench what ``ranking.counted`` raises.
    """
    if not any(run.latest() for run in runs):
        raise ExchangeError(f"no result in {', '.join(str(run.path) for run in runs)}")
    if form in ("csv", "parquet"):
        records = [tables.flatten(one) for run in runs for one in _records(run)]
        write_named(out, tables.to_csv(records) + "\n" if form == "csv" else _to_parquet(records))
        return
    if len(runs) != 1:
        raise ExchangeError(f"one file of KernelBench's holds one run, and not {len(runs)}")
    results = runs[0].whole()
    if form == "tritonbench":
        data = accuracy.figures(results, counted(runs))
    elif form == "baseline":
        data = kernelbench.baseline(results)
    else:
        data = kernelbench.eval_results(results, _level(results, level))
    write_named(out, escaping.json_text(data, indent=4) + "\n")  # which may be the log of a CI job


def _all_of(level: int) -> str | None:
    """Return the selector of a level; None where the suite has no such level."""
    try:
        suite.ids(f"level{level}")
    except suite.SelectorError:
        return None
    return f"level{level}"


def _records(run: Run) -> list[dict[str, Any]]:
    label_of = labels.of_run(run)
    return [{"run": str(run.path), **record(r, label_of.get(labels.key_of(r), labels.NONE))} for r in run.latest()]


def record(result, label: labels.Label = labels.NONE) -> dict[str, Any]:
    """One result as one row: what it is, on what, its figures and its label."""
    return {
        "device": result.device.get("name"),
        "torch": result.versions.get("torch"),
        "precision": result.precision,
        "workload": result.workload.get("name"),
        "rule": result.rule,
        "seconds": result.seconds,
        **leaderboard.row(result, label),
    }


def _level(results, level: int | None) -> int:
    levels = sorted({int(result.problem.split("/")[0]) for result in results})
    if level is None and len(levels) != 1:
        raise ExchangeError(f"eval_results.json holds one level, and the run has {levels or 'none'}: give --level")
    if level is not None and level not in levels:
        raise ExchangeError(f"the run has no result of level {level}, but of {', '.join(map(str, levels))}")
    return level if level is not None else levels[0]


def _to_parquet(records: list[dict[str, Any]]) -> bytes:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ExchangeError("Parquet needs pyarrow: pip install 'kernelbench[parquet]', or use --to csv") from None
    columns = dict.fromkeys(column for one in records for column in one)
    made = {printable(column): _alike([one.get(column) for one in records]) for column in columns}
    table = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(made), table)
    return table.getvalue()


def _alike(values: list[Any]) -> list[Any]:
    """The values of a column: text that can be encoded, and no whole numbers beside others."""
    if any(isinstance(value, float) for value in values):
        values = [float(value) if type(value) is int else value for value in values]
    return [printable(value) if isinstance(value, str) else value for value in values]
