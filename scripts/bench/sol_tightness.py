"""Are the bounds sound and tight? Times honest fast kernels, and references, against t_SOL and t_floor on this GPU.

    python scripts/bench/sol_tightness.py --out tightness.md
    python scripts/bench/sol_tightness.py --references level1 --compile --out tightness.md

No row may be below 0.9 of its floor: such a row is marked and the exit status is
1. Rows near t_SOL show that the bound is tight. Kernels run on the published
sizes; their outputs are compared with the reference's, loosely, so that nothing
is timed that computes something else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from tabulate import tabulate

from harness import device as devices
from harness.draw import DTYPES, build_model, call, draw_inputs
from harness.math_modes import pin_math_modes
from harness.problem import Workload, load_problem
from harness.sol.bounds import PLAUSIBLE, analyse, floor, speed_of_light
from harness.sol.hardware import Limits, UnknownDevice, limits_at_hand
from harness.timing import timer_for
from kernelbench import suite

CALLS = 20
TIGHT = 1.35
TOLERANCE = 2e-2  # of the reference's root mean square


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


def rows(kernels: list[Kernel], device: torch.device, limits: Limits) -> Iterator[dict]:
    for kernel in kernels:
        problem = load_problem(suite.find(kernel.problem)[0])
        workload = problem.workload(next(iter(problem.workloads)))
        dtype = DTYPES[kernel.precision]
        try:
            ms, error = measure(kernel, workload, device, dtype)
        except Exception as error:  # one kernel that does not run here is no reason to lose the others
            print(f"{kernel.problem} {kernel.name}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        finally:
            torch.cuda.empty_cache()
            pin_math_modes()
        analysis = analyse(workload, dtype)
        row = {
            "problem": f"{kernel.problem} {problem.name}",
            "kernel": kernel.name,
            "ms": ms,
            "t_sol": speed_of_light(analysis, limits).ms,
            "t_sol_fp16": speed_of_light(analysis, limits, fp16=True).ms,
            "t_floor": floor(analysis, limits).ms,
            "bottleneck": speed_of_light(analysis, limits).bottleneck,
            "error": error,
        }
        print(describe(row), file=sys.stderr)
        yield row


def measure(kernel: Kernel, workload: Workload, device: torch.device, dtype: torch.dtype) -> tuple[float, float]:
    """The shortest of some cold calls in ms, because that is what a floor must stand, and the error over the RMS."""
    model = build_model(workload.problem.module.Model, workload, 1, device, dtype)
    inputs = draw_inputs(workload, 2, device, dtype)
    with torch.no_grad():
        function = kernel.make(model, *inputs)
        expected = call(model, inputs)
        error = float((function().float() - expected.float()).abs().max() / expected.float().square().mean().sqrt())
        del expected
        if kernel.checked and not error <= TOLERANCE:
            raise ValueError(f"computes something else: error {error:.2g} of the reference's RMS")
        timer = timer_for(device)
        for _ in range(3):
            function()
        with devices.exclusive(device):
            times = [timer.run(lambda _: function(), [list], [lambda: None])[2][0] for _ in range(CALLS)]
    return min(times), error


def describe(row: dict) -> str:
    g, above = row["ms"] / max(row["t_sol"], 1e-9), row["ms"] / max(row["t_floor"], 1e-9)
    mark = "  BELOW THE FLOOR" if above < PLAUSIBLE else ""
    return f"{row['problem']}: {row['kernel']}: {row['ms']:.4f} ms, {g:.2f} t_SOL, {above:.2f} t_floor{mark}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--references", metavar="SELECTOR", help="time these problems' references too")
    parser.add_argument("--compile", action="store_true", help="and the references under torch.compile")
    parser.add_argument("--only", metavar="PROBLEM", help="kernels of one problem")
    parser.add_argument("--out", type=Path, help="write the table as Markdown")
    options = parser.parse_args()
    try:
        device = devices.select("cuda")
        limits = limits_at_hand(device)
    except (devices.DeviceError, UnknownDevice) as error:
        sys.exit(f"error: {error}")
    pin_math_modes()
    kernels = [kernel for kernel in KERNELS if options.only in (None, kernel.problem)]
    if options.references:
        for file in suite.find(options.references):
            kernels.append(Kernel(str(file.id), "reference", eager, checked=False))
            if options.compile:
                kernels.append(Kernel(str(file.id), "reference, compiled", compiled, checked=False))
    found = list(rows(kernels, device, limits))
    below = [row for row in found if row["ms"] < PLAUSIBLE * row["t_floor"]]
    near = {
        row["problem"]
        for row in found
        if row["problem"].startswith("1/") and row["bottleneck"] == "memory" and row["ms"] <= TIGHT * row["t_sol"]
    }
    table = tabulate(
        [
            (r["problem"], r["kernel"], f"{r['ms']:.4f}", f"{r['t_sol']:.4f}", f"{r['t_sol_fp16']:.4f}",
             f"{r['t_floor']:.4f}", f"{r['ms'] / max(r['t_sol'], 1e-9):.2f}",
             f"{r['ms'] / max(r['t_floor'], 1e-9):.2f}", r["bottleneck"], f"{r['error']:.1e}")
            for r in found
        ],
        ("problem", "kernel", "ms", "t_SOL", "FP16", "t_floor", "g", "over floor", "bottleneck", "error"),
        tablefmt="github", disable_numparse=True,
    )  # fmt: skip
    text = (
        f"{limits.title}: {len(found)} of {len(kernels)} kernels ran, {len(below)} below {PLAUSIBLE} t_floor; "
        f"{len(near)} memory-bound problems of level 1 within {TIGHT} t_SOL.\n\n{table}\n"
    )
    print(text)
    if options.out:
        options.out.write_text(text)
    return 1 if below or len(found) < len(kernels) else 0


if __name__ == "__main__":
    sys.exit(main())
