"""How evaluations grow with GPUs: the same solutions, built before, on one GPU of a host and on several.

    python scripts/bench/scaling.py --solutions examples/inline_cuda --variants 128 --gpus 1,2,4 --json scaling.json

``--variants`` distinct copies of the solutions that build an extension are built by a
run on most GPUs. Then each number of GPUs evaluates all of them in a run of its own.
A run's time is that of the whole command. Where times and speedups of a problem
differ between the runs, the GPUs are in each other's way.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tabulate import tabulate
from variants import buildable, write_variants

from harness.host import usable_cores

_ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solutions", type=Path, required=True)
    parser.add_argument("--variants", type=int, default=128, help="distinct solutions to evaluate")
    parser.add_argument("--gpus", default="1,2,4", help="how many, run by run; the first sets the scale")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    solutions = buildable(options.solutions, "cuda")
    if not solutions:
        sys.exit(f"no solution in {options.solutions} builds an extension for a GPU")
    counts = [int(count) for count in options.gpus.split(",")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_variants(solutions, options.variants, folder / "solutions")
        cold = _evaluate(folder, max(counts), "cold")
        print(json.dumps(cold), file=sys.stderr, flush=True)
        runs = []
        for count in counts:
            runs.append(_evaluate(folder, count, f"on-{count}"))
            print(json.dumps(runs[-1]), file=sys.stderr, flush=True)
    report = {"cores": usable_cores(), "variants": options.variants, "cold": cold, "runs": runs}
    rows = [
        (run["gpus"], run["seconds"], options.variants / run["seconds"] * 3600, runs[0]["seconds"] / run["seconds"],
         run["evaluation_s"], run["ok"])
        for run in runs
    ]  # fmt: skip
    print(f"{options.variants} solutions, built before, on {runs[0]['device']}, {report['cores']} cores\n")
    print(tabulate(rows, ("GPUs", "wall s", "an hour", "times as fast", "one evaluation s", "ok"), floatfmt=".3g"))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def _evaluate(folder: Path, gpus: int, run: str) -> dict:
    command = [sys.executable, "-m", "kernelbench", "eval", "--solutions", folder / "solutions", "--out", folder / run]
    command += ["--device", ",".join(f"cuda:{index}" for index in range(gpus))]
    environment = {**os.environ, "KERNELBENCH_CACHE": str(folder / "cache")}
    begin = time.monotonic()
    done = subprocess.run(list(map(str, command)), env=environment, cwd=_ROOT, capture_output=True, text=True)
    seconds = time.monotonic() - begin
    if done.returncode != 0:
        sys.exit(f"kb eval on {gpus} GPUs ended with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    records = [json.loads(line) for line in (folder / run / "results.jsonl").read_text().splitlines()]
    times: dict[str, list[dict]] = {}
    for record in (record for record in records if record["timing"]):
        times.setdefault(record["problem"], []).append(record)
    return {
        "device": records[0]["device"]["name"], "gpus": len({record["device"]["uuid"] for record in records}),
        "seconds": round(seconds, 2), "ok": sum(record["status"] == "ok" for record in records),
        "evaluation_s": statistics.median(sum(record["stages_s"].values()) for record in records),
        "median_ms": {problem: _range([r["timing"]["median_ms"] for r in same]) for problem, same in times.items()},
        "speedup": {problem: _range([r["speedup"] for r in same]) for problem, same in times.items()},
    }  # fmt: skip


def _range(values: list[float]) -> list[float]:
    return [round(value, 5) for value in (min(values), statistics.median(values), max(values))]


if __name__ == "__main__":
    main()
