"""Evaluations an hour: this harness against others, on the same solutions, in one run.

    python scripts/bench/throughput.py --solutions examples/inline_cuda --variants 32 --json throughput.json
    python scripts/bench/throughput.py ... --kernelbench ../KernelBench      # compare with a checkout of it
    python scripts/bench/throughput.py ... --device cuda:0,cuda:1 --only ours   # more GPUs

Takes the solutions of a directory that build an extension, as ``--variants`` distinct
copies that no cache knows. Each way evaluates all of them once: this harness with an
empty cache, and again with what it built; stock ``load_inline`` in a plain loop;
KernelBench in its fastest mode (all builds on the CPU first, side by side) and in its
default one. A rival that would take too long ends after ``--rival-seconds``; its rate is of
what it evaluated, until the last of them. The overhead is this harness's: seconds of an evaluation besides
building, calling and comparing, from the records.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from fresh import evaluate
from tabulate import tabulate
from variants import buildable, write_variants

from harness.process.procfs import usable_cores
from kernelbench import suite

_ROOT = Path(__file__).resolve().parents[2]
_RIVALS = Path(__file__).parent / "rivals.py"
_RIVAL_WAYS = {
    "loop": "load_inline in a loop",
    "kernelbench": "KernelBench, pre-compiled",
    "kernelbench-default": "KernelBench, default",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solutions", type=Path, required=True)
    parser.add_argument("--variants", type=int, default=32, help="distinct solutions to evaluate")
    parser.add_argument("--device", default="cuda", help="as for kb eval; the plain loop takes the first")
    parser.add_argument("--workload", default=None, help="without it, each problem's default for the device")
    parser.add_argument("--kernelbench", type=Path, help="a checkout of KernelBench, with what it needs installed")
    parser.add_argument("--only", choices=["ours", *_RIVAL_WAYS], help="nobody else, or this rival alone")
    parser.add_argument("--rival-seconds", type=float, help="after which a rival is ended")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    kind = options.device.partition(":")[0]
    solutions = buildable(options.solutions, kind)
    if not solutions:
        sys.exit(f"no solution in {options.solutions} builds an extension for a {kind} device")
    with tempfile.TemporaryDirectory() as folder:
        report = _compare(solutions, options, kind, Path(folder))
    print(_table(report))


def _compare(solutions, options: argparse.Namespace, kind: str, folder: Path) -> dict:
    variants = write_variants(solutions, options.variants, folder / "solutions")
    jobs = folder / "jobs.json"
    jobs.write_text(json.dumps([_job(variant, options.workload, kind) for variant in variants]))
    ways = dict.fromkeys(("ours, cold cache", "ours, built before"), lambda: _ours(options, folder))
    rivals = {"loop": ["loop", jobs, "--device", options.device.split(",")[0]]}
    if options.kernelbench:
        theirs = ["kernelbench", jobs, "--checkout", options.kernelbench, "--gpus", _gpus(options.device)]
        rivals |= {"kernelbench": [*theirs, "--precompile"], "kernelbench-default": theirs}
    limit = ["--seconds", options.rival_seconds] if options.rival_seconds else []
    for rival, arguments in rivals.items():
        if options.only in (None, rival):
            ways[_RIVAL_WAYS[rival]] = lambda arguments=arguments: _rival(folder, *arguments, *limit)
    report = {"device": options.device, "cores": usable_cores(), "variants": len(variants), "ways": {}}
    for name, way in ways.items():
        print(f"{name} ...", file=sys.stderr)
        with _Busy(kind) as busy:
            begin = time.perf_counter()
            figures = way()
            seconds = time.perf_counter() - begin
        figures |= {
            "seconds": round(seconds, 2),
            "busy": busy.share(),
            "an_hour": round(figures["evaluated"] / figures.get("cut_s", seconds) * 3600),
        }
        report["ways"][name] = figures
        print(json.dumps(figures), file=sys.stderr, flush=True)
        if options.json:
            options.json.write_text(json.dumps(report, indent=2) + "\n")
    return report


def _job(solution, workload: str | None, kind: str) -> dict:
    from harness.problem.module import load_problem

    problem = load_problem(suite.find(str(solution.problem))[0])
    chosen = problem.workload_for(workload, kind)
    return {"problem": str(problem.path), "solution": str(solution.path), "sizes": chosen.sizes}


def _ours(options: argparse.Namespace, folder: Path) -> dict:
    workload = ["--workload", options.workload] if options.workload else []
    records = evaluate(folder / "solutions", "--device", options.device, *workload, cache=folder / "cache")
    timed = [record for record in records if record["timing"]]
    return {
        "build_seconds": [record["build"]["seconds"] for record in records if record["build"]],
        "evaluated": len(records),
        "right": sum(record["status"] == "ok" for record in records),
        "overhead_s": _median([overhead_seconds(record) for record in timed]),
    }


def overhead_seconds(record: dict) -> float:
    """Return what an evaluation took besides its build, its checks and its timing."""
    return record["seconds"] - record["build"]["seconds"] - record["stages_s"]["check"] - record["stages_s"]["time"]


def _rival(folder: Path, *arguments) -> dict:
    environment = {**os.environ, "TORCH_EXTENSIONS_DIR": str(folder / "extensions")}
    command = list(map(str, [sys.executable, _RIVALS, *arguments]))
    done = subprocess.run(command, env=environment, cwd=_ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _gpus(device: str) -> int:
    if device == "cuda:all":
        import torch

        return torch.cuda.device_count()
    return len(device.split(","))


class _Busy:
    """The share of time in which a kernel ran, as the driver counts it, over all GPUs; nothing on a CPU."""

    def __init__(self, kind: str):
        self._kind = kind
        self._samples: list[float] = []

    def __enter__(self) -> _Busy:
        if self._kind == "cuda":
            query = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "200"]
            self._process = subprocess.Popen(query, stdout=subprocess.PIPE, text=True)
            self._thread = threading.Thread(target=self._read)
            self._thread.start()
        return self

    def _read(self) -> None:
        self._samples += [float(line) for line in self._process.stdout if line.strip().isdigit()]

    def __exit__(self, *_: object) -> None:
        if self._kind == "cuda":
            self._process.terminate()
            self._thread.join()

    def share(self) -> float | None:
        return round(statistics.mean(self._samples) / 100, 3) if self._samples else None


def _median(values: list[float]) -> float | None:
    return round(statistics.median(values), 3) if values else None


def _table(report: dict) -> str:
    ours = next(iter(report["ways"].values()))["an_hour"]
    rows = [
        (name, way["seconds"], sum(way["build_seconds"]), way["busy"], way["an_hour"], ours / way["an_hour"],
         way["evaluated"], way["right"], way.get("overhead_s"))
        for name, way in report["ways"].items()
    ]  # fmt: skip
    head = f"{report['variants']} distinct solutions on {report['device']}, {report['cores']} cores"
    columns = ("way", "wall s", "builds s", "busy", "an hour", "times ours", "evaluated", "right", "overhead s")
    return f"{head}\n\n" + tabulate(rows, columns, floatfmt=".3g", missingval="-")


if __name__ == "__main__":
    main()
