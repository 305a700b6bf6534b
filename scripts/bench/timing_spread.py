"""Ten fresh runs of the same candidates: how far apart are the medians?

    python scripts/bench/timing_spread.py --problems "1/1,1/19,1/36,1/95" --runs 10 --json spread.json

Each run is a ``kb eval`` process of its own. The spread is (max - min) / median of
the candidate's median over the runs, and the same of the speedup.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from fresh import evaluate_references
from tabulate import tabulate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", default="1/1,1/19,1/36,1/95")
    parser.add_argument("--workload")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    medians: dict[str, list[float]] = {}
    speedups: dict[str, list[float]] = {}
    for _ in range(options.runs):
        for result in evaluate_references(options.problems, options.workload):
            if result["timing"]:
                medians.setdefault(result["problem"], []).append(result["timing"]["median_ms"])
                speedups.setdefault(result["problem"], []).append(result["speedup"])
    rows = [
        {"problem": problem, "runs": len(times), "median us": float(np.median(times)) * 1e3,
         "spread %": 100 * _spread(times), "spread of the speedup %": 100 * _spread(speedups[problem])}
        for problem, times in medians.items()
    ]  # fmt: skip
    print(tabulate(rows, headers="keys", floatfmt=".4g"))
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "medians_ms": medians, "speedups": speedups}) + "\n")


def _spread(values: list[float]) -> float:
    return (max(values) - min(values)) / float(np.median(values))


if __name__ == "__main__":
    main()
