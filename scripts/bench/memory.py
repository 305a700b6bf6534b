"""Effect of a GPU's memory on times: placement of tensors, and the driver clearing what was given back.

    python scripts/bench/memory.py --problems 2/77,2/61,1/58,1/61,1/19 --gib 8,32,64 --json memory.json

A call of a reference, where all that it allocates comes out of one segment behind a pad of so many bytes more than
2 MiB; then where it comes out of segments of its own, taken anew each time as ``harness.memory.placement``
does. Then copies, from the moment on at which so many GiB were given back.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
from tabulate import tabulate

from harness import device as devices
from harness.memory.placement import Placement
from harness.problem.inputs import fresh_seeds
from harness.problem.math_modes import pin_math_modes
from harness.problem.module import load_problem
from harness.timing import timer_for
from harness.timing.rounds import RunConfig, play
from kernelbench import suite

_GIB = 1 << 30
_PADS = [0, 512, 4 << 10, 64 << 10, 512 << 10, 1 << 20, 2 << 20, 3 << 20, 64 << 20, 65 << 20]
_LEAST_PAD = 2 << 20  # what is smaller does not come out of a large segment
_PLACES = 10
_CALLS = 2
_WATCHED_S = 0.5
_COPIES, _COPIED_BYTES = 10, 64 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", default="2/77,2/61,1/58,1/61,1/19")
    parser.add_argument("--gib", default="8,32,64")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    device = devices.select("cuda")
    pin_math_modes()
    found = {"device": devices.describe(device), "versions": devices.versions(device), "problems": {}, "freed": {}}
    for file in suite.find(options.problems):
        setting = RunConfig(load_problem(file).workload("full"), device, torch.float32)
        found["problems"][str(file.id)] = by_place(setting)
        print(tabulate(found["problems"][str(file.id)].items(), headers=[str(file.id), "ms"]), flush=True)
    for gib in map(int, options.gib.split(",")):
        found["freed"][gib] = copies_ms = after(gib * _GIB, device)
        least = min(ms for _, ms in copies_ms)
        slow = [at for at, ms in copies_ms if ms > 1.05 * least]
        print(f"{gib} GiB given back: copies take up to {max(ms for _, ms in copies_ms) / least:.3f} times as long, "
              f"the last over 1.05 at {max(slow, default=0.0) * 1e3:.1f} ms")  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(found) + "\n")


def by_place(setting: RunConfig) -> dict[str, list[float]]:
    """Milliseconds of each call of a round, by where its tensors come from."""
    timer, places = timer_for(setting.device), Placement(setting.device)
    model = setting.build(setting.workload.problem.module.Model, seed=1)

    def round_ms() -> list[float]:
        play(model, setting, fresh_seeds(_CALLS), timer)  # allocates
        timer.wait_for_bandwidth()
        return [round(ms, 4) for ms in play(model, setting, fresh_seeds(_CALLS), timer).times_ms]

    found = {"as they come": round_ms()}
    taken = torch.cuda.max_memory_allocated()
    for pad in _PADS:
        torch.cuda.empty_cache()
        torch.empty(min(2 * taken, torch.cuda.mem_get_info()[0] // 2), dtype=torch.uint8, device=setting.device)
        held = torch.empty(_LEAST_PAD + pad, dtype=torch.uint8, device=setting.device)
        found[f"behind {pad} bytes"] = round_ms()
        del held
    torch.cuda.empty_cache()
    round_ms()
    for place in range(_PLACES):
        places.change()
        found[f"place {place}"] = round_ms()
    places.give_back()
    return found


def after(size: int, device: torch.device) -> list[tuple[float, float]]:
    """Seconds since so many bytes were given back, and the milliseconds that a few copies took then."""
    source, target = (torch.empty(_COPIED_BYTES, dtype=torch.uint8, device=device) for _ in range(2))
    torch.empty(size, dtype=torch.uint8, device=device).fill_(1)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    begin, found = time.perf_counter(), []
    while (at := time.perf_counter() - begin) < _WATCHED_S:
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        for _ in range(_COPIES):
            target.copy_(source)
        events[1].record()
        torch.cuda.synchronize()
        found.append((round(at, 5), round(events[0].elapsed_time(events[1]), 5)))
    return found


if __name__ == "__main__":
    main()
