"""Scaling with GPUs: the same built solutions on one GPU of a host and on several.

    python scripts/bench/scaling.py --solutions examples/inline_cuda --variants 128 --gpus 4,2,1 --json scaling.json

``--variants`` distinct copies of the solutions that build an extension are built by a
run on most GPUs. Then each number of GPUs evaluates all of them in a run of its own.
A run's time is that of the whole command. The rate is the sum of the GPUs' own, each from
the end of its first evaluation to that of its last: what a directory without end would
get, start-up left out. Where times and speedups of a problem differ between the runs, the
GPUs are in each other's way.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from fresh import evaluate
from tabulate import tabulate
from variants import buildable, write_variants

from harness.process.procfs import usable_cores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solutions", type=Path, required=True)
    parser.add_argument("--variants", type=int, default=128, help="distinct solutions to evaluate")
    parser.add_argument("--gpus", default="4,2,1", help="how many, run by run; the fewest set the scale")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    solutions = buildable(options.solutions, "cuda")
    if not solutions:
        sys.exit(f"no solution in {options.solutions} builds an extension for a GPU")
    counts = [int(count) for count in options.gpus.split(",")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_variants(solutions, options.variants, folder / "solutions")
        cold = _evaluate(folder, max(counts))
        print(json.dumps(cold), file=sys.stderr, flush=True)
        report = {"cores": usable_cores(), "variants": options.variants, "cold": cold, "runs": (runs := [])}
        for count in counts:
            runs.append(_evaluate(folder, count))
            print(json.dumps(runs[-1]), file=sys.stderr, flush=True)
            if options.json:
                options.json.write_text(json.dumps(report, indent=1) + "\n")
    scale = min(runs, key=lambda run: run["gpus"])
    rows = [
        (run["gpus"], run["seconds"], scale["seconds"] / run["seconds"], run["rate_an_hour"],
         run["rate_an_hour"] / scale["rate_an_hour"], run["evaluation_s"], run["ok"])
        for run in runs
    ]  # fmt: skip
    print(f"{options.variants} solutions, built before, on {runs[0]['device']}, {report['cores']} cores\n")
    columns = ("GPUs", "wall s", "times as fast", "rate, an hour", "times the rate", "one evaluation s", "ok")
    print(tabulate(rows, columns, floatfmt=".3g"))


def _evaluate(folder: Path, gpus: int) -> dict:
    devices = ",".join(f"cuda:{index}" for index in range(gpus))
    begin = time.monotonic()
    records = evaluate(folder / "solutions", "--device", devices, cache=folder / "cache")
    seconds = time.monotonic() - begin
    times: dict[str, list[dict]] = {}
    for record in records:
        if record["status"] == "ok":
            times.setdefault(record["problem"], []).append(record)
        else:
            print(f"{record['solution']['name']}: {record['status']}: {record['message']}", file=sys.stderr)
    return {
        "device": records[0]["device"]["name"], "gpus": len({record["device"]["uuid"] for record in records}),
        "seconds": round(seconds, 2), "rate_an_hour": round(_rate(records)),
        "ok": sum(record["status"] == "ok" for record in records),
        "judge_room_us": min(_judge_room_us(records), default=None),
        "evaluation_s": statistics.median(sum(record["stages_s"].values()) for record in records),
        "stages_s": {stage: round(statistics.mean(r["stages_s"].get(stage, 0.0) for r in records), 3)
                     for stage in records[0]["stages_s"]},
        "median_ms": {problem: _range([r["timing"]["median_ms"] for r in same]) for problem, same in times.items()},
        "speedup": {problem: _range([r["speedup"] for r in same]) for problem, same in times.items()},
    }  # fmt: skip


def _rate(records: list[dict]) -> float:
    """Evaluations an hour, once every GPU has ended its first."""
    ends: dict[str, list[float]] = {}
    for record in records:
        begin = datetime.datetime.fromisoformat(record["started"]).timestamp()
        ends.setdefault(record["device"]["uuid"], []).append(begin + sum(record["stages_s"].values()))
    return sum((len(of_one) - 1) / (max(of_one) - min(of_one)) for of_one in ends.values() if len(of_one) > 1) * 3600


def _judge_room_us(records: list[dict]) -> list[float]:
    """Return how far the judge's clock stayed under the limit of ``forged_clock``, where it was read."""
    room_us = []
    for timing in (record["timing"] for record in records if record["timing"]):
        if isinstance(clock := timing.get("cross_check"), dict):
            room_us.append(round(1e3 * (clock["allowed_ms"] - clock["call_ms"]), 3))
    return room_us


def _range(values: list[float]) -> list[float]:
    return [round(value, 5) for value in (min(values), statistics.median(values), max(values))]


if __name__ == "__main__":
    main()
