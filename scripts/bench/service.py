"""Built solutions an hour through the evaluation service, and where the time of an evaluation goes.

    python scripts/bench/service.py --solutions examples/inline_cuda --variants 64 --device cuda --json service.json
    python scripts/bench/service.py --solutions examples/inline_cpp --variants 8 --device cpu

Starts `kb serve-eval` with a folder and a cache of its own. Distinct copies of the solutions that build an extension
are evaluated twice by several clients: the first pass builds them, the second finds them built. The breakdown is the
median of each stage over the second pass, from the records; `idle` is the share of the wall time in which no judge
was at work (of one device).
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tabulate import tabulate
from variants import buildable, write_variants

from kernelbench import EvaluationError, Evaluator
from kernelbench.rl import Reward


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solutions", type=Path, required=True)
    parser.add_argument("--variants", type=int, default=32, help="distinct solutions to evaluate")
    parser.add_argument("--device", default="cuda", help="as for kb serve-eval")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    solutions = buildable(options.solutions, options.device.partition(":")[0])
    if not solutions:
        sys.exit(f"no solution in {options.solutions} builds an extension for {options.device}")
    with tempfile.TemporaryDirectory() as folder:
        variants = write_variants(solutions, options.variants, Path(folder) / "solutions")
        candidates = [(str(variant.problem), variant.path.read_text()) for variant in variants]
        report = _served(Path(folder), options, candidates)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    print(_table(report))


def _served(folder: Path, options: argparse.Namespace, candidates: list[tuple[str, str]]) -> dict:
    os.environ["KERNELBENCH_CACHE"] = str(folder / "cache")
    command = [sys.executable, "-m", "kernelbench", "serve-eval", str(folder / "service"), "--port", "0"]
    with subprocess.Popen([*command, "--device", options.device], stdout=subprocess.PIPE, text=True) as process:
        try:
            url = process.stdout.readline().split()[0]
            token = (folder / "service" / "tokens").read_text().split()[-1]
            passes = {name: _evaluated(url, token, candidates, options.clients) for name in ("builds", "built before")}
        finally:
            process.terminate()
    return {"device": options.device, "clients": options.clients, "variants": len(candidates), "passes": passes}


def _evaluated(url: str, token: str, candidates: list[tuple[str, str]], clients: int) -> dict:
    """Return the figures of one pass: each client evaluates its share as a batch."""
    begin = time.perf_counter()
    with Evaluator(url, token) as judge, ThreadPoolExecutor(clients) as pool:
        shares = [candidates[k::clients] for k in range(clients)]
        graded = [one for batch in pool.map(judge.rewards, shares) for one in batch]
    seconds = time.perf_counter() - begin
    faults = [str(one) for one in graded if isinstance(one, EvaluationError)]
    rewards: list[Reward] = [one for one in graded if isinstance(one, Reward)]
    stages = collections.defaultdict(list)
    for one in rewards:
        for stage, spent in {**one.result.stages_s, "build": one.result.build["seconds"]}.items():
            stages[stage].append(spent)
    judged_s = sum(sum(one.result.stages_s.values()) - one.result.stages_s.get("wait", 0.0) for one in rewards)
    return {
        "seconds": round(seconds, 2),
        "an_hour": round(3600 * len(rewards) / seconds),
        "evaluated": len(rewards),
        "labels": dict(collections.Counter(one.label for one in rewards)),
        "verdicts": dict(collections.Counter(str(one.verdict) for one in rewards)),
        "faults": faults,
        "stages_s": {stage: round(statistics.median(spent), 4) for stage, spent in stages.items()},
        "idle": round(max(0.0, 1 - judged_s / seconds), 3),
    }


def _table(report: dict) -> str:
    passes = report["passes"]
    shown = ("seconds", "an_hour", "evaluated", "idle", "labels")
    rows = [(name, *(str(figures[key]) for key in shown)) for name, figures in passes.items()]
    head = f"{report['variants']} distinct solutions on {report['device']}, {report['clients']} clients"
    stages = passes["built before"]["stages_s"]
    breakdown = tabulate(stages.items(), ("stage, built before", "median s"), floatfmt=".3f")
    figures = tabulate(rows, ("pass", "wall s", "an hour", "evaluated", "idle", "labels"))
    return f"{head}\n\n{figures}\n\n{breakdown}"


if __name__ == "__main__":
    main()
