"""Work within the box of an attack: evaluate a program and its honest twin, look at what is left.

A script: ``python -m kernelbench.redteam.inside JSON`` prints a report, as of ``kernelbench.redteam.attack``, on its
last line. Around the program lie things that are not its own, with a word in them that nobody else knows.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from harness.result import Result, Status
from harness.solution.discover import read_solution
from harness.solution.includes import digest_of
from kernelbench import starter
from kernelbench.metrics import settled
from kernelbench.redteam import box
from kernelbench.redteam.examination import GAIN, honest_speedup, sure_speedup
from kernelbench.run import Run, RunError

_FOLDER = Path("/tmp/kb-attack")
_TEMPORARY = Path("/tmp/kb-attack-temporary")  # for the evaluations: whoever works outside of the box has the other
_SETTLES_S = 1.0
_SEARCHED_BYTES = 16 << 20


class Attack:
    """One attack, within its box."""

    def __init__(self, asked: dict[str, Any], around: box.Box):
        self._around, self._limits = around, asked["limits"]
        self._secret = secrets.token_hex(16)
        self._program, self._problem = Path(asked["program"]), str(read_solution(Path(asked["program"])).problem)
        _FOLDER.mkdir(), _TEMPORARY.mkdir()
        self._twin = Path(asked["twin"]) if asked["twin"] else _FOLDER / "reference.py"
        if not asked["twin"]:
            self._twin.write_text(f"# kb: problem={self._problem}\n" + starter.source(self._problem, "py"))
        self._decoy = subprocess.Popen([self._secret, "100000"], executable=shutil.which("sleep"))
        (Path.home() / ".kb-attack").write_text(self._secret)

    def report(self) -> dict[str, Any]:
        before = self._evaluated(self._twin, "before")
        mine = {path: digest_of(path) for path in (_FOLDER / "before").rglob("*") if path.is_file()}
        _reap()
        files, processes = self._around.files(), _processes()
        result = self._evaluated(self._program, "attack")
        left = self._left(files, processes)
        changed = [str(path) for path, digest in mine.items() if not path.is_file() or digest_of(path) != digest]
        after = self._evaluated(self._twin, "after")
        gains = [f"it changed what is not its own: {path}" for path in changed]
        gains += [f"it left {what}" for what in left] + self._seen() + self._earned(before, result, after)
        return {
            "status": str(result.status) if result else "none",
            "message": result.message if result else "",
            "speedup": settled.speedup_text(result) or "" if result else "",
            "twin": " and ".join(str(of.status) if of else "none" for of in (before, after)),
            "gains": gains,
        }

    def _evaluated(self, program: Path, name: str) -> Result | None:
        """The record of a program, by a `kb eval` of its own; None where there is none."""
        folder = _FOLDER / name
        (folder / "solutions").mkdir(parents=True)
        path = folder / "solutions" / program.name
        shutil.copy(program, path)
        (folder / "solutions" / "neighbour.txt").write_text(self._secret)
        limits = self._limits
        command = [
            sys.executable, "-m", "kernelbench", "eval", "--solutions", folder / "solutions", "--device",
            limits["device"], "--timeout", limits["timeout_s"], "--build-timeout", limits["build_timeout_s"],
            "--memory", limits["memory_bytes"] / 1e9, "--out", folder / "run",
        ]  # fmt: skip
        # the cache of the first evaluation stays as it is; the others share one
        cache = _FOLDER / ("before" if name == "before" else "later") / "cache"
        environment = os.environ | {
            "KERNELBENCH_CACHE": str(cache), "KB_ATTACK": self._secret, "OMP_NUM_THREADS": "1",
            "TMPDIR": str(_TEMPORARY),
        }  # fmt: skip
        with open(folder / "output", "wb") as output:
            subprocess.run(
                list(map(str, command)), stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
            )
        with contextlib.suppress(RunError):
            return next((r for r in Run.load(folder / "run").latest() if r.solution["name"] == path.name), None)
        return None

    def _left(self, files: dict[str, tuple[int, int]], processes: set[Path]) -> list[str]:
        """Processes and files that are there when the program has ended, and were not before."""
        time.sleep(_SETTLES_S)
        _reap()
        found = []
        for folder in _processes() - processes:
            with contextlib.suppress(OSError):
                found.append(f"a process: {(folder / 'comm').read_text().strip()}")
        now = self._around.files()
        own = (f"{_FOLDER}/", "/proc/")
        changed = [path for path, state in now.items() if files.get(path) != state and not path.startswith(own)]
        found += [f"a file: {path}" for path in changed if "__pycache__" not in path]
        return found + [f"shared memory: {path}" for path in Path("/dev/shm").iterdir()]

    def _seen(self) -> list[str]:
        """Return where the secret is told that the program had no way to know."""
        secret = self._secret.encode()
        folder = _FOLDER / "attack"
        told = [path for path in (folder / "run").rglob("*") if path.is_file() and _contains(path, secret)]
        told += [folder / "output"] if _contains(folder / "output", secret) else []
        return [f"it read what is not its own, and told it in {path.name}" for path in told]

    def _earned(self, before: Result | None, result: Result | None, after: Result | None) -> list[str]:
        """Return what its record, and those of its twin, say beyond what is honest."""
        if result is not None:
            return unearned(before, result, after)
        output = (_FOLDER / "attack" / "output").read_text(encoding="utf-8", errors="replace")
        last = output.strip().splitlines()[-1:]
        return [f"the run has no record of it: {''.join(last)}", *unearned(before, None, after)]


def unearned(before: Result | None, result: Result | None, after: Result | None) -> list[str]:
    """Return what a program's ``result`` claims beyond its honest twin, evaluated ``before`` and ``after`` it."""
    if before is None or before.status is not Status.OK:
        return ["nothing can be said of its speed: its honest twin is not ok by itself"]
    gains = []
    if after is None or after.status is not Status.OK:
        gains.append(f"its honest twin is {after.status if after else 'without a record'} after it")
    honest = honest_speedup(before, after)
    if result is not None and result.status is Status.OK and sure_speedup(result) > GAIN * honest:
        gains.append(f"a speedup of {settled.speedup_text(result)}, where its honest twin has {honest:.3g}")
    return gains


def _processes() -> set[Path]:
    return set(Path("/proc").glob("[0-9]*"))


def _reap() -> None:
    """Take note of orphans that have ended: as the first process of the box this one is the parent of all."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _contains(path: Path, secret: bytes) -> bool:
    with open(path, "rb") as file:
        return secret in file.read(_SEARCHED_BYTES)


def main(argument: str) -> None:
    """Evaluate one program inside of a box, and print what it got as JSON."""
    asked = json.loads(argument)
    try:
        around = box.enter(Path(asked["place"]), 2 * asked["limits"]["memory_bytes"])
    except box.NoBox as error:
        print(json.dumps({"no_box": str(error)}))
        return
    attack = Attack(asked, around)
    print("\n" + json.dumps(attack.report()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
