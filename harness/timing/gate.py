"""A burst of calls between two moments of the judge's own clock.

The side that runs the calls enqueues them all, each behind a gate of its own and followed by a mark. Only when
they wait on the device, the judge has its own stream fill in the inputs of a call, open its gate, wait for its
mark, and go on with the next. So no launch is in between, and no input exists before the outputs of the call before.

Gate and mark are two words of host memory that device and both processes share, and that count calls: the device
waits and writes in stream order (``cuStreamWaitValue32``), the host writes and reads without a device being busy.
"""

from __future__ import annotations

import ctypes
import mmap
import time

import torch

from harness.memory import cuda_driver
from harness.memory.shared_tensors import shared_file

_BYTES = mmap.PAGESIZE
_GATE, _MARK = 0, 64  # offsets, on cache lines of their own
_WAIT_GEQ = 0  # CU_STREAM_WAIT_VALUE_GEQ
_MAP_DEVICE = 2  # CU_MEMHOSTREGISTER_DEVICEMAP


class GateError(Exception):
    """The device or driver has no stream-ordered waits on host memory."""


class Gate:
    """The two words, as seen by one process. ``fd`` is a file in memory that the other process may map too.

    A stream is given as the driver's handle; without one it is torch's current stream.
    """

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
        return shared_file(_BYTES)

    def hold(self, number: int, stream: int | None = None) -> None:
        """Have the stream wait until the gate is opened for call ``number``."""
        self._stream("cuStreamWaitValue32_v2", _GATE, number, _WAIT_GEQ, stream)

    def mark(self, number: int, stream: int | None = None) -> None:
        """Have the stream mark call ``number`` as done when it gets here."""
        self._stream("cuStreamWriteValue32_v2", _MARK, number, 0, stream)

    def hold_for_mark(self, number: int, stream: int) -> None:
        """Have the stream wait until call ``number`` is done."""
        self._stream("cuStreamWaitValue32_v2", _MARK, number, _WAIT_GEQ, stream)

    def open_from(self, number: int, stream: int) -> None:
        """Have the stream open the gate for call ``number`` when it gets here."""
        self._stream("cuStreamWriteValue32_v2", _GATE, number, 0, stream)

    def open(self, number: int) -> None:
        self._words[_GATE // 4] = number

    def release(self, number: int) -> None:
        """Release all waits for calls up to ``number``, for their gates or their marks."""
        self._words[_GATE // 4] = self._words[_MARK // 4] = number

    def await_mark(self, number: int, timeout_s: float) -> float:
        """The moment (``perf_counter``) at which call ``number`` was seen to be done; else raises TimeoutError."""
        deadline = time.perf_counter() + timeout_s
        mark = _MARK // 4
        while self._words[mark] != number:
            if time.perf_counter() > deadline:
                raise TimeoutError(f"call {number} was not done within {timeout_s:g} s")
        return time.perf_counter()

    def close(self) -> None:
        _call("cuMemHostUnregister", ctypes.c_void_p(ctypes.addressof(self._words)))
        del self._words
        self._map.close()

    def _stream(self, function: str, offset: int, number: int, flags: int, stream: int | None) -> None:
        handle = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream if stream is None else stream)
        _call(function, handle, ctypes.c_uint64(self._pointer + offset), ctypes.c_uint32(number), flags)


def _call(function: str, *arguments) -> None:
    cuda_driver.call(function, *arguments, raises=GateError)
