"""Counters of Nsight Compute's command line for the kernels of one call.

``ncu`` replays kernels, so nothing here is a timing of the harness. The candidate runs
under it as the user's own program, outside of the harness's process border.
"""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.integrity.library_only import own_kernels
from harness.integrity.origin import Origin
from harness.problem.module import ProblemFile
from harness.record.shape import POSITIVE
from harness.solution.discover import Solution
from harness.solution.includes import read_source
from kernelbench.machine import under_tool

# field of a record -> metric of ncu, in base units: ns, percent, registers a thread
METRICS = {
    "ns": "gpu__time_duration.sum",
    "sm_percent": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_percent": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "occupancy_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "registers": "launch__registers_per_thread",
    "shared_bytes": "launch__shared_mem_per_block",
    "block_size": "launch__block_size",
}
# Factor of each unit that ncu prints, without `--print-units base` the one that suits the number. Other fields have one
# unit each.
_UNITS = {
    "ns": {"ns": 1, "nsecond": 1, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9},
    "shared_bytes": {"byte/block": 1, "Kbyte/block": 1e3, "Mbyte/block": 1e6},
}
_PLACES = ("/usr/local/cuda/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu")
_MOST_LAUNCHES = 200
_TOLD_LINES, _TOLD_CHARACTERS = 8, 2000
_SHOWN_UNIT = 40  # characters
_MOST_LOG_BYTES, _MOST_COLUMNS = 64 << 20, 2_000  # ncu has some 1,500 metrics
_MOST_CELLS = 20_000_000  # a thousand launches with all metrics have 1,500,000


class NsightError(Exception):
    """No counters can be read, and what to do about it."""


def counters(
    problem: ProblemFile, solution: Solution, workload: str, precision: str, device: str
) -> list[dict[str, Any]]:
    """A record a kernel of one call, what takes longest first: ``name``, ``launches`` and the fields of ``METRICS``.

    Raises NsightError.
    """
    ncu, *options = command()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.csv"  # what the program prints is kept out of it
        tool = [ncu, "--log-file", str(log), *options]
        try:
            done = under_tool.run(tool, problem, solution, workload, precision, device)
            table = read_log(log) if log.exists() else ""
        except under_tool.ToolError as error:
            raise NsightError(str(error)) from error
        except OSError as error:
            raise NsightError(f"the log of ncu cannot be read: {error.strerror}") from error
    return by_kernel(read(table, f"{done.stdout}\n{done.stderr}"))


def command() -> list[str]:
    """Return the command line of ncu up to the program that it is to watch; raise NsightError without ncu."""
    return [
        _ncu(), "--csv", "--page", "raw", "--print-units", "base", "--profile-from-start", "off",
        "--target-processes", "application-only", "--launch-count", str(_MOST_LAUNCHES),
        "--metrics", ",".join(METRICS.values()),
    ]  # fmt: skip


def _ncu() -> str:
    try:
        return under_tool.find("ncu", _PLACES, "Nsight Compute")
    except under_tool.ToolError as error:
        raise NsightError(str(error)) from error


def read_log(path: Path) -> str:
    """Return the text of a log. Raises OSError for what is no plain file or too large."""
    return read_source(path, _MOST_LOG_BYTES)


def read(output: str, errors: str = "") -> list[dict[str, Any]]:
    """One record a launch, from what ``ncu --csv`` printed, its program's own lines among it.

    Understands a column for each metric (``--page raw``, a line of units after the header) as well as a
    line for each (``Metric Name``, ``Metric Unit``, ``Metric Value``). A counter that is not there is left
    out. Raises NsightError where there are no launches, with the reason that ncu gives, where a
    unit is not known, and where there are two tables, of which the program may have printed one.
    """
    lines = output.splitlines()
    headers = [i for i, line in enumerate(lines) if '"ID"' in line and '"Kernel Name"' in line]
    if len(headers) > 1:
        raise NsightError("it has two tables, and the program may have printed one: take it with ncu's --log-file LOG")
    found: list[dict[str, Any]] = []
    if headers and lines[headers[0]].startswith('"ID"'):
        try:
            table = csv.DictReader(io.StringIO("\n".join(lines[headers[0] :])))
            if (columns := len(table.fieldnames or ())) > _MOST_COLUMNS:  # each row is filled up to them
                raise NsightError(f"its table has {columns:,} columns, and at most {_MOST_COLUMNS:,} are read")
            if (cells := columns * (len(lines) - headers[0])) > _MOST_CELLS:
                raise NsightError(f"its table has {cells:,} cells, and at most {_MOST_CELLS:,} are read")
            found = _launches(table)
        except csv.Error as error:
            raise NsightError(f"its table is damaged ({error}): take it again") from None
    if not found:
        raise NsightError(_refusal(output + "\n" + errors))
    return found


def by_kernel(launches: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Launches of one name as one: times added, percentages weighted by time, registers as the first has them."""
    named: dict[str, list[dict[str, Any]]] = {}
    for launch in launches:
        named.setdefault(launch["name"], []).append(launch)
    found = []
    for name, same in named.items():
        merged: dict[str, Any] = {"name": name, "launches": len(same)}
        for field in METRICS:
            values = [(launch[field], launch.get("ns") or 1.0) for launch in same if field in launch]
            if not values:
                continue
            if field.endswith("_percent"):
                merged[field] = sum(value * ns for value, ns in values) / sum(ns for _, ns in values)
            else:
                merged[field] = sum(value for value, _ in values) if field == "ns" else values[0][0]
        found.append(merged)
    return sorted(found, key=lambda kernel: -kernel.get("ns", 0.0))


def whose(launches: Iterable[dict[str, Any]], origin: Origin) -> list[dict[str, Any]]:
    """Return ``name``, ``launches``, ``share`` of the time and whether it is ``own``, for each kernel.

    Raises NsightError where the launches have no times.
    """
    kernels = by_kernel(launches)
    if not all(kernel.get("ns") for kernel in kernels):
        raise NsightError(f"it has no times above 0: ncu takes them with --metrics {METRICS['ns']}")
    own, _ = own_kernels({"kernels": [{"name": k["name"], "ms": k["ns"] / 1e6} for k in kernels]}, origin)
    whole_ns = sum(kernel["ns"] for kernel in kernels)
    return [
        {"name": k["name"], "launches": k["launches"], "share": k["ns"] / whole_ns, "own": k["name"] in own}
        for k in kernels
    ]


def _launches(table: csv.DictReader) -> list[dict[str, Any]]:
    units: dict[str, str] = {}
    rows = []
    for row in table:
        if (row.get("ID") or "").isdigit() and row.get("Kernel Name"):
            rows.append(row)
        elif not rows and not row.get("ID"):
            units = row
    return list(_long(rows) if "Metric Name" in table.fieldnames else (_wide(row, units) for row in rows))


def _wide(row: dict[str, str], units: dict[str, str]) -> dict[str, Any]:
    numbers = {field: _in_base_units(field, row.get(metric), units.get(metric)) for field, metric in METRICS.items()}
    return {"name": row["Kernel Name"], **{field: value for field, value in numbers.items() if value is not None}}


def _long(rows: Iterable[dict[str, str]]) -> Iterable[dict[str, Any]]:
    fields = {metric: field for field, metric in METRICS.items()}
    launches: dict[str, dict[str, Any]] = {}
    for row in rows:
        launch = launches.setdefault(row["ID"], {"name": row["Kernel Name"]})
        if field := fields.get(row.get("Metric Name")):
            value = _in_base_units(field, row.get("Metric Value"), row.get("Metric Unit"))
            if value is not None:
                launch[field] = value
    return launches.values()


def _in_base_units(field: str, text: str | None, unit: str | None) -> float | None:
    """ncu groups digits by commas; what it could not collect is empty or says so. No counter is below 0."""
    try:
        value = float((text or "").replace(",", ""))
    except ValueError:
        return None
    if field in _UNITS:
        if unit not in _UNITS[field]:
            message = f"{METRICS[field]} is in '{(unit or '')[:_SHOWN_UNIT]}', which is no unit of it"
            raise NsightError(f"{message}: take it with ncu's --print-units base")
        value *= _UNITS[field][unit]
    return value if value == 0 or POSITIVE.takes(value) else None


def _refusal(text: str) -> str:
    if "ERR_NVGPUCTRPERM" in text:
        return (
            "the driver keeps performance counters to administrators (ERR_NVGPUCTRPERM): run this as root, give the "
            "container the capability SYS_ADMIN, or load the driver with NVreg_RestrictProfilingToAdminUsers=0"
        )
    told = [line[:_TOLD_CHARACTERS] for line in text.splitlines() if line.strip()][-_TOLD_LINES:]
    return "\n  ".join(["ncu profiled no kernel; it says:", *told])
