"""Devices: their properties and state, and the lock that keeps timings apart."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import math
import os
import platform
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from harness.faults import MachineFault
from harness.process.deadline import take_lock, within

_EVERYBODYS = "/tmp"


class DeviceError(Exception):
    """The device that was asked for cannot be used, and what to do about it."""


def select(name: str | None) -> torch.device:
    """The device called ``name`` (``cuda``, ``cuda:1``, ``cpu``); without one, the GPU if there is one.

    Raises DeviceError where it cannot be used.
    """
    if name is None:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise DeviceError(f"'{name}' is no device; use cpu, cuda or cuda:INDEX") from None
    if device.type == "cpu":
        return torch.device("cpu")
    if device.type != "cuda":
        raise DeviceError(f"devices of type '{device.type}' are not supported; use cpu, cuda or cuda:INDEX")
    if not torch.cuda.is_available():
        why = "this PyTorch is a CPU build" if torch.version.cuda is None else "PyTorch finds no GPU"
        raise DeviceError(f"no GPU to run on: {why}. `kb doctor` says more; --device cpu runs on the CPU")
    index = device.index or 0
    if index >= torch.cuda.device_count():
        raise DeviceError(f"no device cuda:{index}: this machine has {torch.cuda.device_count()} GPU(s)")
    return torch.device("cuda", index)


def describe(device: torch.device) -> dict[str, Any]:
    """The device as the record names it."""
    if device.type == "cpu":
        return {"type": "cpu", "name": cpu_name(), "cores": os.cpu_count(), "threads": torch.get_num_threads()}
    properties = torch.cuda.get_device_properties(device)
    nvml = Nvml.open(device)
    return {
        "type": "cuda",
        "name": properties.name,
        "compute_capability": f"{properties.major}.{properties.minor}",
        "multiprocessors": properties.multi_processor_count,
        "memory_bytes": properties.total_memory,
        "l2_bytes": properties.L2_cache_size,
        "uuid": str(properties.uuid),
        **(nvml.limits() if nvml else {}),
    }


def versions(device: torch.device) -> dict[str, str]:
    """Return versions of Python, PyTorch, platform, CUDA and driver."""
    found = {"python": platform.python_version(), "torch": str(torch.__version__), "platform": platform.platform()}
    if device.type == "cuda":
        found["cuda"] = torch.version.cuda
        nvml = Nvml.open(device)
        found["driver"] = nvml.driver() if nvml else "not observed"
    return found


def architecture(device: torch.device) -> str | None:
    """Compute capability to build for, as in ``9.0``; None on a CPU."""
    if device.type != "cuda":
        return None
    major, minor = torch.cuda.get_device_capability(device)
    return f"{major}.{minor}"


def environment_of_one(device: torch.device) -> dict[str, str]:
    """Return variables with which a process sees this GPU only, as ``cuda:0``, and none that others are timed on."""
    if device.type == "cpu" or torch.cuda.device_count() == 1:
        return {}
    return {"CUDA_VISIBLE_DEVICES": f"GPU-{torch.cuda.get_device_properties(device).uuid}"}


def cpu_name() -> str:
    """Return the CPU's model name, or the machine type where the system does not tell."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
            return next(line.split(":", 1)[1].strip() for line in cpuinfo if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


@contextlib.contextmanager
def exclusive(device: torch.device, phase: Callable[[str], None] = lambda text: None) -> Iterator[None]:
    """Hold the device against every other evaluation on this host: one timed kernel at a time.

    Of a CPU it is the cores that this process may use: evaluations on other cores go on beside it. ``phase`` is told
    where another one holds it, and is waited for as long as it lives: each of its steps has an end, but a candidate
    that takes most of each has it for hours. A GPU also becomes the current one, for events, streams and the allocator
    are those of the current device.
    """
    with contextlib.ExitStack() as held:
        for name in _lock_names(device):
            _take_lock(held.enter_context(open(_lock_file(name), encoding="utf-8")).fileno(), name, phase)
        if device.type == "cuda":
            torch.cuda.set_device(device)
        yield


def _lock_names(device: torch.device) -> list[str]:
    """In the order in which everybody takes them, so that nobody waits for one who waits for him."""
    if device.type == "cuda":
        return [str(torch.cuda.get_device_properties(device).uuid)]
    if not hasattr(os, "sched_getaffinity"):
        return ["cpu"]
    return [f"cpu-{core}" for core in sorted(os.sched_getaffinity(0))]


def _take_lock(lock: int, name: str, phase: Callable[[str], None]) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        phase(f"waits for another run on this {'CPU' if name.startswith('cpu') else 'GPU'}")
        with within("waiting for another run on this device", math.inf):
            take_lock(lock, f"the lock of this device, {_lock_path(name)},", limit_s=None)


def _lock_file(name: str) -> int:
    """A descriptor of a file that is the same for everybody on this host, whatever their TMPDIR; made if need be."""
    path, flags = _lock_path(name), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    fault = MachineFault(f"{path} is no plain file, and holds the lock of this device: have it removed")
    try:
        try:
            lock = os.open(path, flags)  # to read is enough for a lock, and what others may who made none
        except FileNotFoundError:
            lock = os.open(path, flags | os.O_CREAT, 0o644)
    except OSError as error:
        raise (fault if error.errno == errno.ELOOP else error) from None
    if not stat.S_ISREG(os.fstat(lock).st_mode):
        os.close(lock)
        raise fault
    return lock


def _lock_path(name: str) -> str:
    folder = _EVERYBODYS if os.access(_EVERYBODYS, os.W_OK) else tempfile.gettempdir()
    return os.path.join(folder, f"kernelbench-{name}.lock")


class Observer:
    """Watches clocks, power and throttling of a GPU through NVML, never sets them.

    Without NVML (a CPU, or the ``nvml`` extra not installed) the conditions say so.
    """

    _EVERY_S = 0.05

    def __init__(self, device: torch.device):
        self._nvml = Nvml.open(device) if device.type == "cuda" else None
        self._samples: list[dict[str, Any]] = []
        self._last = 0.0

    @property
    def throttled(self) -> bool:
        """Return whether the clocks were held down when last seen."""
        return bool(self._samples and self._samples[-1].get("throttle_reasons"))

    def observe(self) -> None:
        """Take a sample, unless the last one is recent."""
        if self._nvml and time.monotonic() - self._last >= self._EVERY_S:
            if sample := self._nvml.sample():
                self._samples.append(sample)
            self._last = time.monotonic()

    def conditions(self) -> dict[str, Any]:
        if not self._samples:
            return {"clocks": "not observed"}
        found: dict[str, Any] = {"observations": len(self._samples)}
        for key in ("sm_clock_mhz", "memory_clock_mhz", "power_w", "temperature_c"):
            if values := sorted(sample[key] for sample in self._samples if key in sample):
                found[key] = {"min": values[0], "median": values[len(values) // 2], "max": values[-1]}
        if reasons := [sample["throttle_reasons"] for sample in self._samples if "throttle_reasons" in sample]:
            found["throttled"] = sorted(set().union(*reasons))
        return found


class Nvml:
    """The few NVML queries that a record needs."""

    # Reasons that mean the clocks were held down; idle and application settings are none.
    _THROTTLING = {
        0x4: "sw_power_cap",
        0x8: "hw_slowdown",
        0x20: "sw_thermal_slowdown",
        0x40: "hw_thermal_slowdown",
        0x80: "hw_power_brake",
    }

    def __init__(self, library, handle):
        self._library, self._handle = library, handle

    @classmethod
    def open(cls, device: torch.device) -> Nvml | None:
        """None where the nvml extra or the driver's library is missing."""
        try:
            import pynvml

            pynvml.nvmlInit()
            uuid = str(torch.cuda.get_device_properties(device).uuid)
            return cls(pynvml, pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}".encode()))
        except Exception:  # pynvml is optional, and its errors are of many types
            return None

    def driver(self) -> str:
        version = self._library.nvmlSystemGetDriverVersion()
        return version.decode() if isinstance(version, bytes) else version

    def limits(self) -> dict[str, int]:
        """Highest clocks in MHz and the width of the memory bus in bits; nothing where the driver does not tell."""
        n, handle = self._library, self._handle
        try:
            return {
                "max_mhz": n.nvmlDeviceGetMaxClockInfo(handle, n.NVML_CLOCK_SM),
                "memory_mhz": n.nvmlDeviceGetMaxClockInfo(handle, n.NVML_CLOCK_MEM),
                "bus_bits": n.nvmlDeviceGetMemoryBusWidth(handle),
            }
        except n.NVMLError:
            return {}

    def sample(self) -> dict[str, Any]:
        """Return what the GPU says now: clocks in MHz, power in W, temperature in C, reasons of throttling.

        A query that it does not support is left out: there are GPUs without power or memory clock.
        """
        n, handle = self._library, self._handle
        queries: dict[str, Callable[[], Any]] = {
            "sm_clock_mhz": lambda: n.nvmlDeviceGetClockInfo(handle, n.NVML_CLOCK_SM),
            "memory_clock_mhz": lambda: n.nvmlDeviceGetClockInfo(handle, n.NVML_CLOCK_MEM),
            "power_w": lambda: round(n.nvmlDeviceGetPowerUsage(handle) / 1e3),
            "temperature_c": lambda: n.nvmlDeviceGetTemperature(handle, n.NVML_TEMPERATURE_GPU),
            "throttle_reasons": self._throttle_reasons,
        }
        found = {}
        for name, query in queries.items():
            with contextlib.suppress(n.NVMLError):
                found[name] = query()
        return found

    def _throttle_reasons(self) -> list[str]:
        reasons = self._library.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle)
        return [name for bit, name in self._THROTTLING.items() if reasons & bit]
