"""One program against the harness, in a throwaway box: did it get anything that an honest one does not?

The box is started and watched here; what happens in it is ``kernelbench.redteam.inside``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.process.procfs import descendants, usage
from harness.solution.discover import Solution, SolutionError, read_solution
from kernelbench.redteam import box

REFERENCE = "reference"

_POLL_S = 0.5
_TWIN = re.compile(r"\btwin=(\S+)")
_HEAD_LINES = 10
_BOX_MEMORY = 3  # times a candidate's: judge, builds and the files in memory have theirs


@dataclass(frozen=True)
class Limits:
    """Limits of a candidate, as for `kb eval`; ``whole_s`` limits everything in the box."""

    device: str = "cpu"
    timeout_s: float = 10.0
    build_timeout_s: float = 60.0
    memory_bytes: int = 4 << 30
    whole_s: float = 600.0


@dataclass(frozen=True)
class Report:
    """``gains`` says in words what the program got; it is empty where it got nothing."""

    status: str
    message: str
    speedup: str
    twin: str
    gains: list[str]

    def to_json(self) -> dict:
        return asdict(self)


def attack(program: Path, limits: Limits) -> Report:
    """Evaluate ``program`` in a box of its own.

    Raises box.NoBox where this machine makes none, and SolutionError where the program or its twin is no solution.
    """
    solution = read_solution(program)
    twin = twin_of(solution)
    with tempfile.TemporaryDirectory(prefix="kb-box-") as place:
        asked = {"program": str(solution.path), "twin": str(twin or ""), "place": place, "limits": asdict(limits)}
        command = box.command([sys.executable, "-m", "kernelbench.redteam.inside", json.dumps(asked)])
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=environment,
                                  cwd="/") as process:  # fmt: skip
                ended = _watched(process, limits)
            output.seek(0), errors.seek(0)
            told, complaint = output.read().decode(), errors.read().decode(errors="replace").strip()
    if ended:
        return Report("none", ended, "", "", [f"everything had to be ended from outside: {ended}"])
    try:
        answer = json.loads(told.splitlines()[-1])
    except (ValueError, IndexError):
        last = (complaint.splitlines() or ["it said nothing"])[-1]
        return Report("none", last, "", "", [f"what evaluates it ended with exit status {process.returncode}: {last}"])
    if "no_box" in answer:
        raise box.NoBox(answer["no_box"])
    return Report(**answer)


def twin_of(solution: Solution) -> Path | None:
    """The honest program that a program names in its first lines (`twin=FILE`); None for the reference itself.

    Raises SolutionError where there is no such file.
    """
    lines = solution.path.read_text(encoding="utf-8", errors="replace").splitlines()[:_HEAD_LINES]
    named = next((match[1] for line in lines if (match := _TWIN.search(line))), REFERENCE)
    if named == REFERENCE:
        return None
    path = solution.path.parent / named
    if not path.is_file():
        raise SolutionError(f"{solution.name} names {named} as its honest twin, and there is no such file beside it")
    return path


def _watched(process: subprocess.Popen, limits: Limits) -> str:
    """Wait for the end; why it was brought about, '' where it came by itself."""
    deadline = time.monotonic() + limits.whole_s
    while process.poll() is None:
        found = usage(descendants(process.pid))
        used = found.private + found.shared
        if used > _BOX_MEMORY * limits.memory_bytes:
            process.kill()
            return f"it took {used / 1e9:.1f} GB of memory"
        if time.monotonic() > deadline:
            process.kill()
            return f"it took longer than {limits.whole_s:g} s"
        time.sleep(_POLL_S)
    return ""
