"""Memory that the judge owns and a worker writes tensors into.

The judge knows the shapes to expect, so it makes the memory and the worker
only fills it: nothing that a candidate says is ever opened or unpickled. On a
CUDA device it is one allocation shared through CUDA IPC, in whole 2 MiB so that
it shares its pages with nothing else; on a CPU, and where the driver offers no
IPC, it is an anonymous shared file.

The judge copies a tensor out of the outbox before it looks at it, because the
worker can still write there.
"""

from __future__ import annotations

import ctypes
import fcntl
import math
import mmap
import os
from dataclasses import dataclass

import torch

from harness import cuda_driver
from harness.cuda_driver import DriverError

_ALIGNMENT = 256
_PAGE = 2 << 20


@dataclass(frozen=True)
class Slot:
    """Where one tensor lies in the outbox."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    offset: int

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def lay_out(tensors: list[torch.Tensor]) -> list[Slot]:
    """A slot for each tensor, one behind the other."""
    slots, offset = [], 0
    for tensor in tensors:
        slots.append(Slot(tuple(tensor.shape), tensor.dtype, offset))
        offset += -(-slots[-1].bytes // _ALIGNMENT) * _ALIGNMENT
    return slots


def shared_file() -> int:
    """A descriptor of a new file in memory. Whoever holds it may write, and not take pages away under one who reads."""
    descriptor = os.memfd_create("kb-shared", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
    return descriptor


class Outbox:
    """The judge's end, with room for each of the lists of tensors, one list at a time.

    ``handle`` and ``fds`` are what the worker needs to open its own; where it holds
    a ``file`` in memory already, that one is used.
    """

    def __init__(self, device: torch.device, *contents: list[torch.Tensor], file: int | None = None):
        self.device = device
        ends = [slot.offset + slot.bytes for tensors in contents for slot in lay_out(tensors)]
        size = -(-max(ends, default=1) // _PAGE) * _PAGE or _PAGE
        self.handle: dict = {"bytes": size}
        self.fds: list[int] = []
        self._cuda = None
        self._map: mmap.mmap | None = None
        if device.type == "cuda":
            try:
                self._cuda = _CudaMemory.allocate(size)
                self.handle["ipc"] = self._cuda.export().hex()
            except DriverError:
                self.close()
        if self._cuda is None:
            self._file = shared_file() if file is None else file
            self.fds = [self._file] if file is None else []
            if os.fstat(self._file).st_size < size:
                os.truncate(self._file, size)

    def read(self, slot: Slot) -> torch.Tensor:
        """A private copy of one tensor, on the device."""
        copy = torch.empty(slot.shape, dtype=slot.dtype, device=self.device)
        if slot.bytes == 0:
            return copy
        if self._cuda:
            self._cuda.copy_out(copy.data_ptr(), slot.offset, slot.bytes)
            return copy
        data = bytearray(slot.bytes)
        view, done = memoryview(data), 0
        while done < slot.bytes:  # one call moves 2 GiB at most
            done += os.preadv(self._file, [view[done:]], slot.offset + done)
        return copy.copy_(torch.frombuffer(data, dtype=slot.dtype).view(slot.shape))

    @property
    def on_device(self) -> bool:
        """False on a GPU whose driver does not share memory, or has none left."""
        return self._cuda is not None

    def view(self, slot: Slot) -> torch.Tensor:
        """The memory itself as a tensor, which the worker may change at any moment; valid until ``close``."""
        if self._cuda:
            return self._cuda.view(slot)
        if self._map is None:
            self._map = mmap.mmap(self._file, self.handle["bytes"])
        return _mapped(self._map, slot)

    def close(self) -> None:
        self._map = None  # unmapped with its last view
        if self._cuda:
            self._cuda.free()
            self._cuda = None
        for fd in self.fds:
            os.close(fd)
        self.fds = []


class OpenedOutbox:
    """The worker's end: write only."""

    def __init__(self, handle: dict, fds: list[int]):
        self._cuda = _CudaMemory.open(bytes.fromhex(handle["ipc"])) if "ipc" in handle else None
        self._map = None if self._cuda else mmap.mmap(fds[0], handle["bytes"])

    def write(self, slot: Slot, tensor: torch.Tensor) -> None:
        tensor = tensor.detach().contiguous()
        if slot.bytes == 0:
            return
        if self._cuda:
            torch.cuda.synchronize()
            self._cuda.copy_in(tensor.data_ptr(), slot.offset, slot.bytes)
            return
        self.view(slot).copy_(tensor)

    def view(self, slot: Slot) -> torch.Tensor:
        """The memory itself as a tensor."""
        return self._cuda.view(slot) if self._cuda else _mapped(self._map, slot)


def _mapped(memory: mmap.mmap, slot: Slot) -> torch.Tensor:
    if slot.bytes == 0:
        return torch.empty(slot.shape, dtype=slot.dtype)
    flat = torch.frombuffer(memory, dtype=slot.dtype, count=math.prod(slot.shape), offset=slot.offset)
    return flat.view(slot.shape)


def device_bytes() -> int:
    """Of device memory that this process's outboxes hold, besides what PyTorch knows of."""
    return _CudaMemory.held


class _CudaMemory:
    """A raw device allocation of the driver API, in the context that torch made current."""

    held = 0  # bytes, of all that this process allocated

    def __init__(self, pointer: ctypes.c_uint64, size: int = 0):
        self._pointer, self._size = pointer, size

    @classmethod
    def allocate(cls, size: int) -> _CudaMemory:
        torch.cuda.synchronize()  # makes torch's context current
        pointer = ctypes.c_uint64()
        cuda_driver.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        _CudaMemory.held += size
        return cls(pointer, size)

    @classmethod
    def open(cls, handle: bytes) -> _CudaMemory:
        torch.cuda.synchronize()
        pointer = ctypes.c_uint64()
        lazy_peer_access = ctypes.c_uint(1)
        exported = _IpcHandle.from_buffer_copy(handle)
        cuda_driver.call("cuIpcOpenMemHandle_v2", ctypes.byref(pointer), exported, lazy_peer_access)
        return cls(pointer)

    def export(self) -> bytes:
        handle = _IpcHandle()
        cuda_driver.call("cuIpcGetMemHandle", ctypes.byref(handle), self._pointer)
        return bytes(handle)

    def copy_out(self, target: int, offset: int, size: int) -> None:
        self._copy(target, self._pointer.value + offset, size)

    def copy_in(self, source: int, offset: int, size: int) -> None:
        self._copy(self._pointer.value + offset, source, size)

    def view(self, slot: Slot) -> torch.Tensor:
        if slot.bytes == 0:
            return torch.empty(slot.shape, dtype=slot.dtype, device="cuda")
        interface = {"shape": (slot.bytes,), "typestr": "|u1", "data": (self._pointer.value + slot.offset, False)}
        raw = torch.as_tensor(_Raw({**interface, "version": 3}), device="cuda")
        return raw.view(slot.dtype).view(slot.shape)

    def free(self) -> None:
        cuda_driver.call("cuMemFree_v2", self._pointer)
        _CudaMemory.held -= self._size

    @staticmethod
    def _copy(target: int, source: int, size: int) -> None:
        cuda_driver.call("cuMemcpyDtoD_v2", ctypes.c_uint64(target), ctypes.c_uint64(source), ctypes.c_size_t(size))
        cuda_driver.call("cuCtxSynchronize")


class _Raw:
    """Device memory as torch takes it over from other libraries."""

    def __init__(self, interface: dict):
        self.__cuda_array_interface__ = interface


class _IpcHandle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * 64)]

    def __bytes__(self) -> bytes:
        return ctypes.string_at(ctypes.addressof(self), 64)
