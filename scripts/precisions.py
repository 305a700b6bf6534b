"""Problems that cannot be evaluated in a precision, and why, without a candidate.

    python scripts/precisions.py all --precisions fp16,bf16 --workload small --device cpu

A problem is refused where its reference does not run in a precision, is not finite in it on published inputs, or loses
as much in it as its outputs are large. Several draws are looked at, because some overflow only at times.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys

import torch
from tqdm import tqdm

from harness import device as devices
from harness.judge.reference.model import Reference
from harness.judge.reference.overflow import overflown
from harness.judge.reference.timed_inputs import choose_timed
from harness.problem.inputs import DTYPES
from harness.problem.math_modes import pin_math_modes
from harness.problem.module import ProblemError, ProblemFile, load_problem
from harness.process.procfs import usable_cores
from harness.timing.rounds import RunConfig
from kernelbench import suite

_DRAWS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("selector", nargs="?", default="all")
    parser.add_argument("--precisions", default="fp16,bf16")
    parser.add_argument("--workload", default="small")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    jobs = [
        (file, precision, options.workload, options.device)
        for file in suite.find(options.selector)
        for precision in options.precisions.split(",")
    ]
    refused = 0
    threads = max(1, usable_cores() // options.jobs)
    context = multiprocessing.get_context("spawn")
    # a process is replaced now and then, because allocators keep what networks took
    with context.Pool(options.jobs, torch.set_num_threads, (threads,), maxtasksperchild=16) as pool:
        bar = tqdm(zip(jobs, pool.imap(_refusal, jobs)), total=len(jobs), file=sys.stderr, disable=None)
        for (file, precision, *_), why in bar:
            bar.set_postfix_str(f"{file.id} {precision}")
            if why:
                refused += 1
                print(f"{str(file.id):<6} {file.name:<50} {precision:<5} {why}", flush=True)
    print(f"{refused} of {len(jobs)} are refused ({options.workload}, {options.device}, PyTorch {torch.__version__})")


def _refusal(job: tuple[ProblemFile, str, str, str]) -> str | None:
    file, precision, workload, device = job
    pin_math_modes()
    try:
        setting = RunConfig(load_problem(file).workload(workload), devices.select(device), DTYPES[precision])
        reference = Reference(setting, 0)
        found = [overflown(reference, seed) for seed in range(_DRAWS)]
        choose_timed(reference, [0, 1])
    except ProblemError as error:
        return str(error)
    except Exception as error:
        return f"does not run: {type(error).__name__}: {str(error).splitlines()[0]}"
    return f"not finite: {found} elements of {_DRAWS} draws" if any(found) else None


if __name__ == "__main__":
    main()
