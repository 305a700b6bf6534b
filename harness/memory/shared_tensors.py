"""Memory that the judge owns and a worker writes tensors into.

The judge knows the shapes to expect, so it makes the memory and the worker
only fills it: nothing that a candidate says is ever opened or unpickled. On a
CUDA device it is one allocation shared through CUDA IPC; on a CPU, and where the
driver offers no IPC, it is an anonymous shared file.

The judge copies a tensor out of the outbox before it looks at it, because the
worker can still write there; on a GPU only where it looks at an element twice.
"""

from __future__ import annotations

import fcntl
import math
import mmap
import os
from dataclasses import dataclass

import torch

from harness.memory.cuda_driver import DriverError
from harness.memory.cuda_ipc import DeviceMemory
from harness.tensors.outputs import as_tensor

_ALIGNMENT = 256


@dataclass(frozen=True)
class Slot:
    """Place of one tensor in shared memory."""

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


def size_for(*contents: list[torch.Tensor]) -> int:
    """Return the bytes that hold each of the lists of tensors, one list at a time; at least one."""
    ends = [slot.offset + slot.bytes for tensors in contents for slot in lay_out(tensors)]
    return max(ends, default=0) or 1


def shared_file(size: int) -> int:
    """Return a descriptor of a new file in memory. Its holders may write, but not shrink it under a reader.

    Nor may they grow it: what it has then would be in no process of theirs.
    """
    descriptor = os.memfd_create("kb-shared", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.truncate(descriptor, size)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return descriptor


class SharedTensors:
    """The judge's end, with room for each of the lists of tensors, one list at a time.

    ``handle`` and ``fds`` are what the worker needs to open its own; where it holds
    a ``file`` in memory already, of ``size_for`` them or more, that one is used.
    """

    def __init__(self, device: torch.device, *contents: list[torch.Tensor], file: int | None = None):
        self.device = device
        size = size_for(*contents)
        self.handle: dict = {"bytes": size}
        self.fds: list[int] = []
        self._cuda = None
        self._map: mmap.mmap | None = None
        if device.type == "cuda":
            try:
                self._cuda = DeviceMemory.allocate(size)
                self.handle |= {"bytes": self._cuda.bytes, "ipc": self._cuda.export().hex()}
            except DriverError:
                self.close()
        if self._cuda is None:
            self._file = shared_file(size) if file is None else file
            self.fds = [self._file] if file is None else []

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
        return copy.copy_(torch.frombuffer(data, dtype=torch.uint8).view(slot.dtype).view(slot.shape))

    def look(self, slot: Slot) -> torch.Tensor:
        """Return one tensor to be looked at once: on a GPU the memory itself, which the worker may change meanwhile."""
        return self._cuda.view(slot.shape, slot.dtype, slot.offset) if self._cuda else self.read(slot)

    def view(self, slot: Slot) -> torch.Tensor:
        """A file's memory itself as a tensor, which the worker may change at any moment; valid until ``close``."""
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


class OpenedSharedTensors:
    """The worker's end: write only."""

    def __init__(self, handle: dict, fds: list[int]):
        self._cuda, self._ipc = None, handle.get("ipc")
        if self._ipc:
            torch.cuda.synchronize()  # makes torch's context current
            self._cuda = DeviceMemory.open(bytes.fromhex(self._ipc))
        self._map = None if self._cuda else mmap.mmap(fds[0], handle["bytes"])

    @property
    def exported(self) -> dict[int, str]:
        """Return where it lies, and by which handle others know it, if it is device memory."""
        return {self._cuda.address: self._ipc} if self._cuda else {}

    def write(self, slot: Slot, tensor: torch.Tensor) -> None:
        if slot.bytes == 0:
            return
        tensor = as_tensor(tensor.detach()).contiguous()
        if self._cuda:
            torch.cuda.synchronize()
            self._cuda.copy_in(tensor.data_ptr(), slot.offset, slot.bytes)
            return
        raw = self.view(Slot((slot.bytes,), torch.uint8, slot.offset))
        raw.copy_(tensor.reshape(-1).view(torch.uint8))  # byte by byte, whatever the type

    def close(self) -> None:
        """Give up what is device memory; no view of it may be used any more."""
        if self._cuda:
            self._cuda.close()

    def view(self, slot: Slot) -> torch.Tensor:
        """The memory itself as a tensor."""
        if self._cuda:
            return self._cuda.view(slot.shape, slot.dtype, slot.offset)
        return _mapped(self._map, slot)


def _mapped(memory: mmap.mmap, slot: Slot) -> torch.Tensor:
    if slot.bytes == 0:
        return torch.empty(slot.shape, dtype=slot.dtype)
    raw = torch.frombuffer(memory, dtype=torch.uint8, count=slot.bytes, offset=slot.offset)
    return raw.view(slot.dtype).view(slot.shape)
