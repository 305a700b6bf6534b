"""Other ways to evaluate a folder of solutions, each run as a process of its own by ``throughput.py``.

    python scripts/bench/rivals.py loop JOBS.json
    python scripts/bench/rivals.py kernelbench JOBS.json --checkout DIR [--precompile]

JOBS.json lists pairs of files, ``problem`` and ``solution``. Prints one JSON object:
the seconds that each build took, how many solutions were evaluated and how many found
right. With ``--seconds`` it ends after that time, KernelBench in the middle of an evaluation, but not without any;
``cut_s`` is then when the last one ended.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import json
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path

import torch

_CHECKS, _CALLS = 5, 100  # KernelBench's defaults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rival", choices=["loop", "kernelbench"])
    parser.add_argument("jobs", type=Path)
    parser.add_argument("--device", default="cuda", help="for the loop: cpu or cuda")
    parser.add_argument("--gpus", type=int, default=1, help="for KernelBench: how many to use")
    parser.add_argument("--checkout", type=Path)
    parser.add_argument("--precompile", action="store_true", help="build all on the CPU first, side by side")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    jobs = json.loads(options.jobs.read_text())
    evaluate = _loop if options.rival == "loop" else _kernelbench
    print(json.dumps(evaluate(jobs, options)))


class _Progress:
    """Report how many solutions are done, as they come."""

    def __init__(self, of: int, seconds: float):
        self._of, self._seconds, self._begin = of, seconds, time.perf_counter()
        self._done = self._right = 0
        self._last_s = 0.0

    @property
    def left_s(self) -> float:
        """Wait until it has to end; without a limit as long as nothing is done."""
        spent = time.perf_counter() - self._begin
        return max(0.0, self._seconds - spent) if self._done else float("inf")

    def add(self, right: list[bool]) -> None:
        self._done += len(right)
        self._right += sum(right)
        self._last_s = round(time.perf_counter() - self._begin, 2)
        print(f"{self._done} of {self._of} in {self._last_s} s", file=sys.stderr, flush=True)

    def report(self, builds: list[float]) -> dict:
        cut = {"cut_s": self._last_s} if self._done < self._of else {}
        return {"build_seconds": builds, "evaluated": self._done, "right": self._right, **cut}


def _loop(jobs: list[dict], options: argparse.Namespace) -> dict:
    """Stock ``load_inline``, one solution after the other in one process: import, compare, time."""
    builds, progress = [], _Progress(len(jobs), options.seconds)
    torch.set_default_device(torch.device(options.device))
    for job in jobs:
        if not progress.left_s:
            break
        right = False
        begin = time.perf_counter()
        try:
            module = _import(job["solution"], "solution")
            builds.append(time.perf_counter() - begin)
            right = _check_and_time(_import(job["problem"], "problem"), module.ModelNew, job["sizes"])
        except Exception as error:
            print(f"{job['solution']}: {error}", file=sys.stderr)
        progress.add([right])
    return progress.report(builds)


def _check_and_time(problem, model_class, sizes: dict) -> bool:
    torch.manual_seed(0)
    reference = problem.Model(*problem.get_init_inputs(**sizes))
    torch.manual_seed(0)
    candidate = model_class(*problem.get_init_inputs(**sizes))
    right = True
    with torch.no_grad():
        for _ in range(_CHECKS):
            inputs = problem.get_inputs(**sizes)
            right &= torch.allclose(candidate(*inputs), reference(*inputs), rtol=1e-2, atol=1e-2)
        for model in (candidate, reference):
            for _ in range(_CALLS):
                model(*inputs)
                if torch.cuda.is_available():
                    torch.cuda.synchronize()
    return right


def _kernelbench(jobs: list[dict], options: argparse.Namespace) -> dict:
    """Build in a pool, then run batches of one solution per GPU, as its eval_from_generations.py does."""
    spawn = multiprocessing.get_context("spawn")
    builds, progress = [], _Progress(len(jobs), options.seconds)
    with tempfile.TemporaryDirectory() as cache:
        work = [(job, f"{cache}/{number}", str(options.checkout)) for number, job in enumerate(jobs)]
        if options.precompile:
            with spawn.Pool(os.cpu_count()) as pool:
                builds = pool.starmap(_precompile, work, chunksize=1)
        for first in range(0, len(work), options.gpus):
            batch = [(*item, gpu) for gpu, item in enumerate(work[first : first + options.gpus])]
            left_s = progress.left_s
            with spawn.Pool(options.gpus) as pool:  # killed where it has to end
                try:
                    progress.add(pool.starmap_async(_evaluate, batch).get(None if left_s == float("inf") else left_s))
                except multiprocessing.TimeoutError:
                    break
    return progress.report(builds)


def _precompile(job: dict, cache: str, checkout: str) -> float:
    begin = time.perf_counter()
    build = _theirs(checkout).build_compile_cache
    _call(build, custom_model_src=Path(job["solution"]).read_text(encoding="utf-8"), build_dir=cache, verbose=False)
    return time.perf_counter() - begin


def _evaluate(job: dict, cache: str, checkout: str, gpu: int) -> bool:
    theirs = _theirs(checkout)
    device = torch.device("cuda", gpu)
    reference, candidate = (Path(job[name]).read_text(encoding="utf-8") for name in ("problem", "solution"))
    result = _call(
        theirs.eval_kernel_against_ref,
        original_model_src=reference, custom_model_src=candidate,
        measure_performance=True, num_correct_trials=_CHECKS, num_perf_trials=_CALLS, verbose=False,
        build_dir=cache, device=device, backend="cuda", precision=torch.float32,
    )  # fmt: skip
    return bool(result and result.correctness)


def _call(function, **arguments):
    """Call it with those of the arguments that this version of it takes."""
    known = inspect.signature(function).parameters
    return function(**{name: value for name, value in arguments.items() if name in known})


def _theirs(checkout: str):
    """KernelBench's module of evaluation, in its present layout or the former one."""
    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "{}.{}".format(*torch.cuda.get_device_capability()))
    if Path(checkout, "src", "kernelbench").is_dir():
        sys.path.insert(0, f"{checkout}/src")
        from kernelbench import eval as theirs
    else:
        sys.path.insert(0, checkout)
        from src import eval as theirs
    return theirs


def _import(path: str, name: str):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
