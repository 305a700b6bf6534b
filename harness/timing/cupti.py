"""Activities of the device as CUPTI records them: kernels, copies and fills, with their times.

Called through ctypes, because the profiler of PyTorch takes seconds to start and
this takes a twentieth of one. The layouts are those of ``cupti_activity.h`` (CUDA 11 to 13).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import glob
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

_MEMCPY, _MEMSET, _KERNEL, _CONCURRENT_KERNEL = 1, 2, 3, 10  # CUpti_ActivityKind, from cupti_activity.h
_RECORDED = (_CONCURRENT_KERNEL, _MEMCPY, _MEMSET)
_BUFFER_BYTES = 1 << 20  # of CUPTI's records, some 5,000 kernels
_NAME_CHARACTERS = 500  # kept of a mangled name, which templates make long
_MOST_KERNELS = 100  # kept of a call, so that a record stays small
_DETACHES_FROM = (12, 6)  # before, a process with CUDA graphs may crash when CUPTI comes back


@dataclass(frozen=True)
class Activity:
    """One kernel, copy or fill. ``grid`` and ``block`` are in blocks and threads, empty for copies and fills.

    ``stream`` is CUPTI's number of the stream that it ran on, and ``aside`` whether that is not the stream of its call.
    """

    name: str
    begin_ns: int
    end_ns: int
    stream: int
    bytes: int = 0  # of a copy or fill
    registers: int = 0  # a thread
    shared_bytes: int = 0  # a block, static and dynamic
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    aside: bool = False

    @property
    def ms(self) -> float:
        return (self.end_ns - self.begin_ns) / 1e6


class _Head(ctypes.Structure):
    """Fields that records of copies and fills have in common; those of kernels begin with the same kind."""

    _fields_ = [("kind", ctypes.c_uint32), ("details", ctypes.c_uint32), ("bytes", ctypes.c_uint64),
                ("begin", ctypes.c_uint64), ("end", ctypes.c_uint64), ("device", ctypes.c_uint32),
                ("context", ctypes.c_uint32), ("stream", ctypes.c_uint32)]  # fmt: skip


class _Kernel(ctypes.Structure):
    """The beginning of CUpti_ActivityKernel4 and later."""

    _fields_ = [
        ("kind", ctypes.c_uint32), ("cache", ctypes.c_uint16), ("registers", ctypes.c_uint16),
        ("partitioned", ctypes.c_uint64), ("begin", ctypes.c_uint64), ("end", ctypes.c_uint64),
        ("completed", ctypes.c_uint64), ("device", ctypes.c_uint32), ("context", ctypes.c_uint32),
        ("stream", ctypes.c_uint32), ("grid", ctypes.c_int32 * 3), ("block", ctypes.c_int32 * 3),
        ("static_shared", ctypes.c_int32), ("dynamic_shared", ctypes.c_int32), ("local", ctypes.c_uint32 * 2),
        ("correlation", ctypes.c_uint32), ("grid_id", ctypes.c_int64), ("name", ctypes.c_char_p),
    ]  # fmt: skip


_Requested = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)
)
_Completed = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
)


class _Cupti:
    """The library, with buffers that come and go; one a process, for CUPTI has one set of callbacks."""

    def __init__(self, library: ctypes.CDLL):
        self._library = library
        self._detaches = tuple(map(int, torch.version.cuda.split("."))) >= _DETACHES_FROM
        self._buffers: dict[int, ctypes.Array] = {}
        self._callbacks = _Requested(self._request), _Completed(self._complete)
        self.activities: list[Activity] = []
        self._must_record()

    def _must_record(self) -> None:
        """Raise OSError where the library records nothing: another profiler may have it, or a driver refuse it."""
        torch.cuda.synchronize()
        self.start()
        try:
            torch.cuda._sleep(0)
            torch.cuda.synchronize()
        finally:
            self.stop()
        if not self.activities:
            raise OSError("CUPTI recorded nothing of a kernel")

    def _register(self) -> None:
        if code := self._library.cuptiActivityRegisterCallbacks(*self._callbacks):
            raise OSError(f"cuptiActivityRegisterCallbacks failed with {code}")

    def start(self) -> None:
        self._register()  # to detach forgets it
        self.activities = []
        for kind in _RECORDED:
            if code := self._library.cuptiActivityEnable(kind):
                self.stop()
                raise OSError(f"cuptiActivityEnable({kind}) failed with {code}")

    def stop(self) -> None:
        for kind in _RECORDED:
            self._library.cuptiActivityDisable(kind)
        self._library.cuptiActivityFlushAll(1)
        if self._detaches:
            self._library.cuptiFinalize()  # or every launch of this process takes a tenth longer from now on
        self.activities.sort(key=lambda activity: activity.begin_ns)

    def _request(self, buffer, size, most) -> None:
        memory = (ctypes.c_uint64 * (_BUFFER_BYTES // 8))()
        self._buffers[ctypes.addressof(memory)] = memory
        buffer[0], size[0], most[0] = ctypes.addressof(memory), _BUFFER_BYTES, 0

    def _complete(self, context, stream, buffer, size, valid) -> None:
        record = ctypes.c_void_p()
        next_record = self._library.cuptiActivityGetNextRecord
        while next_record(ctypes.c_void_p(buffer), ctypes.c_size_t(valid), ctypes.byref(record)) == 0:
            self.activities.append(_activity(record.value))
        self._buffers.pop(buffer, None)


def _activity(address: int) -> Activity:
    head = _Head.from_address(address)
    if head.kind not in (_KERNEL, _CONCURRENT_KERNEL):
        name = "memcpy" if head.kind == _MEMCPY else "memset"
        return Activity(name, head.begin, head.end, head.stream, head.bytes)
    kernel = _Kernel.from_address(address)
    return Activity(
        demangled(kernel.name or b"")[:_NAME_CHARACTERS], kernel.begin, kernel.end, kernel.stream, 0, kernel.registers,
        kernel.static_shared + kernel.dynamic_shared, tuple(kernel.grid), tuple(kernel.block),
    )  # fmt: skip


@functools.cache
def _open() -> _Cupti | None:
    """None where there is no CUPTI, or where it records nothing."""
    major = (torch.version.cuda or "").partition(".")[0]
    if not major:
        return None
    name = f"libcupti.so.{major}"
    spec = importlib.util.find_spec("nvidia")
    folders = [*(spec.submodule_search_locations or [])] if spec else []
    places = [path for folder in folders for path in glob.glob(f"{folder}/*/lib/{name}")]
    for place in [name, *places, f"/usr/local/cuda/lib64/{name}", f"/usr/local/cuda/extras/CUPTI/lib64/{name}"]:
        with contextlib.suppress(OSError):
            return _Cupti(ctypes.CDLL(place))
    return None


def available() -> bool:
    """Return whether CUPTI can record what the device runs."""
    return torch.cuda.is_available() and _open() is not None


@contextlib.contextmanager
def recording() -> Iterator[list[Activity]]:
    """Records what the device runs meanwhile; the list is filled, in order of begin, when the block ends."""
    cupti, found = _open(), []
    torch.cuda.synchronize()
    cupti.start()
    try:
        yield found
        torch.cuda.synchronize()
    finally:
        cupti.stop()
        found += cupti.activities


def breakdown(calls: list[list[Activity]]) -> dict[str, Any]:
    """Return span, launches and kernels by name of the call with the median span, longest first.

    The span, in ms, is from the begin of its first activity to the end of its last. ``side_launches`` are those on
    other streams than the call's.
    """
    spanned = sorted(((_span_ms(call), call) for call in calls), key=lambda pair: pair[0])
    span_ms, call = spanned[len(spanned) // 2] if spanned else (0.0, [])
    by_name: dict[str, list[Activity]] = {}
    for activity in call:
        by_name.setdefault(activity.name, []).append(activity)
    kernels = [
        {
            "name": name, "launches": len(same), "ms": round(sum(a.ms for a in same), 6),
            "registers": same[0].registers, "shared_bytes": same[0].shared_bytes,
            "grid": same[0].grid, "block": same[0].block,
        }
        for name, same in by_name.items()
    ]  # fmt: skip
    kernels.sort(key=lambda kernel: -kernel["ms"])
    side_launches = sum(activity.aside for activity in call)
    return {
        "span_ms": round(span_ms, 6), "launches": len(call), "side_launches": side_launches,
        "kernels": kernels[:_MOST_KERNELS],
    }  # fmt: skip


def _span_ms(call: list[Activity]) -> float:
    return (max(a.end_ns for a in call) - call[0].begin_ns) / 1e6 if call else 0.0


@functools.lru_cache(maxsize=4096)
def demangled(name: bytes) -> str:
    """A C++ symbol as people write it; as it is where it is none."""
    library = ctypes.CDLL("libstdc++.so.6")
    library.__cxa_demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    readable = library.__cxa_demangle(name, None, None, ctypes.byref(status))
    if status.value != 0 or not readable:
        return name.decode(errors="replace")
    try:
        return ctypes.string_at(readable).decode(errors="replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(readable))
