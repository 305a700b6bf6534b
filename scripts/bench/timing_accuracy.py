"""Does the reported device time agree with CUPTI's, and with ncu's?

    python scripts/bench/timing_accuracy.py --problems level1 --workload small --workload full --json accuracy.json

Evaluates the reference of each problem against itself and compares, in the same
worker, the median by events with the span that CUPTI saw. Prints the median and
the 90th percentile of the disagreement for times from 5 to 20 us and over 20 us,
and which results have no such times, and why.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from fresh import evaluate_references
from tabulate import tabulate

_BANDS = {"5-20 us": (0.005, 0.02), "over 20 us": (0.02, float("inf"))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", default="level1")
    parser.add_argument("--workload", action="append", help="several are possible; without it, full")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows, left_out = [], []
    for workload in options.workload or ["full"]:
        for result in evaluate_references(options.problems, workload=workload):
            timing = result["timing"] or {}
            if timing.get("profile") and timing["queue_full"]:
                rows.append(_row(result, timing, workload))
            else:
                why = f"{result['status']} {result['message'][:200]}" if not timing.get("profile") else "queue not full"
                left_out.append(f"{result['problem']} {workload}: {why}")
    print(tabulate(sorted(rows, key=lambda row: -row["off"])[:10], headers="keys", floatfmt=".4g"))
    bands = {name: _band(rows, *limits) for name, limits in _BANDS.items()}
    print(tabulate([{"band": name, **found} for name, found in bands.items()], headers="keys", floatfmt=".3g"))
    print("\n".join(left_out))
    if options.json:
        options.json.write_text(json.dumps({"bands": bands, "rows": rows, "left_out": left_out}, indent=1) + "\n")


def _row(result: dict, timing: dict, workload: str) -> dict:
    cupti_ms, events_ms = timing["profile"]["span_ms"], timing["median_ms"]
    judge = timing["cross_check"]["call_ms"] if isinstance(timing["cross_check"], dict) else None
    return {
        "problem": result["problem"], "workload": workload, "status": result["status"],
        "events_ms": events_ms, "cupti_ms": cupti_ms,
        "off": abs(events_ms / cupti_ms - 1) if cupti_ms else None, "judge_ms": judge,
        "launches": timing["profile"]["launches"], "time_s": result["stages_s"]["time"],
    }  # fmt: skip


def _band(rows: list[dict], low: float, high: float) -> dict:
    chosen = [row for row in rows if row["off"] is not None and low <= row["cupti_ms"] < high]
    off = [row["off"] for row in chosen]
    judge = [row["judge_ms"] / row["events_ms"] - 1 for row in chosen if row["judge_ms"]]
    if not off:
        return {"kernels": 0}
    return {
        "kernels": len(off), "median off": float(np.median(off)), "p90 off": float(np.percentile(off, 90)),
        "judge's clock, median": float(np.median(judge)) if judge else None,
        "judge's clock, max": max(judge, default=None),
        "seconds of timing, median": float(np.median([row["time_s"] for row in chosen])),
    }  # fmt: skip


if __name__ == "__main__":
    main()
