"""Time calls behind a gate of another process, by how many streams they work on.

    python scripts/bench/gated_streams.py [--calls 1,10,30]

The chain is that of the judge's clock: a stream of this process opens the gate of a call, waits for its mark, and goes
on with the next. The calls are those of a second process, enqueued before. Each figure is the least of five chains, in
ms a call; "alone" is the same calls between two events, without a chain.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from harness.timing.gate import Gate

_CHAINS = 5
_ALONE = 10  # calls
_TIMEOUT_S = 5.0


def calls() -> dict[str, Callable[[], object]]:
    """Return calls by what they do, each of some microseconds."""
    x, side = torch.randn(1 << 13, device="cuda"), torch.cuda.Stream()
    sequence = torch.randn(4, 32, 16, device="cuda")
    lstm = torch.nn.LSTM(16, 32, num_layers=3, batch_first=True, device="cuda")

    def two_streams(hand_overs: int) -> None:
        own = torch.cuda.current_stream()
        for _ in range(hand_overs):
            side.wait_stream(own)
            with torch.cuda.stream(side):
                torch.relu(x)
            own.wait_stream(side)

    return {
        "ReLU": lambda: torch.relu(x),
        "ReLU, 8 times": lambda: [torch.relu(x) for _ in range(8)],
        "ReLU on a second stream": lambda: two_streams(1),
        "ReLU on a second stream, 3 times": lambda: two_streams(3),
        "LSTM of cuDNN, on a stream of its own": lambda: lstm(sequence),
    }


def alone_ms(call: Callable[[], object]) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(3):
        call()
    torch.cuda._sleep(20_000_000)  # until all are enqueued
    begin.record()
    for _ in range(_ALONE):
        call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / _ALONE


@torch.no_grad()
def serve(fd: int) -> None:
    """Tell what each call takes alone; then enqueue as many as are asked for, each behind its gate."""
    gate, known = Gate(fd), calls()
    print(json.dumps({name: alone_ms(call) for name, call in known.items()}), flush=True)
    for line in sys.stdin:
        name, first, count = json.loads(line)
        for number in range(first, first + count):
            gate.hold(number)
            known[name]()
            gate.mark(number)
        print("enqueued", flush=True)


def measure(counts: list[int]) -> list[list]:
    fd = Gate.file()
    command = [sys.executable, __file__, "--serve", str(fd)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    rows, number, start = [], 1, Gate(Gate.file())
    with subprocess.Popen(command, pass_fds=[fd], **pipes) as worker:
        gate, stream = Gate(fd), torch.cuda.Stream().cuda_stream
        for name, alone in json.loads(worker.stdout.readline()).items():
            rows.append([name, alone])
            for count in counts:
                took = []
                for _ in range(_CHAINS):
                    worker.stdin.write(json.dumps([name, number, count]) + "\n")
                    worker.stdin.flush()
                    worker.stdout.readline()
                    start.hold(number, stream)
                    for one in range(number, number + count):
                        gate.open_from(one, stream)
                        gate.hold_for_mark(one, stream)
                    start.mark(number, stream)
                    begin = time.perf_counter()
                    start.open(number)
                    took.append((start.await_mark(number, _TIMEOUT_S) - begin) * 1e3 / count)
                    number += count
                rows[-1].append(min(took))
        worker.stdin.close()
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", default="1,10,30", help="calls of a chain")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve)
    else:
        counts = [int(count) for count in options.calls.split(",")]
        headers = ["call", "alone, ms", *(f"chain of {count}, ms" for count in counts)]
        print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n")
        print(tabulate(measure(counts), headers=headers, floatfmt=".4f"))
