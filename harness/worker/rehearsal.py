"""Calls without a candidate: what the way to a worker and back takes, in a process that never holds one."""

from __future__ import annotations

import os
import threading

import torch

from harness.problem.inputs import seed_generators
from harness.process.spawn import close_all_but, descriptors
from harness.timing.gate import Gate


class Rehearsal:
    """``fds`` are what the process inherited; the last is the file of the judge's gate, where there is one."""

    def __init__(self, fds: list[int]):
        self._fds = fds
        self._waiting: list[threading.Event] = []
        self._children: list[tuple[int, int]] = []  # number, and the end of a pipe that it waits at
        self._gate: Gate | None = None

    def hold(self, threads: int, processes: int) -> dict:
        """Have this process consist of so many threads, and so many processes belong to it; all but one wait.

        Answers whether any are new: calls right after that take longer, as what a fork shares is copied where it is
        written to.
        """
        grows = len(self._children) < processes - 1 or len(self._waiting) < threads - 1
        while self._children and len(self._children) > processes - 1:
            pid, end = self._children.pop()
            os.close(end)
            os.waitpid(pid, 0)
        while len(self._children) < processes - 1:
            self._children.append(_waiting_child())
        while len(self._waiting) < threads - 1:
            self._waiting.append(threading.Event())
            threading.Thread(target=self._waiting[-1].wait, daemon=True).start()
        while self._waiting and len(self._waiting) > threads - 1:
            self._waiting.pop().set()
        return {"grew": grows}

    def rehearse(self, seeds: list[int]) -> dict:
        """Answer like a burst of so many calls on a CPU, without a call."""
        left = []
        for seed in seeds:
            seed_generators(seed, torch.device("cpu"))
            left.append(torch.empty(0))
        return {"orders": [[0] for _ in left], "addresses": [[leaf.data_ptr()] for leaf in left]}

    def rehearse_on_gpu(self, seeds: list[int], number: int) -> dict:
        """Enqueue gates and marks like a burst of so many calls, from ``number`` on, around the least of kernels.

        Without one the device would have no need to turn to this process, which sees no other device.
        """
        device = torch.device("cuda", 0)
        if self._gate is None:
            torch.cuda.set_device(device)
            self._gate, self._word = Gate(self._fds[-1]), torch.zeros(1, device=device)
        for call, seed in enumerate(seeds):
            seed_generators(seed, device)
            self._gate.hold(number + call)
            self._word.zero_()
            self._gate.mark(number + call)
        return {"addresses": [[self._word.data_ptr()] for _ in seeds]}


def _waiting_child() -> tuple[int, int]:
    """A fork that waits until the end of a pipe that is given with its number is closed; it waits already."""
    (read, write), (started, tell) = os.pipe(), os.pipe()
    opened = descriptors()
    pid = os.fork()
    if pid == 0:
        close_all_but([read, tell], opened)
        os.write(tell, b".")
        os.read(read, 1)
        os._exit(0)
    os.close(read)
    os.close(tell)
    os.read(started, 1)
    os.close(started)
    return pid, write
