"""Device memory that two processes share by CUDA IPC: allocations of the driver, in torch's current context."""

from __future__ import annotations

import ctypes
import math

import torch

from harness.memory import cuda_driver
from harness.memory.cuda_driver import DriverError

_PAGE = 2 << 20


class DeviceMemory:
    """One allocation, of this process or of another that exported it."""

    held = 0  # bytes, of all that this process allocated

    def __init__(self, address: int, size: int):
        self.address, self.bytes = address, size

    @classmethod
    def allocate(cls, size: int) -> DeviceMemory:
        """Allocate whole pages, which are shared with nothing else. Raises torch.OutOfMemoryError where none are free.

        PyTorch's allocator may keep them: ``torch.cuda.empty_cache`` frees them.
        """
        torch.cuda.synchronize()  # makes torch's context current
        pointer = ctypes.c_uint64()
        size = -(-size // _PAGE) * _PAGE
        try:
            cuda_driver.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        except DriverError as error:
            free, _ = torch.cuda.mem_get_info()
            if size <= free:
                raise
            lacking = f"{size / 1e9:.1f} GB are to be shared on the GPU, {free / 1e9:.1f} are free"
            raise torch.OutOfMemoryError(lacking) from error
        DeviceMemory.held += size
        return cls(pointer.value, size)

    @classmethod
    def open(cls, handle: bytes) -> DeviceMemory:
        """Return what another process exported. Raises DriverError where it is no such handle."""
        pointer = ctypes.c_uint64()
        lazy_peer_access = ctypes.c_uint(1)
        exported = _IpcHandle.from_buffer_copy(handle)
        cuda_driver.call("cuIpcOpenMemHandle_v2", ctypes.byref(pointer), exported, lazy_peer_access)
        return cls.around(pointer.value)

    @classmethod
    def around(cls, address: int) -> DeviceMemory:
        """The whole allocation that an address of this process lies in."""
        base, size = ctypes.c_uint64(), ctypes.c_size_t()
        cuda_driver.call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(address))
        return cls(base.value, size.value)

    def export(self) -> bytes:
        """Raises DriverError where the allocation is of a kind that cannot be shared."""
        handle = _IpcHandle()
        cuda_driver.call("cuIpcGetMemHandle", ctypes.byref(handle), ctypes.c_uint64(self.address))
        return bytes(handle)

    def copy_out(self, target: int, offset: int, size: int) -> None:
        copy(target, self.address + offset, size)

    def copy_in(self, source: int, offset: int, size: int) -> None:
        copy(self.address + offset, source, size)

    def view(self, shape: tuple[int, ...], dtype: torch.dtype, offset: int) -> torch.Tensor:
        size = math.prod(shape) * dtype.itemsize
        if size == 0:
            return torch.empty(shape, dtype=dtype, device="cuda")
        interface = {"shape": (size,), "typestr": "|u1", "data": (self.address + offset, False)}
        raw = torch.as_tensor(_Raw({**interface, "version": 3}), device="cuda")
        return raw.view(dtype).view(shape)

    def free(self) -> None:
        cuda_driver.call("cuMemFree_v2", ctypes.c_uint64(self.address))
        DeviceMemory.held -= self.bytes

    def close(self) -> None:
        """Close memory of another process."""
        cuda_driver.call("cuIpcCloseMemHandle", ctypes.c_uint64(self.address))


def copy_in_stream(target: int, source: int, size: int, stream: int) -> None:
    """Enqueue a copy from one address to another; ``stream`` is the driver's handle."""
    addresses = ctypes.c_uint64(target), ctypes.c_uint64(source)
    cuda_driver.call("cuMemcpyDtoDAsync_v2", *addresses, ctypes.c_size_t(size), ctypes.c_void_p(stream))


def shared(
    outputs: list[list[torch.Tensor]], known: dict[int, str]
) -> tuple[list[list[torch.Tensor]], dict[int, str]]:
    """Return the same outputs, copied if they lie in what cannot be shared, and address and handle of what they lie in.

    ``known`` are such addresses and handles that need not be asked for.
    """
    handles: dict[int, str] = {}

    def lying(tensor: torch.Tensor) -> torch.Tensor:
        allocation = DeviceMemory.around(tensor.data_ptr())
        if allocation.address not in handles:
            handles[allocation.address] = known.get(allocation.address) or allocation.export().hex()
        return tensor

    def of(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.numel():
            return tensor
        try:
            return lying(tensor)
        except DriverError:
            return lying(tensor.clone())

    return [[of(tensor) for tensor in leaves] for leaves in outputs], handles


def copy(target: int, source: int, size: int) -> None:
    """Copy from one address to another; the copy is done when this returns."""
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
