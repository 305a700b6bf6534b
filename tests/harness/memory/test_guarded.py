import os
import subprocess
import sys

import pytest
import torch

from harness.memory.guarded import GuardedBuffers, UnguardedBuffers
from harness.result import Status

READ_PAST = """
import ctypes, torch
from harness.memory.guarded import GuardedBuffers
copy = GuardedBuffers().hold(torch.zeros({count}), "x")
print(ctypes.string_at(copy.data_ptr() + 4 * {count}, {bytes}).hex())
"""
CPP = """#include <cstddef>
static int calls = 0;
extern "C" void solution(const float* x, float* out, size_t batch_size, size_t dim) {{
    size_t n = batch_size * dim;
    ++calls;
    for (size_t i = 0; i < n; ++i) out[i] = x[i] > 0 ? x[i] : 0;
    {}
}}
"""


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool])
@pytest.mark.parametrize("shape", [(1,), (3, 5), (16,), (1024, 33)])
def test_a_copy_is_equal_and_aligned_and_its_surroundings_are_whole(shape, dtype):
    guards, tensor = GuardedBuffers(), torch.rand(shape).mul(100).to(dtype)
    copy = guards.hold(tensor, "x")
    assert torch.equal(copy, tensor) and copy.data_ptr() % 64 == 0 and copy.data_ptr() != tensor.data_ptr()
    assert guards.overruns() == []


def test_without_guards_a_tensor_is_taken_as_it_is():
    guards, tensor = UnguardedBuffers(), torch.rand(4)
    assert guards.hold(tensor, "x") is tensor and guards.overruns() == []


@pytest.mark.parametrize("offset, where", [(-1, "before x"), (5, "behind x"), (15, "behind x")])
def test_a_write_beside_it_is_told(offset, where):
    guards = GuardedBuffers()
    copy = guards.hold(torch.zeros(5), "x")
    torch.as_strided(copy, (1,), (1,), copy.storage_offset() + offset).fill_(0)
    assert guards.overruns() == [where]
    guards.begin()
    assert guards.overruns() == []


def test_what_lasts_is_looked_at_in_later_rounds_too():
    guards = GuardedBuffers()
    weight = guards.hold(torch.zeros(5), "weight", lasting=True)
    guards.begin()
    torch.as_strided(weight, (1,), (1,), weight.storage_offset() + 5).fill_(0)
    assert guards.overruns() == ["behind weight"]


@pytest.mark.slow
def test_behind_the_alignment_no_byte_can_be_read():
    def run(count, size):
        command = [sys.executable, "-c", READ_PAST.format(count=count, bytes=size)]
        return subprocess.run(command, capture_output=True, text=True, cwd=os.getcwd())

    assert run(17, 60).stdout.strip() == "a5" * 60  # 17 elements end 60 bytes before a multiple of 64
    assert run(17, 61).returncode < 0 and run(16, 1).returncode < 0


def test_empty_and_strided_tensors_stay_as_they_are():
    guards = GuardedBuffers()
    for tensor in (torch.empty(0), torch.rand(4, 5).t()):
        assert guards.hold(tensor, "x") is tensor


@pytest.mark.slow
def test_an_honest_library_is_ok(judged, problem):
    assert judged(problem("1/19"), CPP.format(""), ".cpp").status is Status.OK


@pytest.mark.parametrize(
    "line, where",
    [("out[-1] = 0;", "before output 0"), ("const_cast<float*>(x)[-1] = 0;", "before input 0")],
    ids=["output", "input"],
)
def test_a_library_that_writes_beside_its_buffers_is_rejected(judged, problem, line, where):
    result = judged(problem("1/19"), CPP.format(line), ".cpp")
    assert (result.status, result.rule) == (Status.REJECTED, "out_of_bounds") and where in result.message


def test_one_that_does_so_only_in_later_calls_is_rejected_too(judged, problem):
    result = judged(problem("1/19"), CPP.format("if (calls > 30) out[-1] = 0;"), ".cpp")
    assert (result.status, result.rule) == (Status.REJECTED, "out_of_bounds")


@pytest.mark.parametrize("line", ["out[n] = 0;", "volatile float next = x[n];"])
def test_one_that_passes_the_end_crashes(judged, problem, line):
    result = judged(problem("1/19"), CPP.format(line), ".cpp")
    assert result.status is Status.CRASHED and "SIGSEGV" in result.message and "guard page" in result.message


@pytest.mark.gpu
def test_a_write_beside_a_buffer_of_a_gpu_is_told():
    guards = GuardedBuffers()
    copy = guards.hold(torch.zeros(5, device="cuda"), "x")
    assert copy.data_ptr() % 256 == 0 and guards.overruns() == []
    torch.as_strided(copy, (1,), (1,), copy.storage_offset() + 5).fill_(0)
    assert guards.overruns() == ["behind x"]
