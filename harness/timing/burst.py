"""A burst of calls between two moments of the judge's own clock.

The side that runs the calls enqueues them all behind a gate; only when they wait on
the device, the judge fills in the inputs, opens the gate and watches for the mark that
follows the last output. So no launch is in between.

Gate and mark are two words of host memory that device and both processes share:
the device waits and writes in stream order (``cuStreamWaitValue32``), the judge
writes and reads without a device of its own being busy.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import time

import torch

from harness import cuda_driver
from harness.outbox import shared_file

_BYTES = mmap.PAGESIZE
_GATE, _MARK = 0, 64  # offsets, on cache lines of their own
_WAIT_GEQ = 0
_MAP_DEVICE = 2  # CU_MEMHOSTREGISTER_DEVICEMAP


class GateError(Exception):
    """The device or driver has no stream-ordered waits on host memory."""


class Gate:
    """The two words, as seen by one process. ``fd`` is a file in memory that the other process maps too."""

    def __init__(self, fd: int):
        self._map = mmap.mmap(fd, _BYTES)
        self._words = (ctypes.c_uint32 * (_BYTES // 4)).from_buffer(self._map)
        torch.cuda.synchronize()  # makes torch's context current
        address = ctypes.addressof(self._words)
        _call("cuMemHostRegister_v2", ctypes.c_void_p(address), ctypes.c_size_t(_BYTES), _MAP_DEVICE)
        pointer = ctypes.c_uint64()
        _call("cuMemHostGetDevicePointer_v2", ctypes.byref(pointer), ctypes.c_void_p(address), 0)
        self._pointer = pointer.value

    @staticmethod
    def file() -> int:
        """A new file in memory for the two words."""
        fd = shared_file()
        os.truncate(fd, _BYTES)
        return fd

    def hold(self, number: int) -> None:
        """From here on the current stream waits until the gate is opened for burst ``number``."""
        self._stream("cuStreamWaitValue32_v2", _GATE, number, _WAIT_GEQ)

    def mark(self, number: int) -> None:
        """When the current stream gets here, burst ``number`` is done."""
        self._stream("cuStreamWriteValue32_v2", _MARK, number, 0)

    def open(self, number: int) -> None:
        self._words[_GATE // 4] = number

    def await_mark(self, number: int, timeout_s: float) -> float:
        """The moment (``perf_counter``) at which burst ``number`` was seen to be done; else raises TimeoutError."""
        deadline = time.perf_counter() + timeout_s
        mark = _MARK // 4
        while self._words[mark] != number:
            if time.perf_counter() > deadline:
                raise TimeoutError(f"burst {number} was not done within {timeout_s:g} s")
        return time.perf_counter()

    def close(self) -> None:
        _call("cuMemHostUnregister", ctypes.c_void_p(ctypes.addressof(self._words)))
        del self._words
        self._map.close()

    def _stream(self, function: str, offset: int, number: int, flags: int) -> None:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        _call(function, stream, ctypes.c_uint64(self._pointer + offset), ctypes.c_uint32(number), flags)


def _call(function: str, *arguments) -> None:
    cuda_driver.call(function, *arguments, raises=GateError)
