"""What `kb try` takes beyond building, checking and timing, on a warm server.

    python scripts/bench/try_overhead.py --solution examples/cpp/relu.cpp --json try_overhead.json
    python scripts/bench/try_overhead.py --solution examples/cuda/relu.cu --device cuda

Runs the command again and again on a file that was built before, and measures each from outside, start of the
interpreter included. The overhead is that wall time minus the build, the wait for a device that others use, and the
stages that check and time (`build`, `wait` and `time` of `seconds`). The first call, which starts the server, is
shown beside them.
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solution", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as runtime:
        os.environ["XDG_RUNTIME_DIR"] = runtime  # a server of its own
        try:
            _tried(options)  # builds
            _stop()
            first, calls = _tried(options), [_tried(options) for _ in range(options.calls)]
        finally:
            _stop()
    report = {
        "device": calls[0]["device"],
        "load": os.getloadavg()[0],
        "first_overhead_s": first["overhead_s"],
        "median_overhead_s": round(statistics.median(call["overhead_s"] for call in calls), 3),
        "most_overhead_s": max(call["overhead_s"] for call in calls),
        "median_wall_s": round(statistics.median(call["wall_s"] for call in calls), 3),
        "calls": calls,
    }
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps({key: value for key, value in report.items() if key != "calls"}, indent=2))


def _tried(options: argparse.Namespace) -> dict:
    command = [sys.executable, "-m", "kernelbench", "try", str(options.solution), "--device", options.device, "--json"]
    begin = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    wall_s = time.perf_counter() - begin
    attempt = json.loads(done.stdout)
    if not attempt["correct"]:
        sys.exit(f"{options.solution}: {attempt['error']['message']}")
    spent = sum(attempt["seconds"][part] for part in ("build", "wait", "time"))
    return {
        "device": attempt["device"], "wall_s": round(wall_s, 3), "overhead_s": round(wall_s - spent, 3),
        "seconds": attempt["seconds"],
    }  # fmt: skip


def _stop() -> None:
    subprocess.run([sys.executable, "-m", "kernelbench", "try", "--stop"], stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
