"""Rounds and time that timing took, and why it ended.

    kb eval --solutions examples --out runs/new
    python scripts/bench/timing_rounds.py runs/old runs/new [--json rounds.json]

It reads runs that are there, so that two versions, or two values of ``--cv``, can be held against each
other. ``cv`` and ``sem`` are the larger of candidate and baselines; ``time s`` is the stage in which candidate
and baselines are timed in turn.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import Counter
from pathlib import Path

from tabulate import tabulate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {}
    for run in options.runs:
        records = map(json.loads, (run / "results.jsonl").read_text().splitlines())
        found[str(run)] = rows = [_row(record) for record in records if (record["timing"] or {}).get("rounds")]
        print(f"## {run}\n\n{tabulate(rows, headers='keys', floatfmt='.3g')}\n")
        if rows:
            seconds = [row["time s"] for row in rows]
            print(
                f"{len(rows)} results; rounds: median {statistics.median(row['rounds'] for row in rows):g}; "
                f"time: median {statistics.median(seconds):.2f} s, in all {sum(seconds):.1f} s; "
                f"ended: {dict(Counter(row['ended'] for row in rows))}; "
                f"verdicts: {dict(Counter(row['verdict'] for row in rows))}\n"
            )
    if options.json:
        options.json.write_text(json.dumps(found) + "\n")


def _row(record: dict) -> dict:
    timings = [record["timing"], *(b for b in record["baselines"].values() if b.get("samples_ms"))]
    baseline = next(iter(record["baselines"].values()), {})
    return {
        "problem": record["problem"],
        "solution": record["solution"]["name"],
        "rounds": record["timing"]["rounds"],
        "ended": record["timing"]["stopped"],
        "cv": max(timing["cv"] for timing in timings),
        "sem": max(timing["sem"] for timing in timings),
        "time s": record["stages_s"].get("time", 0.0),
        "verdict": baseline.get("verdict", ""),
    }


if __name__ == "__main__":
    main()
