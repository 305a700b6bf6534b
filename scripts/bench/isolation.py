"""Cost of confining a worker: milliseconds per candidate, by layer and together.

    python scripts/bench/isolation.py --count 200

Each sample forks this process, which has torch loaded as the fork server has,
enters the layers in the child and ends it. What a child without layers takes is
the first row; the others are what they take on top of it. The limit that this
project sets itself is 500 ms a candidate.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time

import torch  # noqa: F401  (what a worker is forked with)
from tabulate import tabulate

from harness.process import sandbox

LIMIT_MS = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    options = parser.parse_args()
    available = sandbox.available()
    for words in sandbox.missing(available):
        print(f"not kept from candidates here: {words}")
    cases = {"a fork": [], **{name: [name] for name in available}, "all": list(available)}
    samples = {what: [] for what in cases}
    with tempfile.TemporaryDirectory() as scratch:
        confinement = sandbox.Confinement(writable=(scratch,))
        for _ in range(options.count):
            for what, layers in cases.items():
                samples[what].append(_seconds(layers, confinement) * 1e3)
    base = statistics.median(samples["a fork"])
    rows = [(what, *_figures(times, 0 if what == "a fork" else base)) for what, times in samples.items()]
    print(tabulate(rows, ("", "median ms", "95 % ms", "worst ms"), floatfmt=".2f"))
    sys.exit(statistics.median(samples["all"]) - base > LIMIT_MS)


def _seconds(layers: list[str], confinement: sandbox.Confinement) -> float:
    begin = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        sandbox.enter(layers, confinement)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        sys.exit(f"a child could not enter {layers}")
    return time.perf_counter() - begin


def _figures(times: list[float], base: float) -> tuple[float, float, float]:
    ordered = sorted(times)
    return (statistics.median(ordered) - base, ordered[int(0.95 * len(ordered))] - base, ordered[-1] - base)


if __name__ == "__main__":
    main()
