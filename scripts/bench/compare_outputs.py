"""Comparison of an output with the reference's: one pass of a kernel against PyTorch's operators, on a GPU.

    python scripts/bench/compare_outputs.py --elements 1e6,1e8,1.6e9 --json compare_outputs.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

from harness.judge.compare import Errors, check_values, is_right_at_once
from harness.judge.criterion import Criterion


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", default="1e6,1e8,1.6e9")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    rows = [_row(int(float(text))) for text in options.elements.split(",")]
    report = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}
    print(json.dumps(report, indent=2))
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")


def _row(count: int) -> dict:
    expected, criterion = torch.randn(count, device="cuda"), Criterion(1e-4)
    actual = expected * (1 + 1e-6)
    one_pass_ms = _ms(lambda: is_right_at_once(lambda: actual, expected, criterion, Errors()))
    operators_ms = _ms(lambda: check_values(actual.clone(), expected, criterion, "the output", Errors()))
    ratio = round(operators_ms / one_pass_ms, 2)
    return {"elements": count, "one_pass_ms": one_pass_ms, "operators_ms": operators_ms, "ratio": ratio}


def _ms(action: Callable[[], object]) -> float:
    times = []
    for _ in range(7):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        action()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e3)
    return round(statistics.median(times[2:]), 4)


if __name__ == "__main__":
    main()
