"""Print what an answer may be off by: four times what PyTorch's own loses, as a share of the output's size.

    python scripts/own_losses.py all --precision fp32 --workload full --device cuda --least 0.005

Of each problem the share on the inputs where it is least, as an answer has to be right on all of them, and on those
that are timed. Where it is large, wrong answers pass.
"""

from __future__ import annotations

import argparse
import sys

import torch
from tqdm import tqdm

from harness.judge.criterion import LOSS_FACTOR
from harness.judge.reference.model import InputCase, Reference
from harness.judge.reference.timed_inputs import choose_timed
from harness.problem.inputs import DTYPES, fresh_seeds
from harness.problem.math_modes import pin_math_modes
from harness.problem.module import ProblemFile, load_problem
from harness.tensors.dtypes import is_scaled
from harness.timing.rounds import RunConfig
from kernelbench import suite


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("selector", nargs="?", default="all")
    parser.add_argument("--precision", default="fp32", choices=DTYPES)
    parser.add_argument("--workload", help="default: small on a CPU, full on a GPU")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--least", type=float, default=0.0, help="shares below it are not printed")
    options = parser.parse_args()
    pin_math_modes()
    shown, files = 0, suite.find(options.selector)
    for file in tqdm(files, file=sys.stderr, disable=None):
        try:
            least, timed = _shares(file, options)
        except Exception as error:  # one problem that does not fit ends nothing
            print(f"{str(file.id):<6} {file.name:<50} {type(error).__name__}: {str(error):.100}", flush=True)
            continue
        if least >= options.least:
            shown += 1
            print(f"{str(file.id):<6} {file.name:<50} {least:9.2g} {timed:9.2g}", flush=True)
    where = f"{options.precision}, {options.workload or 'default workload'}, {options.device}"
    print(f"{shown} of {len(files)} have {options.least:g} or more ({where}, PyTorch {torch.__version__})")


def _shares(file: ProblemFile, options: argparse.Namespace) -> tuple[float, float]:
    """Return the least share of all trials, and that of what is timed."""
    device = torch.device(options.device)
    workload = load_problem(file).workload_for(options.workload, device.type)
    reference = Reference(RunConfig(workload, device, DTYPES[options.precision]), fresh_seeds(1)[0])
    timed = choose_timed(reference, fresh_seeds(2))
    shares = {case: _share(reference, case) for case in {*reference.trials(copied=True), timed}}
    return min(shares.values()), shares[timed]


def _share(reference: Reference, case: InputCase) -> float:
    """Return the largest share of any output on the inputs of a trial."""
    (seed,) = fresh_seeds(1)
    scaled = [pair for pair in zip(reference.losses(case, seed), reference.outputs(case, seed)) if is_scaled(pair[1])]
    sizes = [(loss.error, reference.size_of(output)) for loss, output in scaled]
    return max((LOSS_FACTOR * error / size for error, size in sizes if size), default=0.0)


if __name__ == "__main__":
    main()
