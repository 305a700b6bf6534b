"""Speed-of-light reports of problems: one as Markdown, several as a table, all as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tabulate import tabulate
from tqdm import tqdm

from harness import device as devices
from harness.problem.inputs import DTYPES
from harness.problem.module import load_problem
from harness.sol.bounds import analyse
from harness.sol.clock import choose
from harness.sol.hardware import DEVICES, Limits, UnknownDevice, limits_at_hand, limits_of
from harness.sol.report import markdown, to_json
from kernelbench import suite

_DEFAULT_DEVICE = "h100-sxm"


def choose_limits(name: str | None) -> Limits:
    """A device of the table, or the one at hand (``cuda``, ``cuda:1``); without a name that one if it is known.

    Raises UnknownDevice or DeviceError.
    """
    if name in DEVICES:
        return limits_of(name)
    if name and not re.fullmatch(r"cuda(:\d+)?", name):
        raise UnknownDevice(f"no limits are known for '{name}'; use cuda for the one at hand, or: {', '.join(DEVICES)}")
    try:
        return limits_at_hand(devices.select(name))
    except UnknownDevice as error:
        if name:
            raise UnknownDevice(f"{error}; name one of: {', '.join(DEVICES)}") from error
        return limits_of(_DEFAULT_DEVICE)


def report(
    selector: str,
    limits: Limits,
    clock_mhz: float | None = None,
    workload: str | None = None,
    precision: str = "fp32",
    root: Path | None = None,
    as_json: bool = False,
) -> tuple[str, list[dict[str, Any]]]:
    """Text (Markdown of one problem, a table of several, or JSON) and data of the selected problems.

    Without ``workload`` it is the first one of each. Raises SelectorError,
    ProblemError, and ValueError for a clock that the device cannot have.
    """
    clock = choose(limits, given_mhz=clock_mhz)
    problems = [load_problem(file) for file in suite.find(selector, root)]
    analyses = []
    for problem in tqdm(problems, unit="problem", leave=False, disable=None if len(problems) > 1 else True):
        chosen = problem.workload(workload or next(iter(problem.workloads)))
        analyses.append(analyse(chosen, DTYPES[precision]))
    reports = [to_json(analysis, limits, clock) for analysis in analyses]
    if as_json:
        text = json.dumps(reports[0] if len(reports) == 1 else reports, indent=2) + "\n"
    elif len(reports) == 1:
        text = markdown(analyses[0], limits, clock)
    else:
        text = table(reports) + "\n"
    return text, reports


def table(reports: list[dict[str, Any]]) -> str:
    """One line a problem. Times in ms."""
    headers = ("problem", "GFLOP", "MB", "FLOPs/byte", "bottleneck", "t_SOL", "FP16", "t_floor", "why it is lower")
    rows = [
        (
            f"{r['problem_id']} {r['problem_name']}",
            f"{r['total_flops'] / 1e9:,.2f}",
            f"{r['total_bytes'] / 1e6:,.2f}",
            "-" if r["arithmetic_intensity"] is None else f"{r['arithmetic_intensity']:.2f}",
            r["bottleneck"],
            f"{r['theoretical_runtime_ms']:.4f}",
            f"{r['theoretical_runtime_ms_fp16']:.4f}",
            f"{r['floor_ms']:.4f}",
            "; ".join(dict.fromkeys(d["reason"].split(":")[0].split(" (")[0] for d in r["discounts"])),
        )
        for r in reports
    ]
    align = ("left", "right", "right", "right", "left", "right", "right", "right", "left")
    if not reports:
        title = ""
    else:
        at = reports[0]
        title = f"{at['device_name']} at {at['sm_clock_mhz']:g} MHz ({at['clock']}); times in ms\n\n"
    return title + tabulate(rows, headers, colalign=align, disable_numparse=True)
