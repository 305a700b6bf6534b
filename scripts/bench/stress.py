"""Many small candidates, a tenth of them bad: does every one end in one status, and does nothing leak?

    python scripts/bench/stress.py --count 1000 --json stress.json

Writes ``--count`` candidates for one small problem on the CPU, evaluates them with
``kb eval`` in a process of its own and watches it from outside. A tenth hangs,
crashes, hogs memory, fills the disk, floods its output or leaves processes behind; the rest is right,
wrong, or C++ that is compiled. Prints statuses by kind, peak memory, the growth of
memory and of disk between the first and the last third of the run, and what is
left running. Exit status 1 where something is not as it should be.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from tabulate import tabulate

_ROOT = Path(__file__).resolve().parents[2]
_EVERY_S = 1.0
_FLAT_MEMORY_BYTES = 200 << 20  # the judge's caches and allocators settle; a leak goes on
_FLAT_DISK_BYTES = 50 << 20
_MODEL = "import torch\n{head}\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        {body}\n"
_CPP = """#include <cstddef>
extern "C" void solution(const float* x, float* y, size_t batch_size, size_t dim) {{
    for (size_t i = 0; i < batch_size * dim; ++i) y[i] = x[i] > 0 ? x[i] : {zero};
}}
"""
_RIGHT = "return x.clamp(min=0)"
# kind -> source, and the statuses that it may end in
_GOOD = {
    "right": (_MODEL.format(head="", body=_RIGHT), {"ok"}),
    "wrong": (_MODEL.format(head="", body="return x"), {"wrong_value"}),
    "C++": (_CPP.format(zero="0"), {"ok"}),
    "C++, refused": (_CPP.format(zero="zero"), {"build_error"}),
}
_BAD = {
    "hangs": (_MODEL.format(head="", body="while True: pass"), {"timeout"}),
    "sleeps at import": (_MODEL.format(head="import time; time.sleep(1000)", body=_RIGHT), {"timeout"}),
    "crashes": (_MODEL.format(head="import ctypes", body="ctypes.string_at(0)"), {"crashed"}),
    "exits": (_MODEL.format(head="import os", body="os._exit(0)"), {"crashed"}),
    "hogs memory": (
        _MODEL.format(head="hog = []", body="while True: hog.append(bytearray(b'x') * (64 << 20))"),
        {"out_of_memory"},
    ),
    "litters": (
        _MODEL.format(head="open('litter', 'wb').write(b'x' * (64 << 20))", body=_RIGHT),
        {"ok"},
    ),
    "floods its output": (_MODEL.format(head="", body="print('x' * 10_000_000); " + _RIGHT), {"ok"}),
    "leaves processes": (
        _MODEL.format(
            head="import subprocess\n[subprocess.Popen(['sleep', '9999'], start_new_session=n) for n in (0, 1)]",
            body=_RIGHT,
        ),
        {"ok"},
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--timeout", type=float, default=5, help="seconds that a step of a candidate may take")
    parser.add_argument("--memory", type=float, default=1, help="GB that a candidate may take")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = _stress(Path(folder), options)
    print(_table(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    sys.exit(1 if report["faults"] else 0)


def _stress(folder: Path, options: argparse.Namespace) -> dict:
    kinds = _write(folder / "solutions", options.count)
    temporary, run = folder / "tmp", folder / "run"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary), "KERNELBENCH_CACHE": str(folder / "cache")}
    command = [sys.executable, "-m", "kernelbench", "eval", "--solutions", folder / "solutions", "--device", "cpu"]
    command += ["--out", run, "--timeout", options.timeout, "--memory", options.memory]
    begin = time.perf_counter()
    with open(folder / "output", "w", encoding="utf-8") as output:
        process = subprocess.Popen(
            list(map(str, command)), env=environment, cwd=_ROOT, stdout=output, stderr=subprocess.STDOUT
        )
        watch = _Watch(process.pid, temporary)
        code = process.wait()
    seconds = time.perf_counter() - begin
    samples, left = watch.end()
    records = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    report = {
        "candidates": options.count,
        "seconds": round(seconds, 1),
        "exit_status": code,
        "statuses": _statuses(records, kinds),
        "memory_bytes": _growth([memory for memory, _ in samples]),
        "disk_bytes": _growth([disk for _, disk in samples]) | {"left": _disk_bytes(temporary)},
        "left_running": left,
    }
    report["faults"] = _faults(report, records, kinds)
    if code != 0:
        report["faults"].append((folder / "output").read_text()[-2000:])
    return report


def _write(folder: Path, count: int) -> dict[str, str]:
    """Name -> kind of so many candidates, every tenth a bad one, no two alike."""
    (folder / "level1").mkdir(parents=True)
    kinds = {}
    for number in range(count):
        pool, index = (_BAD, number // 10) if number % 10 == 9 else (_GOOD, number)
        kind = list(pool)[index % len(pool)]
        mark, suffix = ("//", ".cpp") if kind.startswith("C++") else ("#", ".py")
        name = f"level1/19_s{number}{suffix}"
        (folder / name).write_text(f"{mark} candidate {number}\n{pool[kind][0]}")
        kinds[name] = kind
    return kinds


class _Watch:
    """Samples memory and disk of a run, and remembers every process that descends from it."""

    def __init__(self, pid: int, folder: Path):
        self._pid, self._folder = pid, folder
        self._samples: list[tuple[int, int]] = []
        self._seen: dict[int, str] = {}  # process -> when it started, because numbers are used again
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_S):
            processes = _descendants(self._pid)
            self._seen |= {pid: started for pid in processes if (started := _started(pid))}
            self._samples.append((sum(map(_resident_bytes, processes)), _disk_bytes(self._folder)))

    def end(self) -> tuple[list[tuple[int, int]], list[int]]:
        self._stop.set()
        self._thread.join()
        time.sleep(2)  # what was killed goes
        return self._samples, [pid for pid, started in self._seen.items() if _started(pid) == started]


def _descendants(pid: int) -> list[int]:
    found = [pid]
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="utf-8") as children:
                for child in children.read().split():
                    found += _descendants(int(child))
    except OSError:
        pass
    return found


def _started(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def _resident_bytes(pid: int) -> int:
    """Return what the process holds alone: pages that a fork shares are counted once, by their share."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as rollup:
            return next(int(line.split()[1]) * 1024 for line in rollup if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def _disk_bytes(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size
            except OSError:
                pass
    return total


def _growth(samples: list[int]) -> dict[str, int]:
    """Peak, and the lowest of the last third less the lowest of the second: what never came back."""
    third = max(1, len(samples) // 3)
    middle, last = samples[third : 2 * third] or samples, samples[-third:]
    return {"peak": max(samples, default=0), "growth": min(last, default=0) - min(middle, default=0)}


def _statuses(records: list[dict], kinds: dict[str, str]) -> dict[str, dict[str, int]]:
    by_kind: dict[str, Counter] = {}
    for record in records:
        by_kind.setdefault(kinds[record["solution"]["name"]], Counter())[record["status"]] += 1
    return {kind: dict(by_kind[kind]) for kind in (*_GOOD, *_BAD) if kind in by_kind}


def _faults(report: dict, records: list[dict], kinds: dict[str, str]) -> list[str]:
    faults = []
    for name, count in Counter([*kinds, *(record["solution"]["name"] for record in records)]).items():
        if count != 2:
            faults.append(f"{name} ({kinds[name]}) has {count - 1} results")
    for kind, statuses in report["statuses"].items():
        allowed = (_GOOD | _BAD)[kind][1]
        faults += [f"'{kind}' ended in {status} {n} times" for status, n in statuses.items() if status not in allowed]
    if report["memory_bytes"]["growth"] > _FLAT_MEMORY_BYTES:
        faults.append("memory grows")
    if report["disk_bytes"]["growth"] > _FLAT_DISK_BYTES or report["disk_bytes"]["left"] > 1 << 20:
        faults.append("disk grows")
    if report["left_running"]:
        faults.append(f"still running: {report['left_running']}")
    return faults


def _table(report: dict) -> str:
    rows = [(kind, ", ".join(f"{n} {status}" for status, n in s.items())) for kind, s in report["statuses"].items()]
    memory, disk = report["memory_bytes"], report["disk_bytes"]
    return "\n\n".join(
        [
            tabulate(rows, ("candidates", "statuses")),
            f"{report['candidates']} candidates in {report['seconds']} s; exit status {report['exit_status']}\n"
            f"memory: peak {memory['peak'] / 1e9:.2f} GB, growth {memory['growth'] / 1e6:+.0f} MB\n"
            f"temporary files: peak {disk['peak'] / 1e6:.0f} MB, growth {disk['growth'] / 1e6:+.0f} MB, "
            f"left {disk['left'] / 1e6:.1f} MB\n"
            f"processes left: {len(report['left_running'])}",
            "\n".join(["FAULTS", *report["faults"]]) if report["faults"] else "no faults",
        ]
    )


if __name__ == "__main__":
    main()
