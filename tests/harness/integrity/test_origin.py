"""Which kernels can be a solution's own, told by their names."""

import itertools
import subprocess
import time
import tracemalloc

import pytest
from linear_time import MEGABYTE, in_linear_time

from harness.integrity import library_only
from harness.integrity import origin as origin_module
from harness.integrity.origin import Origin, identifier
from harness.problem.module import ProblemId
from harness.result import CandidateFailure
from harness.solution.discover import read_solution
from harness.solution.includes import open_plain

INLINE = """
from torch.utils.cpp_extension import load_inline
source = '''__global__ void relu4(const float4* x, float4* y, long n) {}
template <int W> __global__ void rms_norm(const float* x) {}'''
"""
TRITON = """
import triton
@triton.jit
def _layer_norm_fwd(x): pass
"""


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("relu4(float4 const*, float4*, long)", "relu4"),
        ("void rms_norm<64>(float const*)", "rms_norm"),
        ("void (anonymous namespace)::rows<float, 4>(float*)", "rows"),
        ("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<int> >(P)", "device_kernel"),
        ("_layer_norm_fwd", "_layer_norm_fwd"),
        ("", ""),
    ],
)
def test_a_kernel_is_known_by_its_functions_name(kernel, name):
    assert identifier(kernel) == name


def test_what_the_source_names_is_its_own():
    inline, triton = Origin([INLINE]), Origin([TRITON])
    assert inline.has("relu4(float4 const*, float4*, long)") and inline.has("void rms_norm<64>(float const*)")
    assert triton.has("_layer_norm_fwd") and triton.has("_layer_norm_fwd_0d1d2de"), "Triton appends what it specialised"
    assert not inline.has("_layer_norm_fwd") and not triton.has("relu4(float4 const*, float4*, long)")


@pytest.mark.parametrize("piece", ["\n", "def\n", "\tclass ", "a"])
def test_a_megabyte_of_source_is_read_in_linear_time(piece):
    with in_linear_time():
        assert not Origin([piece * (MEGABYTE // len(piece))]).has("relu4(float4 const*)")


def test_what_the_binary_defines_is_its_own(tmp_path):
    source, library = tmp_path / "a.cpp", tmp_path / "a.so"
    source.write_text(
        "namespace cub { template <class T> void DeviceReduceKernel(T) {} }\n"
        "template void cub::DeviceReduceKernel<int>(int);\n"
        'extern "C" void plain() {}\n'
    )
    subprocess.run(["g++", "-shared", "-fPIC", "-o", library, source], check=True)
    origin = Origin([], [library.read_bytes()])
    assert origin.has("void cub::DeviceReduceKernel<int>(int)") and origin.has("plain")
    assert not origin.has("void cub::DeviceScanKernel<int>(int)") and not origin.has("plai") and not origin.has("")


def test_binaries_are_read_piece_by_piece_and_each_once(tmp_path, monkeypatch):
    """A candidate that asked for one library a thousand times had the judge hold it a thousand times."""
    library, opened = tmp_path / "a.so", []
    library.write_bytes(b"\1" * (40 << 20) + b"9reduce_sm")
    monkeypatch.setattr(origin_module, "open_plain", lambda path: opened.append(path) or open_plain(path))
    tracemalloc.start()
    try:
        origin = Origin([], [library] * 20)
        assert origin.has("reduce_sm(float*)") and not origin.has("reduce_sn(float*)")
        assert tracemalloc.get_traced_memory()[1] < 60 << 20
    finally:
        tracemalloc.stop()
    assert opened == [library] * 2, "once for each name"


@pytest.mark.parametrize("place", [0, 1, 7, 8, 9, 15, 16, 23])
@pytest.mark.parametrize("text", [b"7reducer", b"\0reducer\0"])
def test_a_name_is_found_wherever_pieces_of_the_binary_meet(tmp_path, monkeypatch, place, text):
    monkeypatch.setattr(origin_module, "_PIECE_BYTES", 8)
    (library := tmp_path / "a.so").write_bytes(b"\1" * place + text + b"\1" * 5)
    assert Origin([], [library]).has("reducer(float*)") and not Origin([], [library]).has("reduced(float*)")


def test_the_search_of_binaries_ends_in_time_after_which_names_have_to_do(tmp_path, monkeypatch):
    """A hundred names were looked for in two gigabytes, for minutes."""
    (library := tmp_path / "a.so").write_bytes(bytes(1 << 10))
    origin, late = Origin([INLINE], [library]), Origin([INLINE], [library])
    late._left_s = -1.0
    assert not origin.has("unknown(float*)") and late.has("unknown(float*)")
    names = [{"name": "unknown(float*)", "ms": 1.0}, {"name": "nvjet_tst", "ms": 1.0}, {"name": "relu4()", "ms": 2.0}]
    assert library_only.own_kernels({"kernels": names}, late) == ({"unknown(float*)": 0.25, "relu4()": 0.5}, 0.75)
    clock = itertools.count(0, 6)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    assert not origin.has("other(float*)") and origin.has("third(float*)"), "each took 6 s, or more"


def test_where_a_binary_is_gone_names_have_to_do(tmp_path):
    assert Origin([INLINE], [tmp_path / "gone.so"]).has("unknown(float*)")


@pytest.mark.parametrize("kernel", ["vendors_new_sgemm_128x64", "void flashier<float>::forward_kernel(P)"])
def test_a_librarys_kernel_that_no_pattern_knows_is_not(kernel):
    profile = {"kernels": [{"name": kernel, "ms": 1.0}]}
    assert library_only.own_kernels(profile) == ({kernel: 1.0}, 1.0)
    assert library_only.own_kernels(profile, Origin([INLINE])) == ({}, 0)
    with pytest.raises(CandidateFailure, match="none of its sources and binaries name") as error:
        library_only.check(profile, library_only.own_kernels(profile, Origin([INLINE]))[1])
    assert error.value.rule == "library_only"


def test_sources_that_a_solution_includes_names_or_imports_are_its_own(tmp_path):
    (tmp_path / "kernels.cuh").write_text("__global__ void from_a_header() {}")
    (tmp_path / "helper.py").write_text(TRITON)
    (tmp_path / "1_19.cu").write_text('#include "kernels.cuh"\n')
    (tmp_path / "1_20.py").write_text("from helper import _layer_norm_fwd as norm\nimport torch\nfiles = ['more.cu']")
    (tmp_path / "more.cu").write_text("__global__ void from_a_file() {}")

    def origin(name):
        return Origin.of(read_solution(tmp_path / name, tmp_path, ProblemId(1, 19)))

    assert origin("1_19.cu").has("from_a_header()") and not origin("1_19.cu").has("from_a_file()")
    assert origin("1_20.py").has("_layer_norm_fwd") and origin("1_20.py").has("from_a_file()")
