"""The C signature follows from the problem."""

import ctypes
import subprocess

import pytest
import torch

from harness.problem.module import ProblemError
from harness.problem.signature import C_TYPES, derive_signature
from harness.tensors.dtypes import COMPARED

SEVERAL = """
import torch, torch.nn as nn
WORKLOADS = {"full": dict(rows=4, window=(2, 3), rate=0.5)}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)
        self.register_buffer("steps", torch.zeros(5, dtype=torch.int64))
    def forward(self, x, scale, mask, count):
        y = self.inner(x) * scale * count
        return y, (mask, y.argmax(1))
def get_inputs(rows=4, **sizes):
    return [torch.rand(rows, 3), 0.25, torch.rand(rows, 2) > 0.5, 7]
def get_init_inputs(**sizes):
    return []
"""


def test_inputs_then_state_then_outputs_then_sizes_then_scalars(write_problem):
    signature = derive_signature(write_problem(SEVERAL).workload("full"))
    assert signature.declaration() == (
        'extern "C" void solution(\n'
        "    const float* x,\n    const bool* mask,\n"
        "    const int64_t* steps,\n    const float* inner_weight,\n    const float* inner_bias,\n"
        "    float* output0,\n    bool* output1,\n    int64_t* output2,\n"
        "    size_t rows,\n    size_t window_0,\n    size_t window_1,\n    double rate,\n"
        "    double scale,\n    int64_t count)"
    )
    assert [t.shape for t in signature.outputs] == [(4, 2), (4, 2), (4,)]


def test_precision_decides_the_element_type(problem):
    declaration = derive_signature(problem("2/76").workload("full"), torch.bfloat16).declaration()
    assert "const __nv_bfloat16* gemm_weight" in declaration


def test_traffic_is_every_element_once(problem):
    signature = derive_signature(problem("1/95").workload("full"))
    assert signature.bytes == 32768 * 4096 * 4 + 32768 * 8 + 4


def resident_bytes():
    return int(open("/proc/self/statm").read().split()[1]) * 4096


def test_full_size_takes_no_memory(problem):
    before = resident_bytes()
    derive_signature(problem("3/1").workload("full"))  # 2.7 GB of weights
    assert resident_bytes() - before < 1 << 30


def test_a_reference_that_fails_is_a_problem_error(write_problem):
    broken = SEVERAL.replace("self.inner(x)", "self.inner(x.T)")
    with pytest.raises(ProblemError, match="the reference fails"):
        derive_signature(write_problem(broken).workload("full"))


def test_every_type_that_is_compared_has_a_c_type():
    assert C_TYPES.keys() == COMPARED


def test_the_declaration_compiles(tmp_path, write_problem):
    declaration = derive_signature(write_problem(SEVERAL).workload("full")).declaration()
    source = tmp_path / "s.cpp"
    source.write_text(f"#include <cstddef>\n#include <cstdint>\n{declaration} {{}}\n")
    subprocess.run(["c++", "-shared", "-fPIC", str(source), "-o", str(tmp_path / "s.so")], check=True)
    assert ctypes.CDLL(str(tmp_path / "s.so")).solution
