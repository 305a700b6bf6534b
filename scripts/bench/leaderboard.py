"""Time of `kb leaderboard` on a large run, as a multiple of what reading the log's JSON takes.

    python scripts/bench/leaderboard.py --results 5000

The run is made of the committed records of `results/h100/references`, repeated as samples.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_RUN = _ROOT / "results" / "h100" / "references"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = _large_run(Path(folder), options.results)
        read_s = min(_timed(lambda: [json.loads(line) for line in log.open()]) for _ in range(options.repeats))
        command = [sys.executable, "-m", "kernelbench", "leaderboard", folder]
        whole_s = min(
            _timed(lambda: subprocess.run(command, cwd=_ROOT, check=True, stdout=subprocess.DEVNULL))
            for _ in range(options.repeats)
        )
    size_mb = options.results * _RUN.joinpath("results.jsonl").stat().st_size / 250 / 1e6
    print(f"{options.results} results, {size_mb:.0f} MB: JSON alone {read_s:.2f} s, kb leaderboard {whole_s:.2f} s, "
          f"{whole_s / read_s:.1f} times as long")  # fmt: skip


def _large_run(folder: Path, count: int) -> Path:
    """Write a run of ``count`` results into ``folder``; returns its log."""
    config = json.loads((_RUN / "config.json").read_text()) | {"problems": None}
    (folder / "config.json").write_text(json.dumps(config))
    records = [json.loads(line) for line in (_RUN / "results.jsonl").open()]
    log = folder / "results.jsonl"
    with log.open("w") as file:
        for number in range(count):
            sample, record = number // len(records), records[number % len(records)]
            name = f"{record['problem']}_s{sample}.py"
            file.write(json.dumps(record | {"solution": record["solution"] | {"sample": sample, "name": name}}) + "\n")
    return log


def _timed(action) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
