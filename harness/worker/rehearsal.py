"""Calls without a candidate: what the way to a worker and back takes, in a process that never holds one."""

from __future__ import annotations

import threading
import time

import torch

from harness.problem.inputs import seed_generators
from harness.process import protocol
from harness.timing.gate import Gate


class Rehearsal:
    """``fds`` are what the process inherited; the last is the file of the judge's gate, where there is one."""

    def __init__(self, fds: list[int]):
        self._fds = fds
        self._waiting: list[threading.Event] = []
        self._gate: Gate | None = None
        self._began = (0.0, 0.0)  # wall time and CPU time when the request at hand arrived

    def begin(self) -> None:
        """Note that a request arrives."""
        self._began = time.perf_counter(), time.thread_time()

    def hold(self, threads: int) -> dict:
        """Have this process consist of so many threads; all but one wait."""
        while len(self._waiting) < threads - 1:
            self._waiting.append(threading.Event())
            threading.Thread(target=self._waiting[-1].wait, daemon=True).start()
        while self._waiting and len(self._waiting) > threads - 1:
            self._waiting.pop().set()
        return {"ok": True}

    def rehearse(self, seeds: list[int]) -> dict:
        """Answer like a burst on a CPU, without a call; say for how many ms Python worked at that.

        A candidate may answer by itself, in native code, for which that is nothing.
        """
        answer = {"orders": [[0] for _ in seeds], "addresses": [[0] for _ in seeds], "wall_ms": 0.0, "cpu_ms": 0.0}
        protocol.encoded(answer)
        began, began_cpu = self._began
        wall_ms, cpu_ms = (time.perf_counter() - began) * 1e3, (time.thread_time() - began_cpu) * 1e3
        return answer | {"wall_ms": wall_ms, "cpu_ms": cpu_ms}

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
