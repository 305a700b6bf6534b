"""Functions and functors of an epilogue, compiled by the host's compiler and compared with PyTorch in FP64."""

import ctypes
import subprocess

import pytest
import torch

from harness.compile.toolchain import host_compiler
from kernelbench.ucutlass import check
from kernelbench.ucutlass.codegen.build import reference
from kernelbench.ucutlass.codegen.epilogue.chain import chain
from kernelbench.ucutlass.codegen.sm80.epilogue import output_operator

PROGRAM = """gemm().with_dtype(input=fp16, acc=fp32, output=fp16)
.with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor).with_arch(sm_90a) {}"""
# What CUTLASS and CUDA would define: the same names for the host.
PRELUDE = """
#include <math.h>
#include <cmath>
#define CUTLASS_DEVICE inline
#define CUTLASS_PRAGMA_UNROLL
#define __expf expf
static float __fdividef(float x, float y) { return x / y; }
static float rsqrtf(float x) { return 1 / std::sqrt(x); }
namespace cutlass { template <class U, int N> struct Array {
  U values[N]; U& operator[](int i) { return values[i]; } U operator[](int i) const { return values[i]; } }; }
"""
X = torch.linspace(-12, 12, 4801, dtype=torch.float64)


@pytest.fixture
def values(tmp_path):
    """Values of a chain, which reads no tensor, over X."""

    def values(epilogue):
        kernel = check(PROGRAM.format(epilogue)).kernels[0]
        source = tmp_path / "functors.cpp"
        body = 'extern "C" void apply(float const* x, float* y, int n) {'
        body += " for (int i = 0; i < n; ++i) y[i] = part0(x[i]); }"
        source.write_text(PRELUDE + chain(kernel, scaled=False).definitions() + "\n" + body)
        library = tmp_path / "functors.so"
        command = [host_compiler().path, "-O1", "-std=c++17", "-shared", "-fPIC", str(source), "-o", str(library)]
        subprocess.run(command, check=True, capture_output=True)
        given, result = X.float(), torch.empty(len(X), dtype=torch.float32)
        ctypes.CDLL(str(library)).apply(ctypes.c_void_p(given.data_ptr()), ctypes.c_void_p(result.data_ptr()), len(X))
        wanted = X.float().double()
        for op in kernel.epilogue:
            wanted = reference._applied(op, wanted, {}, False)
        return result.double(), wanted

    return values


@pytest.mark.parametrize("epilogue", [
    "relu()", "gelu()", "silu()", "mish()", "sigmoid()", "tanh()", "hardswish()", "leaky_relu(alpha=0.1)",
    "elu(alpha=0.5)", "clip(min=-1, max=6)", "scale(alpha=0.125)",
    "custom('where(x > 1, softplus(x), erf(x)) - max(x, -0.5) / (1 + x ** 2)')",
    "custom('abs(x) * cos(x) + sqrt(x * x)')",
    "custom('log1p(exp(-abs(x))) + rsqrt(1 + x * x) + floor(x) - ceil(x)')",
])  # fmt: skip
def test_an_operation_is_what_pytorch_computes(values, epilogue):
    got, wanted = values(f">> {epilogue}")
    assert ((got - wanted).abs() / (1 + wanted.abs())).max() < 1e-6


def test_a_chain_is_one_function_of_the_accumulator(values):
    got, wanted = values(">> gelu() >> scale(alpha=2) >> clip(min=-0.1, max=3) >> tanh()")
    assert (got - wanted).abs().max() < 1e-6


def test_minimum_and_maximum_keep_nan():
    kernel = check(PROGRAM.format(">> clip(min=0, max=6)")).kernels[0]
    text = chain(kernel, scaled=False).definitions()
    for name in ("max", "min"):  # fmaxf and fminf would drop a NaN
        assert f"u_{name}(float x, float y) {{\n  return x {'>' if name == 'max' else '<'} y || x != x ? x : y;" in text


def test_a_store_divides_the_chain():
    kernel = check(PROGRAM.format(">> bias() >> aux_store(before) >> gelu() >> aux_load(residual)")).kernels[0]
    first, second = chain(kernel).parts
    assert (first.store, second.store) == ("before", "")
    assert [leaf.name for leaf in first.leaves] == ["alpha", "bias"]
    assert [leaf.name for leaf in second.leaves] == ["residual"]


def test_where_slices_are_summed_in_d_each_multiplies_its_sum_by_what_the_chain_begins_with():
    """FP16 overflowed at the sums themselves, where a small alpha leaves results that it holds."""
    program = PROGRAM.replace("sm_90a) {}", "sm_80).with_split_k(mode=serial, slices=4) {}")
    kernel = check(program.format(">> scale(alpha=0.5) >> relu() >> scale(alpha=2)")).kernels[0]
    each, rest = chain(kernel).parts
    assert each.statements == ["x = in_alpha * x;", "x = x * 0.5f;"]
    assert rest.statements == ["x = u_relu(x);", "x = x * 2.0f;"]
    text = output_operator(kernel, chain(kernel))
    assert "part0(ElementCompute(accumulator[i]), params.in_alpha) + (adds ? ElementCompute(source[i])" in text
    assert "values[i] = last ? part1(x) : x;" in text


def test_names_of_inputs_may_be_words_of_cpp():
    program = PROGRAM.format(">> custom('x * float + int', inputs={'float': 'row', 'int': 'matrix'})")
    text = chain(check(program).kernels[0]).definitions()
    assert "float const in_float, float const in_int" in text


def test_double_precision_computes_in_double():
    program = """gemm().with_dtype(input=fp64, acc=fp64, output=fp64)
    .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor).with_arch(sm_80).with_tile(m=64, n=32, k=16)"""
    assert "double part0(double x, double const in_alpha)" in chain(check(program).kernels[0]).definitions()
