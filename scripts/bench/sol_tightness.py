"""Are the bounds sound and tight? Times honest fast kernels, and references, against t_SOL and t_floor on this GPU.

    python scripts/bench/sol_tightness.py --out tightness.md
    python scripts/bench/sol_tightness.py --references all --compile --jobs 8 --log rows.jsonl --out tightness.md

No row may be below 0.9 of its floor: such a row is marked and the exit status is
1. Rows near t_SOL show that the bound is tight. Kernels run on the published
sizes; their outputs are compared with the reference's, loosely, so that nothing
is timed that computes something else.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from tabulate import tabulate

from harness import device as devices
from harness.integrity.below_floor import PLAUSIBLE
from harness.problem.inputs import DTYPES, build_model, call, draw_inputs
from harness.problem.math_modes import pin_math_modes
from harness.problem.module import Workload, load_problem
from harness.sol.bounds import analyse, floor, speed_of_light
from harness.sol.hardware import UnknownDevice, limits_at_hand
from harness.timing import timer_for
from kernelbench import suite

CALLS = 20
TIGHT = 1.35
TOLERANCE = 2e-2  # of the reference's root mean square
_TASKS_A_PROCESS = 10  # then a new one: compiled code and its memory add up


@dataclass(frozen=True)
class Kernel:
    """``make(model, *inputs)`` gives the function that is timed, without arguments."""

    problem: str
    name: str
    make: Callable
    precision: str = "fp32"
    checked: bool = True  # whether its output can be compared: not where it is random, or nothing but zeros


def half_gemm(model, a, b):
    return lambda: (a.half() @ b.half()).float()


def gemm(model, a, b):
    return lambda: a @ b


def tf32_gemm(model, a, b):
    def run():
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            return a @ b
        finally:
            torch.backends.cuda.matmul.allow_tf32 = False

    return run


def compiled(model, *inputs):
    function = torch.compile(model)
    return lambda: function(*inputs)


def eager(model, *inputs):
    return lambda: model(*inputs)


def channels_last(model, x):
    """cuDNN with TF32, the best algorithm, in its own layout."""
    torch.backends.cudnn.benchmark = True
    model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    return lambda: model(x)


def attention(model, q, k, v):
    return lambda: F.scaled_dot_product_attention(q, k, v)


def causal_attention(model, x):
    """Flash attention in the place of masked scores."""

    def run():
        parts = model.c_attn(x).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (model.n_head, -1)).transpose(1, 2) for part in parts)
        return model.c_proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))

    return run


def triangular(upper: bool):
    """Blocks: only those products of which neither factor is zero."""

    def make(model, a, b, block=512):
        n = a.shape[0]

        def run():
            out = torch.zeros_like(a)
            for i in range(0, n, block):
                rows = slice(i, i + block)
                if upper:
                    for j in range(i, n, block):
                        columns = slice(j, j + block)
                        out[rows, columns] = a[rows, i : j + block] @ b[i : j + block, columns]
                else:
                    for j in range(0, i + block, block):
                        columns = slice(j, j + block)
                        out[rows, columns] = a[rows, j : i + block] @ b[j : i + block, columns]
            return out

        return run

    return make


def diagonal(model, a, b):
    function = torch.compile(lambda a, b: a[:, None] * b)
    return lambda: function(a, b)


def summed_gemm(model, x):
    """2/14: the sum over the columns of the product is a product with the sum of the columns."""
    return lambda: (x @ model.weight.sum(0, keepdim=True).T) * (model.scaling_factor / 2)


def summed_linear(model, x):
    """2/18: what follows the sum has one element a row and leaves it as it is."""
    return lambda: x @ model.linear.weight.sum(0, keepdim=True).T + model.linear.bias.sum()


def pooled_linear(model, x):
    """2/98: the average of 16 columns is a product with the average of 16 columns."""
    size = 16

    def run():
        weight = model.matmul.weight.unflatten(0, (-1, size)).mean(1)
        bias = model.matmul.bias.unflatten(0, (-1, size)).mean(1)
        return (F.gelu(F.linear(x, weight, bias)) * model.scale_factor).max(1).values

    return run


def pooled_transition(model, x):
    """3/13: average pooling before the 1 x 1 convolution, not after it."""
    norm, relu, convolution, pool = model.transition
    return lambda: convolution(pool(relu(norm(x))))


def zeros(model, x):
    """2/80: a value minus the mean of itself."""
    return lambda: torch.zeros(x.shape[0], 1, device=x.device)


KERNELS = [
    Kernel("1/1", "vendor GEMM, FP16 with FP32 sums, casts inside", half_gemm),
    Kernel("1/1", "vendor GEMM, TF32", tf32_gemm),
    Kernel("1/1", "vendor GEMM, FP16 in memory", gemm, "fp16"),
    Kernel("1/2", "vendor GEMM, BF16 in memory", gemm, "bf16"),
    Kernel("1/8", "vendor GEMM, FP16 with FP32 sums, casts inside", half_gemm),
    Kernel("1/9", "vendor GEMM, FP16 in memory", gemm, "fp16"),
    Kernel("1/12", "row scaling, fused", diagonal),
    Kernel("1/14", "upper triangular, by blocks", triangular(True)),
    Kernel("1/15", "lower triangular, by blocks", triangular(False)),
    Kernel("1/19", "vendor elementwise", eager),
    Kernel("1/23", "softmax, fused by the compiler", compiled),
    Kernel("1/36", "RMS norm, fused by the compiler", compiled),
    Kernel("1/40", "layer norm, fused by the compiler", compiled),
    Kernel("1/47", "vendor sum", eager),
    Kernel("1/55", "cuDNN convolution, TF32, channels last", channels_last),
    Kernel("1/63", "cuDNN convolution, TF32, channels last", channels_last),
    Kernel("1/63", "cuDNN convolution, FP16 in memory, channels last", channels_last, "fp16"),
    Kernel("1/87", "cuDNN convolution, TF32, channels last", channels_last),
    Kernel("1/95", "cross entropy, fused by the compiler", compiled),
    Kernel("1/97", "vendor attention, FP16 in memory", attention, "fp16"),
    Kernel("2/14", "sum before the product", summed_gemm),
    Kernel("2/18", "sum before the product", summed_linear),
    Kernel("2/80", "constant", zeros, checked=False),
    Kernel("2/98", "pooling before the product", pooled_linear),
    Kernel("3/13", "pooling before the convolution", pooled_transition),
    Kernel("3/43", "flash attention with a causal mask, FP16 in memory", causal_attention, "fp16"),
]


def examine(name: tuple[str, str]) -> dict:
    """The row of one kernel, in a process of a pool; says ``out_of_memory`` where others had taken it."""
    [kernel] = [one for one in known(name[0]) if (one.problem, one.name) == name]
    row = {"problem": kernel.problem, "kernel": kernel.name}
    try:
        return row | _examined(kernel)
    except Exception as error:  # one kernel that does not run here is no reason to lose the others
        if "out of memory" in str(error):  # PyTorch's own error, or the driver's where not even a context fits
            return row | {"out_of_memory": True}
        return row | {"failed": f"{type(error).__name__}: {error}"[:300]}
    finally:
        torch.cuda.empty_cache()
        torch.compiler.reset()


def _examined(kernel: Kernel) -> dict:
    pin_math_modes()
    device = devices.select("cuda")
    limits = limits_at_hand(device)
    problem = load_problem(suite.find(kernel.problem)[0])
    workload = problem.workload(next(iter(problem.workloads)))
    dtype = DTYPES[kernel.precision]
    ms, error = measure(kernel, workload, device, dtype)
    analysis = analyse(workload, dtype)
    return {
        "title": problem.name,
        "ms": ms,
        "t_sol": speed_of_light(analysis, limits).ms,
        "t_sol_fp16": speed_of_light(analysis, limits, fp16=True).ms,
        "t_floor": floor(analysis, limits).ms,
        "bottleneck": speed_of_light(analysis, limits).bottleneck,
        "error": error,
    }


def known(problem: str) -> list[Kernel]:
    """The kernels of a problem, its reference among them."""
    references = [
        Kernel(problem, "reference", eager, checked=False),
        Kernel(problem, "reference, compiled", compiled, checked=False),
    ]
    return [kernel for kernel in KERNELS if kernel.problem == problem] + references


def measure(
    kernel: Kernel, workload: Workload, device: torch.device, dtype: torch.dtype
) -> tuple[float, float | None]:
    """The shortest of some cold calls in ms, because that is what a floor must stand; the error, if it is checked."""
    model = build_model(workload.problem.module.Model, workload, 1, device, dtype)
    inputs = draw_inputs(workload, 2, device, dtype)
    with torch.no_grad():
        function = kernel.make(model, *inputs)
        error = _error(function, call(model, inputs)) if kernel.checked else None
        if error is not None and not error <= TOLERANCE:
            raise ValueError(f"computes something else: error {error:.2g} of the reference's RMS")
        timer = timer_for(device)
        for _ in range(3):
            function()
        with devices.exclusive(device):
            times = [timer.run(lambda _: function(), [list], [lambda: None]).times_ms[0] for _ in range(CALLS)]
    return min(times), error


def _error(function: Callable, expected: torch.Tensor) -> float:
    """The worst one over the root mean square of what is expected."""
    return float((function().float() - expected.float()).abs().max() / expected.float().square().mean().sqrt())


def examine_all(names: list[tuple[str, str]], jobs: int, log: Path | None) -> list[dict]:
    """Rows in order; those in ``log`` are not measured again, and new ones are added to it as they come.

    Compiling takes most of the time, so several processes do it, and time in turn, the last names first: whole
    networks compile longest. What finds no memory beside the others is done again alone.
    """
    rows = {}
    if log and log.exists():
        kept = map(json.loads, log.read_text().splitlines())
        rows = {(row["problem"], row["kernel"]): row for row in kept if "ms" in row}
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    context = multiprocessing.get_context("spawn")
    for processes in (jobs, 1):
        todo = [name for name in reversed(names) if name not in rows]
        with context.Pool(processes, maxtasksperchild=_TASKS_A_PROCESS) as pool:
            for row in pool.imap_unordered(examine, todo):
                print(describe(row), file=sys.stderr, flush=True)
                if "out_of_memory" in row:
                    continue
                rows[row["problem"], row["kernel"]] = row
                if log:
                    with log.open("a") as file:
                        file.write(json.dumps(row) + "\n")
    return [rows[name] for name in names if name in rows]


def describe(row: dict) -> str:
    what = f"{row['problem']} {row['kernel']}"
    if "ms" not in row:
        return f"{what}: {row.get('failed') or 'no memory beside the others; once more later'}"
    g, above = row["ms"] / max(row["t_sol"], 1e-9), row["ms"] / max(row["t_floor"], 1e-9)
    mark = "  BELOW THE FLOOR" if above < PLAUSIBLE else ""
    return f"{what}: {row['ms']:.4f} ms, {g:.2f} t_SOL, {above:.2f} t_floor{mark}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--references", metavar="SELECTOR", help="time these problems' references too")
    parser.add_argument("--compile", action="store_true", help="and the references under torch.compile")
    parser.add_argument("--only", metavar="PROBLEM", help="kernels of one problem")
    parser.add_argument("--jobs", type=int, default=4, help="processes that compile side by side")
    parser.add_argument("--log", type=Path, help="keep rows here as they come; what is there is not measured again")
    parser.add_argument("--out", type=Path, help="write the table as Markdown")
    options = parser.parse_args()
    try:
        limits = limits_at_hand(devices.select("cuda"))
    except (devices.DeviceError, UnknownDevice) as error:
        sys.exit(f"error: {error}")
    names = [(kernel.problem, kernel.name) for kernel in KERNELS if options.only in (None, kernel.problem)]
    for file in suite.find(options.references) if options.references else []:
        names += [(str(file.id), "reference")] + [(str(file.id), "reference, compiled")] * options.compile
    rows = examine_all(names, options.jobs, options.log)
    found = [row for row in rows if "ms" in row]
    below = [row for row in found if row["ms"] < PLAUSIBLE * row["t_floor"]]
    near = {
        row["problem"]
        for row in found
        if row["problem"].startswith("1/") and row["bottleneck"] == "memory" and row["ms"] <= TIGHT * row["t_sol"]
    }
    table = tabulate(
        [
            (f"{r['problem']} {r['title']}", r["kernel"], f"{r['ms']:.4f}", f"{r['t_sol']:.4f}",
             f"{r['t_sol_fp16']:.4f}", f"{r['t_floor']:.4f}", f"{r['ms'] / max(r['t_sol'], 1e-9):.2f}",
             f"{r['ms'] / max(r['t_floor'], 1e-9):.2f}", r["bottleneck"],
             "" if r["error"] is None else f"{r['error']:.1e}")
            for r in found
        ],
        ("problem", "kernel", "ms", "t_SOL", "FP16", "t_floor", "g", "over floor", "bottleneck", "error"),
        tablefmt="github", disable_numparse=True,
    )  # fmt: skip
    failed = [f"{row['problem']} {row['kernel']}: {row['failed']}" for row in rows if "failed" in row]
    text = (
        f"{limits.title}, PyTorch {torch.__version__}: {len(found)} of {len(names)} kernels ran, {len(below)} below "
        f"{PLAUSIBLE} t_floor; {len(near)} memory-bound problems of level 1 within {TIGHT} t_SOL.\n\n"
        + "".join(f"- {line}\n" for line in failed) + f"\n{table}\n"
    )  # fmt: skip
    print(text)
    if options.out:
        options.out.write_text(text)
    return 1 if below or len(found) < len(names) else 0


if __name__ == "__main__":
    sys.exit(main())
