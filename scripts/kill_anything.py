"""Kill one process of `kb eval` at a random moment: does any result change, and does `--resume` complete the run?

    python scripts/kill_anything.py --moments 30 --json kills.json

Evaluates a few small candidates on the CPU, undisturbed. Then, for each moment, does the
same with an empty build cache and sends SIGKILL to one process: the main process, the build server, a judge, the
judge's fork server, a worker that builds or a worker that runs a candidate, in turn. No stored
result may have another status than in the undisturbed run. `--resume` then has to complete the run.
Nothing may be left: no process, no temporary folder. Exit status 1 where something is not as it should be.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tabulate import tabulate

_ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(_ROOT))

from harness.process.procfs import descendants  # noqa: E402

ROLES = ("main", "build server", "judge", "fork server", "build worker", "worker")
_END_S = 300.0  # of one run
_GONE_S = 15.0  # until nothing of a run whose main process was killed is there any more
_BUILD_SERVER, _JUDGE = b"harness.worker.forkserver import", b"harness.judge.main import"
_MODEL = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return {body}\n"
_CPP = """#include <cstddef>
extern "C" void solution(const float* x, float* y, size_t batch_size, size_t dim) {{
    for (size_t i = 0; i < batch_size * dim; ++i) y[i] = x[i] > 0 ? x[i] : {zero};
}}
"""
SOURCES = {
    "19_s0.cpp": _CPP.format(zero="0"),
    "19_s1.cpp": _CPP.format(zero="zero"),
    "19_s2.cpp": _CPP.format(zero="1"),
    "19_s3.py": _MODEL.format(body="x.clamp(min=0)"),
    "19_s4.py": _MODEL.format(body="x"),
    "19_s5.py": _MODEL.format(body="x[0]"),
    "19_s6.py": _MODEL.format(body="(__import__('ctypes').string_at(0), x)[1]"),
    "19_s7.py": _MODEL.format(body="(__import__('os').kill(__import__('os').getpid(), 9), x)[1]"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        undisturbed = Evaluation(Path(folder, "undisturbed"))
        begin = time.monotonic()
        undisturbed.run()
        seconds = time.monotonic() - begin
        expected = undisturbed.statuses()
        print(f"undisturbed: {seconds:.1f} s, {expected}", flush=True)
        reports = []
        for number in range(options.moments):
            role, delay_s, hit = ROLES[number % len(ROLES)], seconds, False
            while not hit:  # a moment after the last such process is drawn again, earlier
                delay_s = chance.uniform(0, delay_s)
                place = Path(tempfile.mkdtemp(dir=folder))
                reports.append(disturbed(place, role, lambda s=delay_s: time.sleep(s), expected))
                hit, faults = reports[-1]["hit"], reports[-1]["faults"]
                missed = "" if hit else " (too late)"
                print(f"{number}: {role} after {delay_s:.2f} s{missed}: {faults or 'as it should be'}", flush=True)
    print(table(reports))
    if options.json:
        options.json.write_text(json.dumps({"expected": expected, "moments": reports}, indent=2) + "\n")
    sys.exit(1 if any(report["faults"] for report in reports) else 0)


def disturbed(folder: Path, role: str, moment: Callable[[], None], expected: dict[str, str]) -> dict:
    """One run in which a process of a role is killed after a moment, then its completion; what is wrong with them."""
    evaluation = Evaluation(folder)
    process = evaluation.start()
    moment()
    family = set(descendants(process.pid))
    hit = kill(process, role)
    family |= set(descendants(process.pid)) - {process.pid}
    status = process.wait(_END_S)
    faults = evaluation.left(family)
    stored = evaluation.statuses()
    faults += [f"{name}: {was}, not {expected[name]}" for name, was in stored.items() if was != expected[name]]
    if role != "main" and status == 0 and stored != expected:
        faults.append(f"exit status 0 with {len(stored)} of {len(expected)} results")
    completed = evaluation.run("--resume")
    if completed or evaluation.statuses() != expected:
        faults.append(f"--resume ended with {completed} and {evaluation.statuses()}")
    return {"role": role, "hit": hit, "exit_status": status, "stored": len(stored), "faults": faults}


class Evaluation:
    """`kb eval` of the candidates in a folder, with temporary files and a build cache of its own."""

    def __init__(self, folder: Path):
        self._solutions, self._out, self._temporary = folder / "level1", folder / "run", folder / "tmp"
        for path in (self._solutions, self._temporary):
            path.mkdir(parents=True)
        for name, source in SOURCES.items():
            (self._solutions / name).write_text(source)
        self._environment = {**os.environ, "TMPDIR": str(self._temporary), "KERNELBENCH_CACHE": str(folder / "cache")}

    def start(self, *more: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "kernelbench", "eval", "--solutions", self._solutions, "--device", "cpu"]
        return subprocess.Popen(
            [*map(str, command), "--out", str(self._out), "--timeout", "20", *more],
            env=self._environment, cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def run(self, *more: str) -> int:
        return self.start(*more).wait(_END_S)

    def statuses(self) -> dict[str, str]:
        """Return results by solution, of the whole lines of the log; two of one solution are a fault."""
        log = self._out / "results.jsonl"
        lines = log.read_bytes().rpartition(b"\n")[0].splitlines() if log.exists() else []
        found: dict[str, str] = {}
        for record in map(json.loads, lines):
            name = record["solution"]["name"]
            found[name] = record["status"] if name not in found else f"{found[name]} and {record['status']}"
        return dict(sorted(found.items()))

    def left(self, family: set[int]) -> list[str]:
        """Processes of a family and temporary folders that are still there after a while."""
        deadline = time.monotonic() + _GONE_S
        while time.monotonic() < deadline:
            running = [pid for pid in family if _command(pid)]
            folders = [path.name for path in self._temporary.iterdir()]
            if not running and not folders:
                return []
            time.sleep(0.1)
        return [f"still running: {running}; left in TMPDIR: {folders}"]


def kill(process: subprocess.Popen, role: str) -> bool:
    """End a process of a role of a run as soon as there is one; False if none came any more."""
    while process.poll() is None:
        if found := members(process.pid)[role]:
            os.kill(random.choice(found), signal.SIGKILL)
            return True
        time.sleep(0.001)
    return False


def members(pid: int) -> dict[str, list[int]]:
    """The processes of a run by their roles."""
    found: dict[str, list[int]] = {role: [] for role in ROLES}
    found["main"].append(pid)
    for child in _children(pid):
        command = _command(child)
        if _BUILD_SERVER in command:
            found["build server"].append(child)
            found["build worker"] += _children(child)
        elif _JUDGE in command:
            found["judge"].append(child)
            for server in _children(child):
                found["fork server"].append(server)
                found["worker"] += _children(server)
    return found


def _children(pid: int) -> list[int]:
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="utf-8") as children:
                found += map(int, children.read().split())
    except OSError:
        pass
    return found


def _command(pid: int) -> bytes:
    """Return its command line; empty for a process that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def table(reports: list[dict]) -> str:
    rows = []
    for role in ROLES:
        of_role = [report for report in reports if report["role"] == role and report["hit"]]
        stored = [report["stored"] for report in of_role]
        rows.append((role, len(of_role), f"{min(stored, default=0)} to {max(stored, default=0)}",
                     sum(bool(report["faults"]) for report in of_role)))  # fmt: skip
    lines = [f"{report['role']}: {fault}" for report in reports for fault in report["faults"]]
    heads = ("killed", "moments", "results stored then", "with faults")
    return "\n\n".join([tabulate(rows, heads), "\n".join(["FAULTS", *lines]) if lines else "no faults"])


if __name__ == "__main__":
    main()
