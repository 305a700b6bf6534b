"""A against A: how often is a candidate that is the baseline called anything but a tie?

    python scripts/bench/timing_aa.py --problems "1/1,1/19,1/36,1/95,2/76" --samples 20 --json aa.json

Every pair is an evaluation with a worker process of its own. The interval should
contain 1 in at least 93 of 100, and 'faster' be claimed in at most 3.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import numpy as np
from fresh import evaluate_references
from tabulate import tabulate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", default="1/1,1/19,1/36,1/95,2/76")
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--workload")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = evaluate_references(options.problems, options.workload, options.samples)
    for result in results:
        if not result["timing"]:
            print(f"{result['problem']}: {result['status']}: {result['message'][:200]}")
    rows = [
        {"problem": result["problem"], "status": result["status"], "median_ms": result["timing"]["median_ms"],
         **{key: result["baselines"]["eager"][key] for key in ("speedup", "interval", "verdict")}}
        for result in results
        if result["timing"]
    ]  # fmt: skip
    table = []
    for problem in dict.fromkeys(row["problem"] for row in rows):
        same = [row for row in rows if row["problem"] == problem]
        ratios = [row["speedup"] for row in same]
        table.append({
            "problem": problem, "pairs": len(same), "median ms": float(np.median([r["median_ms"] for r in same])),
            "least": min(ratios), "median": float(np.median(ratios)), "most": max(ratios),
            "holds 1": sum(r["interval"][0] <= 1 <= r["interval"][1] for r in same),
            **Counter(r["verdict"] for r in same),
        })  # fmt: skip
    print(tabulate(table, headers="keys", floatfmt=".4g"))
    held = sum(row["interval"][0] <= 1 <= row["interval"][1] for row in rows)
    found = Counter(row["verdict"] for row in rows)
    print(f"\n{len(rows)} pairs: the interval holds 1 in {held}; {dict(found)}")
    if options.json:
        options.json.write_text(json.dumps({"pairs": len(rows), "held": held, "verdicts": found, "rows": rows}) + "\n")


if __name__ == "__main__":
    main()
