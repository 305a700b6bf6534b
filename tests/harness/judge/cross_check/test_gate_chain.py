"""The order in which the judge's stream has a GPU work on a burst, on a driver that only pretends to have one.

It keeps queues of operations, one a stream, and runs them on host memory, one after the other, as a device does.
"""

import collections
import ctypes
import threading
import time
from types import SimpleNamespace

import pytest
import torch

from harness.judge.cross_check.burst_inputs import BurstInputs
from harness.judge.cross_check.gate_chain import GateChain
from harness.judge.cross_check.output_samples import PIECES, OutputSamples
from harness.memory import cuda_driver
from harness.timing.gate import Gate
from harness.timing.rounds import InputCase

JUDGES, WORKERS, FIRST, CALLS, SIZE = 1, 2, 10, 5, 3000
A_CALL = -(-PIECES // CALLS)


class Driver:
    """Of what the driver has, what is used here; ``done`` are the names of what streams have done."""

    def __init__(self):
        self.streams = collections.defaultdict(collections.deque)
        self.done, self._memory, self._ended = [], [], threading.Event()

    def enqueue(self, stream, name, action, ready=lambda: True):
        self.streams[stream].append((name, action, ready))

    def work(self):
        """Until told to end: the first of each stream's operations, as soon as it is ready."""
        while not self._ended.wait(1e-4):
            for queue in list(self.streams.values()):
                while queue and queue[0][2]():
                    queue[0][1]()
                    self.done.append(queue.popleft()[0])

    def drain(self, stream):
        while self.streams[stream]:
            time.sleep(1e-3)

    def __enter__(self):
        self._thread = threading.Thread(target=self.work)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def cuMemHostRegister_v2(self, address, size, flags):
        return 0

    def cuMemHostUnregister(self, address):
        return 0

    def cuMemHostGetDevicePointer_v2(self, pointer, address, flags):
        pointer._obj.value = address.value
        return 0

    def cuMemAlloc_v2(self, pointer, size):
        self._memory.append(ctypes.create_string_buffer(size.value))
        pointer._obj.value = ctypes.addressof(self._memory[-1])
        return 0

    def cuMemFree_v2(self, address):
        return 0

    def cuIpcGetMemHandle(self, handle, address):
        return 0

    def cuStreamWaitValue32_v2(self, stream, address, value, flags):
        word = ctypes.c_uint32.from_address(address.value)
        self.enqueue(stream.value, "wait", lambda: None, lambda: word.value >= value.value)
        return 0

    def cuStreamWriteValue32_v2(self, stream, address, value, flags):
        word = ctypes.c_uint32.from_address(address.value)
        self.enqueue(stream.value, "write", lambda: setattr(word, "value", value.value))
        return 0

    def cuMemcpyDtoDAsync_v2(self, target, source, size, stream):
        self.enqueue(stream.value, "fill", lambda: ctypes.memmove(target.value, source.value, size.value))
        return 0

    def cuMemcpyDtoHAsync_v2(self, target, source, size, stream):
        self.enqueue(stream.value, "piece", lambda: ctypes.memmove(target.value, source.value, size.value))
        return 0


@pytest.fixture
def driver(monkeypatch):
    driver = Driver()
    monkeypatch.setattr(cuda_driver, "library", lambda: driver)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    stream = SimpleNamespace(cuda_stream=JUDGES, synchronize=lambda: driver.drain(JUDGES))
    monkeypatch.setattr(torch.cuda, "Stream", lambda: stream)
    return driver


class Burst:
    """One of ``CALLS`` calls that double their input, enqueued on both sides; ``mark_early``: before its work."""

    def __init__(self, driver, mark_early=False, endless=False):
        setting = SimpleNamespace(
            device=torch.device("cpu"),
            draw_one=lambda seed, draw=None: [torch.rand(SIZE) + 1],
            timed=InputCase(),
            rare=None,
        )
        self.inputs, self.driver = BurstInputs(setting, CALLS), driver
        self.burst = self.inputs.draw(InputCase())
        self.visible = [self.at(self.inputs.memory.address + slots[0].offset) for slots in self.inputs._slots]
        self.outputs, self.seen = torch.zeros(CALLS, SIZE), []
        file = Gate.file()
        self.theirs, self.gate, self.pieces = Gate(file), Gate(file), OutputSamples()
        for call in range(CALLS):
            self.theirs.hold(FIRST + call, WORKERS)
            if mark_early:
                self.theirs.mark(FIRST + call, WORKERS)
                read = A_CALL * (call + 1)
                driver.enqueue(WORKERS, "idle", list, lambda read=read: driver.done.count("piece") >= read)
            never = endless and call == 2
            driver.enqueue(WORKERS, "call", lambda call=call: self.play(call), lambda never=never: not never)
            self.theirs.mark(FIRST + call, WORKERS)
        self.pieces.begin(CALLS)
        for output in self.outputs:
            self.pieces.choose([(output.data_ptr(), output.nbytes)])
        self.chain = GateChain(self.gate, self.pieces)
        self.chain.enqueue(self.inputs, FIRST, CALLS)

    def at(self, address):
        return torch.frombuffer((ctypes.c_char * (4 * SIZE)).from_address(address), dtype=torch.float32)

    def play(self, call):
        """Which inputs a call could have worked on, and its own work."""
        drawn = [arguments[0] for arguments in self.burst.inputs]
        self.seen.append([torch.equal(*both) for both in zip(self.visible, drawn)])
        self.outputs[call] = 2 * self.visible[call]

    def run(self, timeout_s=20):
        return self.chain.run(FIRST, CALLS, timeout_s)


def test_an_input_exists_when_the_call_before_is_done_and_not_sooner(driver):
    burst = Burst(driver)
    with driver:
        assert burst.run() > 0
        assert burst.pieces.changed() == 0
    assert burst.seen == [[other <= call for other in range(CALLS)] for call in range(CALLS)]
    assert all(torch.equal(output, 2 * i[0]) for output, i in zip(burst.outputs, burst.burst.inputs))


def test_pieces_of_a_calls_outputs_are_read_before_the_next_input_exists(driver):
    burst = Burst(driver)
    with driver:
        burst.run()
    told = [name for name in driver.done if name in ("fill", "call", "piece")]
    assert told == ["fill", "call", *["piece"] * A_CALL] * CALLS


def test_nothing_begins_before_the_judges_clock_does(driver):
    burst = Burst(driver)
    with driver:
        burst.gate.open(FIRST + CALLS)  # as a candidate can, and say that all is done
        burst.gate.release(FIRST + CALLS)
        driver.drain(WORKERS)
        assert "fill" not in driver.done and not any(map(any, burst.seen))


def test_a_mark_before_the_work_is_seen_in_the_pieces(driver):
    burst = Burst(driver, mark_early=True)
    with driver:
        burst.run()
        driver.drain(WORKERS)
        assert burst.pieces.changed() > 0


def test_a_call_that_never_ends_does_not_hold_the_judge(driver):
    burst = Burst(driver, endless=True)
    with driver:
        with pytest.raises(TimeoutError):
            burst.run(timeout_s=0.2)
        driver.drain(JUDGES)
    assert driver.streams[WORKERS], "the worker's stream hangs, until its process is killed"
