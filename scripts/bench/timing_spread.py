"""Ten fresh runs of the same candidates: how far apart are the medians?

    python scripts/bench/timing_spread.py --problems "1/1,1/19,1/36,1/95" --runs 10 --json spread.json
    python scripts/bench/timing_spread.py --relu 1,3,8,16,32 --runs 10    # one kernel, of so many Mi floats

Each run is a ``kb eval`` process of its own. The spread is (max - min) / median of
the candidate's median over the runs, and the same of the speedup. A claim is a verdict
of faster or slower, and none should be made: the candidates are their own baselines.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from fresh import evaluate_references, evaluate_relus
from tabulate import tabulate

_PROBLEMS = "1/1,1/19,1/36,1/95"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", help=f"references; without it and --relu, {_PROBLEMS}")
    parser.add_argument("--workload")
    parser.add_argument("--relu", metavar="MI,...", help="elements, in Mi, of a kernel that only reads and writes")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: dict[str, list[dict]] = {}
    for _ in range(options.runs):
        results = evaluate_relus(options.relu.split(",")) if options.relu else []
        if options.problems or not options.relu:
            results += evaluate_references(options.problems or _PROBLEMS, options.workload)
        for result in results:
            if result["timing"]:
                found.setdefault(f"{result['problem']} {result['problem_name']}", []).append(result)
    rows = [_row(name, results) for name, results in found.items()]
    print(tabulate(rows, headers="keys", floatfmt=".4g"))
    if options.json:
        times = {name: [result["timing"]["median_ms"] for result in results] for name, results in found.items()}
        options.json.write_text(json.dumps({"rows": rows, "medians_ms": times}) + "\n")


def _row(name: str, results: list[dict]) -> dict:
    times = [result["timing"]["median_ms"] for result in results]
    verdicts = [result["baselines"]["eager"]["verdict"] for result in results]
    return {
        "problem": name, "runs": len(results), "median us": float(np.median(times)) * 1e3,
        "launches": results[0]["timing"].get("profile", {}).get("launches"), "spread %": 100 * _spread(times),
        "spread of the speedup %": 100 * _spread([result["speedup"] for result in results]),
        "claims": sum(verdict in ("faster", "slower") for verdict in verdicts),
    }  # fmt: skip


def _spread(values: list[float]) -> float:
    return (max(values) - min(values)) / float(np.median(values))


if __name__ == "__main__":
    main()
