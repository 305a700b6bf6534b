"""Errors that compute-sanitizer finds in a solution's kernels, with the line of the source where it is known.

It checks all that the program runs: the construction of the model, the calls of a warm-up, and one more.

References
----------
NVIDIA, Compute Sanitizer User Manual: https://docs.nvidia.com/compute-sanitizer/
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from harness.problem.module import ProblemFile
from harness.solution.discover import Solution
from harness.solution.includes import read_source
from kernelbench.machine import under_tool
from kernelbench.machine.under_tool import ToolError

CHECKS = ("memcheck", "racecheck", "initcheck")
# PyTorch asks the driver for functions that it may not have: that is no error of the candidate.
_OPTIONS = {"memcheck": ("--report-api-errors", "no")}
# Tensors of one segment of PyTorch's cache are one allocation to memcheck, which sees no error between them.
_ENVIRONMENT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
_PLACES = ("/usr/local/cuda/bin/compute-sanitizer", "/usr/local/cuda-*/bin/compute-sanitizer")
_MOST_ERRORS = 20
_MOST_LOG_BYTES = 64 << 20
_MARK = "========="
_AT = re.compile(r"\bat ")
_OFFSET = re.compile(r"\+0x[0-9a-f]+(?: in (?P<place>\S+:\d+))?")
_SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) ")
_NOISE = ("COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "LEAK SUMMARY", "Saved host backtrace")


def errors(
    problem: ProblemFile, solution: Solution, workload: str, precision: str, device: str
) -> list[dict[str, Any]]:
    """Return the errors from when a solution's model is made to the end of a few calls, from each of ``CHECKS``.

    A record has ``check``, ``error``, ``kernel`` and ``place`` (file:line, '' without line information) and ``count``,
    how often it occurred. Raises ToolError.
    """
    tool = under_tool.find("compute-sanitizer", _PLACES, "Compute Sanitizer")
    found = []
    for check in CHECKS:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"  # what the program prints is kept out of it
            command = [tool, "--tool", check, *_OPTIONS.get(check, ()), "--log-file", str(log)]
            done = under_tool.run(command, problem, solution, workload, precision, device, _ENVIRONMENT)
            try:
                output = read_source(log, _MOST_LOG_BYTES) if log.exists() else ""
            except OSError as error:
                raise ToolError(f"the log of compute-sanitizer cannot be read: {error.strerror}") from error
        found += read(check, output, f"{done.stdout}\n{done.stderr}")
    return found


def read(check: str, output: str, printed: str = "") -> list[dict[str, Any]]:
    """Return the errors in the log of the tool, equal ones once; raise ToolError where it did not get to the end.

    ``printed`` is what it and its program printed besides.
    """
    lines = [line[len(_MARK) :] for line in output.splitlines() if line.startswith(_MARK)]
    if not any(_SUMMARY.search(line) for line in lines):
        told = [line for line in f"{output}\n{printed}".splitlines() if line.strip()][-8:]
        raise ToolError("\n  ".join([f"compute-sanitizer --tool {check} came to no end; it says:", *told]))
    counted: dict[tuple[str, str, str], int] = {}
    for title, details in _blocks(lines):
        key = (title, *next(filter(None, map(_kernel_and_place, details)), ("", "")))
        counted[key] = counted.get(key, 0) + 1
    return [
        {"check": check, "error": error, "kernel": kernel, "place": place, "count": count}
        for (error, kernel, place), count in list(counted.items())[:_MOST_ERRORS]
    ]


def _kernel_and_place(line: str) -> tuple[str, str] | None:
    """Return what a line names, as in ``at KERNEL+0x90 in FILE:7``; None where it names no kernel."""
    at = _AT.search(line)
    offset = _OFFSET.search(line, at.end() + 1) if at else None
    return (line[at.end() : offset.start()].strip(), offset["place"] or "") if offset else None


def _blocks(lines: list[str]) -> list[tuple[str, list[str]]]:
    """Return each error's first line and those that are indented below it."""
    blocks: list[tuple[str, list[str]]] = []
    for line in lines:
        text = line.strip()
        if not text or any(noise in text for noise in _NOISE):
            continue
        if line.startswith("  ") and blocks:
            blocks[-1][1].append(text)
        elif not line.startswith("  "):
            blocks.append((text, [text]))
    return blocks
