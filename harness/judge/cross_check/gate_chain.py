"""The calls of a burst on a GPU, one after the other by the judge's own stream: no host has a part in it.

For each call the stream copies its inputs to where the worker sees them, opens the call's gate, waits for its mark
and reads pieces of its outputs. So inputs come to exist when the outputs of the call before have been read, and a
mark that comes too early is seen in the pieces.
"""

from __future__ import annotations

import os
import time

from harness.judge.cross_check.burst_inputs import BurstInputs
from harness.judge.cross_check.output_samples import OutputSamples
from harness.timing.gate import Gate


class GateChain:
    """``gate`` is shared with a worker. Start and end of the chain are on another, which no worker sees."""

    def __init__(self, gate: Gate, pieces: OutputSamples):
        self._gate, self._pieces = gate, pieces
        self._file = Gate.file()
        self._own = Gate(self._file)

    def enqueue(self, inputs: BurstInputs, number: int, calls: int) -> None:
        """Have it wait for ``run``; the worker's calls from ``number`` on wait behind the gate."""
        stream = self._pieces.stream.cuda_stream
        self._own.hold(number, stream)
        for call in range(calls):
            inputs.copy(call, stream)
            self._gate.open_from(number + call, stream)
            self._gate.hold_for_mark(number + call, stream)
            self._pieces.take(call)
        self._own.mark(number, stream)

    def run(self, number: int, calls: int, timeout_s: float) -> float:
        """Return how many ms the chain takes; raise TimeoutError where that is longer than ``timeout_s``."""
        begin = time.perf_counter()
        self._own.open(number)
        try:
            return (self._own.await_mark(number, timeout_s) - begin) * 1e3
        except TimeoutError:
            self._gate.release(number + calls - 1)  # else this process would wait for ever as well
            raise

    def close(self) -> None:
        self._own.close()
        os.close(self._file)
