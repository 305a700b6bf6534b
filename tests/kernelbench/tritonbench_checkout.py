"""A checkout in TritonBench's layout whose golden files are PyTorch, so that they run on any device."""

import json

SEPARATOR = "\n" + "#" * 146 + "\n"

SCALE = """
import torch

def scale(x, factor):
    return x * factor
"""
SCALE_TEST = """
def test_scale():
    return {"case_1": scale(torch.ones(4, device="cuda"), 2.0), "case_2": scale(torch.randn(3, device="cuda"), 0.5)}

result_gold = test_scale()
print(result_gold)
"""
FILL = """
import torch

def fill(out, value):
    out.copy_(value.expand_as(out))
"""
FILL_TEST = """
def test_fill():
    out = torch.zeros(4, device="cuda")
    fill(out, torch.ones(1, device="cuda"))
    return {"case": out}

result_gold = test_fill()
"""
NORM = """
import torch

class Norm(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(dim))

    def forward(self, x):
        return x * self.weight
"""
NORM_TEST = "\nresult_gold = {'weight': Norm(3).weight}\n"
PERF = '''
import sys
import os

sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), "..")))

from TritonBench_v1.{name} import {function}
from performance_utils import Performance_Metrics, do_bench_config

import torch


class performance_metrics(Performance_Metrics):
    def __init__(self, dtype=None, is_backward=False, **kwargs):
        super().__init__("{name}", dtype=dtype, is_backward=is_backward, **kwargs)

    def get_input_tensors(self):
        self.input_tensors = []
        for i in range(8, {end}):
            size = 2**i
            {make}
            self.input_tensors.append({inputs})

    def to_cuda(self, inputs):
        return {move}

    def call_op(self, inputs):
        {call}

    def get_gbps(self, inputs, runtime):
        return inputs[0].numel() * 8 / (runtime / 1000) / 1e9

    def get_tflops(self, inputs, runtime):
        return inputs[0].numel() / (runtime / 1000) / 1e12


if __name__ == "__main__":
    op_perf = performance_metrics()
    op_perf.get_input_tensors()
    op_perf.run_benchmark()
'''
FILES = {
    "scale": (
        2, SCALE, SCALE_TEST, "Multiply every element by a number.",
        dict(function="scale", end=12, make="x = torch.randn(size, dtype=torch.float16)", inputs="(x, 3.0)",
             move="(inputs[0].cuda(), inputs[1])", call="return scale(*inputs)"),
    ),
    "fill": (
        1, FILL, FILL_TEST, "Write a value into every element of a tensor. Nothing is returned.",
        dict(function="fill", end=10, make="out, value = torch.zeros(size), torch.rand(1)", inputs="(out, value)",
             move="tuple(tensor.cuda() for tensor in inputs)", call="fill(*inputs)"),
    ),
    "norm": (
        4, NORM, NORM_TEST, "A layer with a weight for each element.",
        dict(function="Norm", end=9, make="layer, x = Norm(size), torch.randn(2, size)", inputs="(x, layer)",
             move="(inputs[0].cuda(), inputs[1].cuda())", call="return inputs[1](inputs[0])"),
    ),
}  # fmt: skip


def write(root):
    """Write the checkout to ``root`` and return it."""
    golden, perf = root / "data" / "TritonBench_G_v1", root / "performance_metrics" / "perf_G" / "golden_metrics"
    golden.mkdir(parents=True)
    perf.mkdir(parents=True)
    statistics = []
    for name, (difficulty, code, test, instruction, values) in FILES.items():
        (golden / f"{name}.py").write_text(code + SEPARATOR + test)
        (perf / f"{name}_perf.py").write_text(PERF.format(name=name, **values))
        told = {"simp_instru": f"\n {instruction} \n", "comp_instru": f"\n A kernel:\n {instruction.lower()}"}
        statistics.append({"file": f"{name}.py", "difficulty": str(difficulty), **told})
    (root / "data" / "TritonBench_G_v1.json").write_text(json.dumps(statistics))
    return root
