"""How long `check` takes: milliseconds of one validation, after import, for programs of several sizes.

    .venv/bin/python scripts/bench/ucutlass_check.py [FILE ...]

The first call also builds the parser. The limit of the project is 50 ms.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

from kernelbench.ucutlass import findings

REPEATS = 200
KERNEL = (
    "gemm().with_dtype(input=fp16, acc=fp32, output=fp16).with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)"
    ".with_arch(sm_90a).with_scheduler(kernel=tma_cooperative).with_stages(2)"
)
PROGRAMS = {
    "one kernel": KERNEL,
    "16 epilogue operations": KERNEL + " >> custom('x * sigmoid(x)')" * 16,
    "pipeline of 8 kernels": f"pipeline({', '.join([KERNEL] * 8)})",
    "20 syntax errors": "gemm()" + ".with_stages(] 2)" * 20,
}


def milliseconds(source: str) -> float:
    begin = time.perf_counter()
    findings(source)
    return 1e3 * (time.perf_counter() - begin)


def main() -> None:
    programs = {path: Path(path).read_text(encoding="utf-8") for path in sys.argv[1:]} or PROGRAMS
    print(f"first call, with the parser's tables: {milliseconds(KERNEL):.1f} ms")
    print(f"{'program':<32} {'median':>8} {'longest':>8}   ms, {REPEATS} calls")
    for name, source in programs.items():
        times = [milliseconds(source) for _ in range(REPEATS)]
        print(f"{name:<32} {statistics.median(times):8.2f} {max(times):8.2f}")


if __name__ == "__main__":
    main()
