"""Time of builds: this harness against stock ``load_inline``, on the same solutions, in one run.

    python scripts/bench/build.py --solutions examples --variants 32 --json build.json

Takes the solutions of a directory that build an extension and can be built here
(CUDA needs an NVIDIA GPU). First each is built alone, with empty caches, by
either side in turn; then ``--variants`` distinct ones (copies of the solutions,
each with a comment of its own in the extension's source) all at once, by as many
processes as there are cores. Neither side pays for importing torch: both fork
from a process that has. The same architecture is compiled for on both sides.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
import torch.utils.cpp_extension  # noqa: F401  in no measured build: what stock builds in is forked from here
from tabulate import tabulate
from variants import buildable, write_variants

from harness import device as devices
from harness.compile import BuildContext, build
from harness.compile.toolchain import host_compiler, nvcc
from harness.process.fork_server import ForkServer
from harness.process.procfs import default_memory_bytes, usable_cores
from harness.solution.discover import Solution

_TIMEOUT_S = 1800


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solutions", type=Path, required=True)
    parser.add_argument("--variants", type=int, default=32, help="distinct solutions to build at once; 0 for none")
    parser.add_argument("--repeats", type=int, default=3, help="cold builds of each solution on its own; 0 for none")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()

    device = devices.select(None)
    solutions = buildable(options.solutions, device.type)
    if not solutions:
        sys.exit(f"no solution in {options.solutions} builds an extension for a {device.type} device")
    arch = devices.architecture(device)
    report = {
        "device": devices.describe(device)["name"],
        "cores": usable_cores(),
        "torch": torch.__version__,
        "compilers": [f"{Path(c.path).name} {c.version}" for c in (nvcc(), host_compiler()) if c],
        "solutions": [solution.name for solution in solutions],
    }
    with ForkServer() as server:
        if options.repeats:
            report["cold"] = [_cold(solution, options.repeats, server, arch) for solution in solutions]
        if options.variants:
            report["parallel"] = _parallel(solutions, options.variants, server, arch)
    print(_table(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")


def _cold(solution: Solution, repeats: int, server: ForkServer, arch: str | None) -> dict:
    """Seconds of cold builds of one solution on its own, the two sides in turn."""
    times: dict[str, list[float]] = {"ours": [], "stock": []}
    for _ in range(repeats):
        times["ours"].append(_ours([solution], server, arch))
        times["stock"].append(_stock([solution], arch))
    medians = {side: statistics.median(values) for side, values in times.items()}
    return {"solution": solution.name, "seconds": times, "ratio": medians["ours"] / medians["stock"]}


def _parallel(solutions: list[Solution], count: int, server: ForkServer, arch: str | None) -> dict:
    """Wall seconds for ``count`` distinct cold builds at once, and for the same ones again with our cache."""
    with tempfile.TemporaryDirectory() as folder:
        variants = write_variants(solutions, count, Path(folder))
        ours, again = _ours(variants, server, arch, again=True)
        stock = _stock(variants, arch)
    return {"variants": count, "seconds": {"ours": ours, "stock": stock, "ours_cached": again}, "ratio": ours / stock}


def _ours(solutions: list[Solution], server: ForkServer, arch: str | None, again: bool = False):
    """Wall seconds to build all with an empty cache; with ``again`` also those of a second time."""
    jobs = min(len(solutions), usable_cores())
    context = BuildContext(
        server, arch, torch.__version__, _TIMEOUT_S, default_memory_bytes(), jobs=usable_cores() // jobs or 1
    )
    with tempfile.TemporaryDirectory() as cache, ThreadPoolExecutor(jobs) as pool:
        os.environ["KERNELBENCH_CACHE"] = cache
        seconds = []
        for _ in range(1 + again):
            begin = time.perf_counter()
            list(pool.map(lambda solution: build(solution, context), solutions))
            seconds.append(time.perf_counter() - begin)
    return tuple(seconds) if again else seconds[0]


def _stock(solutions: list[Solution], arch: str | None) -> float:
    """Wall seconds until every solution's module is imported, each in a process and a cache of its own."""
    with tempfile.TemporaryDirectory() as cache:
        jobs = [(str(solution.path), f"{cache}/{number}", arch) for number, solution in enumerate(solutions)]
        fork = multiprocessing.get_context("fork")
        begin = time.perf_counter()
        with fork.Pool(min(len(jobs), usable_cores()), maxtasksperchild=1) as pool:
            pool.starmap(_import, jobs, chunksize=1)
        return time.perf_counter() - begin


def _import(path: str, cache: str, arch: str | None) -> None:
    os.makedirs(cache)
    os.environ.update(TORCH_EXTENSIONS_DIR=cache, CUDA_VISIBLE_DEVICES="")
    if arch:
        os.environ["TORCH_CUDA_ARCH_LIST"] = arch
    spec = importlib.util.spec_from_file_location("solution", path)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _table(report: dict) -> str:
    rows = []
    for cold in report.get("cold", []):
        ours, stock = (statistics.median(cold["seconds"][side]) for side in ("ours", "stock"))
        rows.append((f"{cold['solution']}, alone, cold", ours, stock, cold["ratio"]))
    if parallel := report.get("parallel"):
        seconds = parallel["seconds"]
        rows.append(
            (f"{parallel['variants']} distinct at once, cold", seconds["ours"], seconds["stock"], parallel["ratio"])
        )
        cached = seconds["ours_cached"]
        rows.append(("the same, built before", cached, seconds["stock"], cached / seconds["stock"]))
    head = f"{report['device']}, {report['cores']} cores, torch {report['torch']}, {', '.join(report['compilers'])}"
    return f"{head}\n\n" + tabulate(rows, ("build", "ours s", "stock s", "ours / stock"), floatfmt=".3g")


if __name__ == "__main__":
    main()
