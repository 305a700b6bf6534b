"""Memory that an evaluation needs at least, told from shapes alone."""

import ctypes
import os

import pytest
import torch

from harness.faults import NoRoom
from harness.judge.conditions import Conditions
from harness.judge.reference.memory_needs import check_room, need_of
from harness.process.procfs import usage
from harness.sol.operators import trace
from harness.timing.wall_clock import WallClock

CHAIN = """import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1000))
    def forward(self, x):
        a = x + self.scale
        b = a * 2
        c = b - 1
        return c.view(10, 100, 1000)
def get_inputs(): return [torch.rand(1000, 1000)]
def get_init_inputs(): return []
"""


def test_what_is_needed_is_what_lives_at_once(write_problem):
    need = need_of(trace(write_problem(CHAIN).workload("full")))
    assert (need.inputs, need.outputs, need.weights) == (4_000_000, 4_000_000, 4_000)
    assert need.peak == 3 * 4_000_000, "the input, and of the results no more than the last two"
    assert need.together == 24_016_000, "worker, judge and the memory between them"


def test_what_the_candidates_process_may_not_take_is_told_before_it_is_tried(write_problem):
    conditions = Conditions(torch.device("cpu"), memory_bytes=8_000_000)
    with pytest.raises(NoRoom, match=r"needs 0.00801 GB for the candidate's process, 0.008 are allowed: .*--memory"):
        check_room(write_problem(CHAIN).workload("full"), conditions)
    check_room(write_problem(CHAIN).workload("full"), Conditions(torch.device("cpu")))


def test_a_full_size_for_a_gpu_does_not_fit_a_small_host(problem, monkeypatch):
    monkeypatch.setattr("harness.judge.reference.memory_needs.available_memory_bytes", lambda: 20 << 30)
    with pytest.raises(NoRoom, match=r"needs 32.2 GB, 21.5 are free: problem 1/19 \(full, fp32\) on cpu"):
        check_room(problem("1/19").workload("full"), Conditions(torch.device("cpu")))


def test_memory_that_this_process_keeps_of_other_problems_is_given_back_before_one_is_refused(problem, monkeypatch):
    """Whoever was judged before decided whether a neighbour's large problem had room."""
    libc, size = ctypes.CDLL(None), 256 << 20
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    WallClock(torch.device("cpu"))  # has large blocks come from the heap, and stay there
    pieces = [libc.malloc(1 << 20) for _ in range(size >> 20)]
    for piece in pieces:
        ctypes.memset(piece, 1, 1 << 20)
    for piece in pieces:
        libc.free(piece)
    kept = usage([os.getpid()]).private
    seen = []

    def available():
        seen.append(usage([os.getpid()]).private)
        return 20 << 30

    monkeypatch.setattr("harness.judge.reference.memory_needs.available_memory_bytes", available)
    with pytest.raises(NoRoom):
        check_room(problem("1/19").workload("full"), Conditions(torch.device("cpu")))
    assert seen[-1] < kept - size // 2
