"""Programs that a worker starts in its own group: compilers, and a profiler of one call."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.solution.includes import read_head

_LOG_CHARACTERS = 1 << 18


def compile_source(command: list[str]) -> dict:
    """Run a compiler in this process's group, so that it shares its limits and its end."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return {"code": done.returncode, "log": done.stdout.decode(errors="replace")[:_LOG_CHARACTERS]}


def run_profiler(command: list[str], root: str, job: str) -> dict:
    """Run a profiler on a process of its own that makes the calls of ``job``, within this process's limits.

    ``log`` is what the profiler wrote into its own file. Lines that the process printed follow where it failed, each
    behind a mark, so that none of them is taken for the profiler's.
    """
    environment = {**os.environ, "PYTHONPATH": root}
    profiler, *options = command
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        command = [profiler, "--log-file", str(path), *options]
        command += [sys.executable, "-m", "harness.worker.profile_target", job]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=environment)  # fmt: skip
        log = read_head(path, _LOG_CHARACTERS)[0].decode(errors="replace") if path.exists() else ""
    if done.returncode:
        printed = done.stdout.decode(errors="replace")[-_LOG_CHARACTERS:]
        log += "".join(f"\n| {line}" for line in printed.splitlines())
    return {"code": done.returncode, "log": log[:_LOG_CHARACTERS]}
