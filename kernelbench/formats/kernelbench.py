"""KernelBench's own files: ``eval_results.json`` and baseline timings, in and out.

Its times are means in milliseconds, -1.0 on failure; its speedup is the baseline's
mean over the solution's. What an entry holds beyond the fields of our record is kept
under ``conditions["kernelbench"]``, and comes out again. Older files, with one object
instead of a list a problem, come out in the newer form.

The format has no word for sizes. Ours stand under a key of their own, ``metadata.workload``
of a result and ``workload`` of a baseline, which its tools pass over. A file without it
was evaluated on sizes that it does not name: its workload is ``unknown``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.json_text import parse_json
from harness.limits import MAX_JSON_BYTES
from harness.result import Result, Status
from harness.solution.includes import read_source
from kernelbench.metrics.workloads import UNKNOWN
from kernelbench.run import MOST_PROBLEMS

FAILED_MS = -1.0
_UNEXPECTED = (KeyError, TypeError, ValueError, AttributeError, OverflowError)
EAGER_FILE = "baseline_time_torch"  # its name for the baseline that we call eager
_MOST_ENTRIES = 200_000  # as of an archive
_DECISIVE = ("sample_id", "compiled", "correctness", "runtime")  # which are what the record says
_KEPT = "kernelbench"
_WORKLOAD = "workload"  # our key for the sizes, among its own
_STATISTICS = {"mean": "mean_ms", "std": "std_ms", "min": "min_ms", "max": "max_ms", "num_trials": "samples"}
_NOT_COMPILED = (Status.BUILD_ERROR, Status.LOAD_ERROR)
_WRONG = (Status.WRONG_SHAPE, Status.WRONG_DTYPE, Status.WRONG_VALUE, Status.NONFINITE, Status.REJECTED)
_LEVEL = re.compile(r"level(\d+)")
_NUMBER = re.compile(r"0*(\d{1,9})(?:_|$)")


class FormatError(Exception):
    """A file that is not in KernelBench's format: which one, and where."""


def read_eval_results(
    path: Path, level: int, baseline: Path | None = None, workload: str | None = None
) -> list[Result]:
    """Read the results in ``eval_results.json``; with a baseline file their speedups.

    A correct result has no speedup where the file or the baseline has no time for it, or
    one that is of other sizes.

    Parameters
    ----------
    level
        Of the problems; the file has their numbers only.
    workload
        Name of the workload of results and baselines that do not name theirs; by default ``unknown``.

    Raises
    ------
    FormatError
    """
    data = _load(path)
    default = {"name": workload or UNKNOWN, "sizes": {}, "flops": None, "bytes": None}
    timings = read_baseline(baseline) if baseline else {}
    name = _baseline_name(baseline) if baseline else ""
    results = []
    if len(data) > MOST_PROBLEMS:
        raise FormatError(f"{path} has {len(data):,} problems, and at most {MOST_PROBLEMS:,} are read")
    for problem, entries in data.items():
        if not problem.isdigit():
            raise FormatError(f"{path}: '{problem}' is no problem number")
        for entry in entries if isinstance(entries, list) else [entries]:
            if len(results) >= _MOST_ENTRIES:
                raise FormatError(f"{path} has more than {_MOST_ENTRIES:,} results")
            if not isinstance(entry, dict):
                raise FormatError(f"{path}: an entry of problem {problem} is no object")
            try:
                result = _result(f"{level}/{int(problem)}", entry, default)
                result.check()
            except _UNEXPECTED as error:
                raise FormatError(f"{path}: an entry of problem {problem} is not as expected: {error!r}") from None
            try:
                result = _with_baseline(result, name, timings.get(result.problem), default)
                result.check()
            except _UNEXPECTED as error:
                raise FormatError(f"{baseline}: that of problem {problem} is not as expected: {error!r}") from None
            results.append(result)
    named = Counter((result.problem, result.solution["sample"], result.workload["name"]) for result in results)
    if twice := next((of for of, count in named.items() if count > 1), None):
        raise FormatError(f"{path} has two results of sample {twice[1]} of {twice[0]}: leave one of them there")
    return results


def eval_results(results: Iterable[Result], level: int) -> dict[str, list[dict[str, Any]]]:
    """The content of ``eval_results.json`` for the results of one level; inverse of ``read_eval_results``."""
    data: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        of_level, _, number = result.problem.partition("/")
        if int(of_level) == level:
            kept = result.conditions.get(_KEPT, {})
            entry = _entry(result) | {key: value for key, value in kept.items() if key not in _DECISIVE}
            entry["metadata"] = (entry["metadata"] or {}) | _workload(result)
            data.setdefault(number, []).append(entry)
    return data


def read_baseline(path: Path) -> dict[str, dict[str, Any]]:
    """Timings of a baseline file by problem id, as in ``1/19``; a problem without a time is left out."""
    timings = {}
    for folder, files in _load(path).items():
        level = _LEVEL.fullmatch(folder)
        if not level or not isinstance(files, dict):
            raise FormatError(f"{path}: '{folder}' is no level, as in level1")
        for file, statistics in files.items():
            number = _NUMBER.match(file)
            if not number or not isinstance(statistics, dict | None):
                raise FormatError(f"{path}: '{file}' is no timing of a problem's file, as in 19_ReLU.py")
            if statistics:
                try:
                    timings[f"{level[1]}/{int(number[1])}"] = {**_timing(statistics), "file": file}
                except _UNEXPECTED as error:
                    raise FormatError(f"{path}: that of '{file}' is not as expected: {error!r}") from None
    return timings


def baseline(results: Iterable[Result], name: str = "eager") -> dict[str, dict[str, Any]]:
    """The content of a baseline file: the timings of baseline ``name`` that the results hold.

    Not those beside what was rejected: it may have slowed them. Of several workloads of a problem the first is in it.
    """
    data: dict[str, dict[str, Any]] = {}
    workloads: dict[str, str] = {}
    for result in results:
        timing = result.baselines.get(name)
        if result.status is not Status.REJECTED and timing and not timing.get("error"):
            workload = result.workload.get("name", UNKNOWN)
            if workloads.setdefault(result.problem, workload) != workload:
                continue
            level, _, number = result.problem.partition("/")
            file = timing.get("file", f"{number}_{result.problem_name}.py")
            sizes = {_WORKLOAD: timing[_WORKLOAD]} if _WORKLOAD in timing else _workload(result)
            data.setdefault(f"level{level}", {})[file] = _statistics(timing, result) | sizes
    return data


def _load(path: Path) -> dict[str, Any]:
    try:
        data = parse_json(read_source(path, MAX_JSON_BYTES))
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise FormatError(f"{path} is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise FormatError(f"{path} is not in KernelBench's format: expected an object at its top")
    return data


def _result(problem: str, entry: dict[str, Any], workload: dict[str, Any]) -> Result:
    metadata, sample = entry.get("metadata") or {}, int(entry["sample_id"])
    status = _status(entry, metadata)
    level, _, number = problem.partition("/")
    result = Result(
        problem=problem,
        problem_name="",
        workload=_named(metadata, workload),
        solution={
            "name": f"level_{level}_problem_{number}_sample_{sample}_kernel.py",
            "sample": sample, "kind": "py", "language": "unknown", "sha256": "",
        },
        status=status,
        message="" if status is Status.OK else _message(metadata),
        device={
            "name": metadata.get("hardware") or "unknown",
            "type": str(metadata.get("device", "cuda")).split(":")[0],
        },
    )  # fmt: skip
    if status is Status.OK and entry.get("runtime", FAILED_MS) > 0:
        result.timing = {**_timing(entry.get("runtime_stats") or {}), "mean_ms": float(entry["runtime"])}
    ours = _entry(result)
    result.conditions = {_KEPT: {key: value for key, value in entry.items() if key not in ours or ours[key] != value}}
    return result


def _status(entry: dict[str, Any], metadata: dict[str, Any]) -> Status:
    if not entry["compiled"]:
        return Status.LOAD_ERROR if metadata.get("status") == Status.LOAD_ERROR else Status.BUILD_ERROR
    if entry["correctness"]:
        return Status.OK
    known = {status.value: status for status in Status if status not in (Status.OK, *_NOT_COMPILED)}
    if metadata.get("status") in known:
        return known[metadata["status"]]
    if "runtime_error" in metadata:
        return Status.RUNTIME_ERROR
    return Status.WRONG_SHAPE if "shape" in str(metadata.get("correctness_issue")).lower() else Status.WRONG_VALUE


def _message(metadata: dict[str, Any]) -> str:
    texts = [metadata.get(key) for key in ("compilation_error", "runtime_error", "correctness_issue")]
    return next((str(text) for text in texts if text), "KernelBench recorded no reason")


def _entry(result: Result) -> dict[str, Any]:
    metadata = {"hardware": result.device.get("name"), "device": result.device.get("type")}
    if result.correct:
        trials = (result.correctness or {}).get("trials", 0)
        trials = trials if isinstance(trials, int) else len(trials)  # earlier logs hold the number alone
        metadata["correctness_trials"] = f"({trials} / {trials})"
    else:
        text = f"{result.rule}: {result.message}" if result.rule else result.message
        metadata |= {"status": result.status.value, _reason(result.status): text}
    timing = (result.timing or {}) if result.correct and not result.unconfirmed else {}
    return {
        "sample_id": result.solution["sample"],
        "compiled": result.status not in _NOT_COMPILED,
        "correctness": result.correct,
        "metadata": metadata,
        "runtime": timing.get("mean_ms", FAILED_MS),
        "runtime_stats": _statistics(timing, result) if timing else {},
    }


def _reason(status: Status) -> str:
    if status in _NOT_COMPILED:
        return "compilation_error"
    return "correctness_issue" if status in _WRONG else "runtime_error"


def _timing(statistics: dict[str, Any]) -> dict[str, Any]:
    found = {ours: statistics.get(theirs) for theirs, ours in _STATISTICS.items()}
    return {ours: value for ours, value in found.items() if type(value) in (int, float) and math.isfinite(value)} | {
        key: statistics[key] for key in ("hardware", "device", _WORKLOAD) if key in statistics
    }


def _statistics(timing: dict[str, Any], result: Result) -> dict[str, Any]:
    where = {"hardware": result.device.get("name"), "device": result.device.get("type")}
    return {theirs: timing[ours] for theirs, ours in _STATISTICS.items() if ours in timing} | {
        key: timing.get(key, value) for key, value in where.items()
    }


def _workload(result: Result) -> dict[str, Any]:
    """The key with the sizes of a result, where they are known."""
    return {} if result.workload.get("name") in (None, UNKNOWN) else {_WORKLOAD: result.workload}


def _named(holder: dict[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    """The sizes that an entry or a baseline names, else ``default``."""
    found = holder.get(_WORKLOAD)
    return {**default, **found} if isinstance(found, dict) and found.get("name") else dict(default)


def _baseline_name(path: Path) -> str:
    return "eager" if path.stem == EAGER_FILE else path.stem


def _with_baseline(result: Result, name: str, timing: dict[str, Any] | None, workload: dict[str, Any]) -> Result:
    """The result with the time of its baseline, and the speedup over it where both are of the same sizes."""
    if not timing:
        return result
    result.problem_name = re.sub(r"^\d+_|\.py$", "", timing["file"])
    theirs, ours = _named(timing, workload), result.workload
    sizes = theirs["sizes"], ours["sizes"]
    same = theirs["name"] == ours["name"] and (sizes[0] == sizes[1] or not all(sizes))
    why = {} if same else {"error": f"its sizes are {theirs['name']}, and those of the solution {ours['name']}"}
    result.baselines = {name: {**timing, **why}}
    if same and result.timing and timing.get("mean_ms", 0) > 0:
        result.speedup = timing["mean_ms"] / result.timing["mean_ms"]
    return result
