"""Many hostile candidates in a row: is the machine afterwards as it was before?

    python scripts/bench/hostile.py --count 500 --json hostile.json

Copies of the red team's programs that harm or overload whoever runs them, no two
alike, evaluated by one `kb eval`. Before and after, with all of it ended: processes,
files in /dev/shm and in the folder of temporary files, shared memory, free disk, and
on a GPU its used memory and whether it still computes right. Exit status 1 where
something is left, or where a candidate has no result. Ctrl-C ends it early, and is
reported: what was evaluated until then must leave nothing behind either.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tabulate import tabulate

from harness.solution.discover import Solution, read_solution
from kernelbench.cli import INTERRUPTED
from kernelbench.redteam.catalogue import EXPLOITS, files

_ROOT = Path(__file__).resolve().parents[2]
_HARMFUL = {14, 20, 23, 40, 41, 42, 43, 44, 45, 46}  # classes
_LEFT_OUT = {"23_slows_the_baseline.py"}  # slows nothing but its own process
_SETTLES_S = 3
_MEMORY_TOLERANCE_BYTES = 64 << 20
_DISK_TOLERANCE_BYTES = 64 << 20
_DEVICE_TOLERANCE_BYTES = 64 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--device", default="cpu", help="cpu, or GPUs by name: cuda:0,cuda:1")
    parser.add_argument("--timeout", type=float, default=2, help="seconds that a step of a candidate may take")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    before = state(options.device)
    with tempfile.TemporaryDirectory() as folder:
        report = _evaluate(Path(folder), options)
    time.sleep(_SETTLES_S)
    after = state(options.device)
    report["faults"] += _differences(before, after)
    print(tabulate(sorted(report["statuses"].items(), key=lambda item: -item[1]), ("status", "candidates")))
    slowest = ", ".join(f"{name} {seconds} s" for name, seconds in list(report["seconds_by_program"].items())[:4])
    print(f"the longest: {slowest}")
    ended = "interrupted after" if report["interrupted"] else "in"
    print(f"{report['results']} results {ended} {report['seconds']} s; left behind, removed: {report['left_behind']}")
    print("\n".join(report["faults"]) or "the machine is as it was before")
    if options.json:
        options.json.write_text(json.dumps(report | {"before": before, "after": after}, indent=2) + "\n")
    sys.exit(bool(report["faults"]))


def _evaluate(folder: Path, options: argparse.Namespace) -> dict:
    programs = _programs(options.device)
    _write(folder / "solutions", programs, options.count)
    temporary = folder / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary), "KERNELBENCH_CACHE": str(folder / "cache")}
    command = [sys.executable, "-m", "kernelbench", "eval", "--solutions", folder / "solutions"]
    command += ["--out", folder / "run", "--device", options.device, "--workload", "small"]
    command += ["--timeout", options.timeout, "--memory", 2]
    begin = time.perf_counter()
    status, output = _run(list(map(str, command)), environment)
    records = [json.loads(line) for line in (folder / "run" / "results.jsonl").read_text().splitlines()]
    left = Counter()
    for record in records:
        left.update(record["conditions"].get("left_behind", {}))
    interrupted = status == INTERRUPTED
    faults = [] if interrupted or status == 0 else [f"kb eval ended with {status}: {output[-2000:]}"]
    if len(records) != options.count and not interrupted:
        faults.append(f"{options.count} candidates, {len(records)} results: {output[-2000:]}")
    faults += [f"left in the folder of temporary files: {path}" for path in _leftovers(temporary)]
    return {
        "results": len(records),
        "interrupted": interrupted,
        "seconds": round(time.perf_counter() - begin, 1),
        "statuses": dict(Counter(record["status"] for record in records)),
        "left_behind": dict(left),
        "seconds_by_program": _seconds(records, programs),
        "faults": faults,
    }


def _run(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Exit status and what was printed; a Ctrl-C reaches the command too, which then ends by itself."""
    with subprocess.Popen(
        command, env=environment, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                output, _ = process.communicate()
                return process.returncode, output


def _programs(device: str) -> list[Solution]:
    kind = device.partition(":")[0]
    programs = [read_solution(path) for path in files(EXPLOITS, _HARMFUL) if path.name not in _LEFT_OUT]
    return [program for program in programs if program.runs_on(kind)]


def _write(folder: Path, programs: list[Solution], count: int) -> None:
    """Write so many candidates; the sample's number tells the program."""
    for number, program in zip(range(count), itertools.cycle(programs)):
        source = program.path.read_text().replace("kb:", f"hostile {number}, was kb:", 1)
        problem = program.problem
        target = folder / f"level{problem.level}" / f"{problem.number}_s{number}{program.path.suffix}"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source)


def _seconds(records: list[dict], programs: list[Solution]) -> dict[str, float]:
    """Median time of an evaluation, by program, the longest first."""
    found: dict[str, list[float]] = {}
    for record in records:
        program = programs[record["solution"]["sample"] % len(programs)]
        found.setdefault(program.path.name, []).append(record["seconds"])
    medians = {name: round(statistics.median(seconds), 2) for name, seconds in found.items()}
    return dict(sorted(medians.items(), key=lambda item: -item[1]))


def _leftovers(temporary: Path) -> list[str]:
    """Files that outlived the run, except the locks of devices."""
    return [str(path) for path in temporary.rglob("*") if path.is_file() and not path.name.startswith("kernelbench-")]


def state(device: str) -> dict:
    """Return what hostile candidates could change, of this user's."""
    found = {
        "processes": sorted(_commands()),
        # those that the programs write: other programs of this user's have files there too
        "shared_memory": sorted(name for name in os.listdir("/dev/shm") if name.startswith("kb-redteam")),
        "segments": Path("/proc/sysvipc/shm").read_text(encoding="utf-8").splitlines()[1:],
        "temporary": sorted(name for name in os.listdir(tempfile.gettempdir()) if name.startswith("kb-")),
        "shared_memory_bytes": _shared_memory_bytes(),
        "free_disk_bytes": shutil.disk_usage(tempfile.gettempdir()).free,
    }
    return found | {name: _gpu(name) for name in device.split(",") if name.startswith("cuda")}


def _commands() -> list[str]:
    """Return command lines of this user's processes that candidates start, as far as they can be told."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if (folder / "status").stat().st_uid == os.getuid() and ("42.42" in command or "while :" in command):
                found.append(command)
        except OSError:
            continue
    return found


def _shared_memory_bytes() -> int:
    """Memory that outlives processes: in tmpfs, memory files and segments."""
    with open("/proc/meminfo", encoding="utf-8") as meminfo:
        return next(int(line.split()[1]) * 1024 for line in meminfo if line.startswith("Shmem:"))


def _gpu(device: str) -> dict:
    """Run in a process of its own, so that this one holds no context."""
    code = (
        "import torch, json; a = torch.ones(512, 512, device='%s'); right = bool((a @ a == 512).all());"
        "free, total = torch.cuda.mem_get_info('%s'); print(json.dumps({'used': total - free, 'right': right}))"
    )
    done = subprocess.run([sys.executable, "-c", code % (device, device)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def _differences(before: dict, after: dict) -> list[str]:
    found = []
    for what in ("processes", "shared_memory", "segments", "temporary"):
        if new := sorted(set(after[what]) - set(before[what])):
            found.append(f"{what}: {', '.join(new)}")
    if after["shared_memory_bytes"] - before["shared_memory_bytes"] > _MEMORY_TOLERANCE_BYTES:
        found.append("more memory is taken by nobody")
    if before["free_disk_bytes"] - after["free_disk_bytes"] > _DISK_TOLERANCE_BYTES:
        found.append("less disk is free")
    for name in (name for name in before if name.startswith("cuda")):
        if not after[name]["right"] or after[name]["used"] > before[name]["used"] + _DEVICE_TOLERANCE_BYTES:
            found.append(f"{name}: {before[name]} before, {after[name]} after")
    return found


if __name__ == "__main__":
    main()
