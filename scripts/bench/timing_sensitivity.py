"""Is a small slowdown told from noise? A delay of ``--percent`` is planted in a kernel of about 100 us.

    python scripts/bench/timing_sensitivity.py --trials 100 --percent 3 --json sensitivity.json

The problem is a copy of 1/19 of a size that takes about 100 us, the candidate the
same operator and then a kernel that spins for so long that CUPTI sees the call
longer by the given share. Every trial is an evaluation with a worker of its own.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from pathlib import Path

import torch
from fresh import RELU, evaluate

from harness.timing import timer_for
from harness.timing.cupti import breakdown

_CANDIDATE = """# trial {trial}
import torch, torch.nn as nn
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.relu(x)
        torch.cuda._sleep({cycles})
        return y
"""
_SIZE = 36 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--percent", type=float, default=3.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    cycles, base_ms, planted = _cycles(options.percent / 100)
    with tempfile.TemporaryDirectory() as folder:
        problems, solutions = Path(folder, "problems"), Path(folder, "solutions")
        (problems / "level1").mkdir(parents=True)
        (problems / "level1" / "1_delay.py").write_text(RELU.format(name="Model", elements=_SIZE))
        solutions.mkdir()
        for trial in range(options.trials):
            source = _CANDIDATE.format(trial=trial, cycles=cycles)
            (solutions / f"level_1_problem_1_sample_{trial}_kernel.py").write_text(source)
        results = evaluate(solutions, "--allow-library", "--problem-dir", str(problems))
    found = Counter(r["baselines"]["eager"]["verdict"] if r["timing"] else r["status"] for r in results)
    report = {
        "kernel_us": base_ms * 1e3, "planted": planted, "trials": len(results), "verdicts": found,
        "speedups": [r["speedup"] for r in results],
    }  # fmt: skip
    print(f"{base_ms * 1e3:.1f} us, {planted:.2%} planted; {len(results)} trials: {dict(found)}")
    if options.json:
        options.json.write_text(json.dumps(report) + "\n")


def _cycles(share: float) -> tuple[int, float, float]:
    """Cycles of delay that make the call longer by ``share`` as CUPTI sees it, its length without, and the share."""
    x = torch.rand(_SIZE, device="cuda")
    timer = timer_for(torch.device("cuda", 0))
    base_ms = _span_ms(timer, lambda _: torch.relu(x))

    def call_with(cycles: int):
        def call(_):
            y = torch.relu(x)
            torch.cuda._sleep(cycles)
            return y

        return call

    low, high = 0, 1 << 16
    while high - low > 16:
        middle = (low + high) // 2
        longer = _span_ms(timer, call_with(middle)) / base_ms - 1
        low, high = (middle, high) if longer < share else (low, middle)
    return high, base_ms, _span_ms(timer, call_with(high)) / base_ms - 1


def _span_ms(timer, call) -> float:
    nothing = [lambda: None] * 32
    return breakdown(timer.profile(call, [[]] * 32, nothing))["span_ms"]


if __name__ == "__main__":
    main()
