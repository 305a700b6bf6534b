"""A call that is quick by luck tells nothing of the others."""

import pytest

from harness.result import Status

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x.norm()
def get_inputs(): return [torch.rand(1 << 22)]
def get_init_inputs(): return []
"""
# It works in a process that ends within the call, where nobody sees its CPU time: one call of four for 30 ms, the
# others for 150. The clock of its worker tells 20 ms of each.
CANDIDATE = """
import mmap, os, random, struct, time
import torch

real, hidden = time.perf_counter, [0.0]
for name, unit in (("perf_" + "counter", 1.0), ("perf_" + "counter_ns", 1e9)):
    clock = getattr(time, name)
    setattr(time, name, lambda clock=clock, unit=unit: clock() - type(clock())(hidden[0] * unit))


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.memory = hidden, mmap.mmap(-1, 8)

    def forward(self, x):
        begin, work_s = real(), 0.03 if random.random() > 0.75 else 0.15
        child = os.fork()
        if child == 0:
            torch.set_num_threads(1)
            self.memory[:] = struct.pack("d", x.norm().item())
            while real() - begin < work_s:
                pass
            os._exit(0)
        os.waitpid(child, 0)
        self.hidden[0] += real() - begin - 0.02
        return torch.tensor(struct.unpack("d", self.memory[:])[0], dtype=x.dtype)
"""


@pytest.mark.slow
def test_work_in_processes_that_end_is_told_as_most_calls_take_and_not_the_luckiest(judged, write_problem):
    result = judged(write_problem(PROBLEM), CANDIDATE)
    assert result.status is Status.OK, result.message
    assert result.timing["median_ms"] > 100, result.timing["cross_check"]
