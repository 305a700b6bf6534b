"""Peak rates that this machine reaches: copies and square matrix products, beside the datasheet's.

Timed like a candidate: by the device's own method, with a flushed cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch

from harness.device import exclusive
from harness.sol.hardware import Limits, UnknownDevice, limits_at_hand
from harness.timing import timer_for

_WARM_UP_CALLS = 5
_CALLS = 20
_COPY_BYTES = {"cuda": 1 << 30, "cpu": 1 << 28}
_MATMUL_SIZE = {"cuda": 8192, "cpu": 1024}


@dataclass(frozen=True)
class Ceiling:
    what: str
    unit: str
    measured: float
    datasheet: float | None  # None where no datasheet's figure is known


def measure(device: torch.device) -> Iterator[Ceiling]:
    """One ceiling after the other; takes seconds. A product that the device cannot do is left out."""
    try:
        limits = limits_at_hand(device)
    except UnknownDevice:
        limits = None
    with exclusive(device), torch.no_grad():
        yield _copy(device, limits)
        for name, dtype, tf32 in _products(device):
            yield _matmul(device, name, dtype, tf32, limits)


def _products(device: torch.device) -> list[tuple[str, torch.dtype, bool]]:
    """(name, element type, whether TF32 is allowed) of the products that the device has units for."""
    if device.type == "cpu":
        return [("FP32", torch.float32, False)]
    products = [("FP32", torch.float32, False), ("TF32", torch.float32, True), ("FP16", torch.float16, False)]
    ampere = torch.cuda.get_device_capability(device) >= (8, 0)
    return [*products, ("BF16", torch.bfloat16, False)] if ampere else [products[0], products[2]]


def _copy(device: torch.device, limits: Limits | None) -> Ceiling:
    source = torch.ones(_COPY_BYTES[device.type] // 4, device=device)
    target = torch.empty_like(source)
    ms = _median_ms(device, partial(target.copy_, source))
    moved = 2 * source.numel() * source.element_size()
    return Ceiling("copy", "GB/s", moved / ms / 1e6, limits.gbps if limits else None)


def _matmul(device: torch.device, name: str, dtype: torch.dtype, tf32: bool, limits: Limits | None) -> Ceiling:
    size = _MATMUL_SIZE[device.type]
    # values as of a draw: power, and with it the clock, depends on them
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    try:
        ms = _median_ms(device, partial(torch.mm, a, b))
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    return Ceiling(f"{name} matmul {size}", "TFLOP/s", 2 * size**3 / ms / 1e9, getattr(limits, name.lower(), None))


def _median_ms(device: torch.device, action: Callable) -> float:
    timer = timer_for(device)

    def call(arguments: list) -> None:
        action()

    def run(calls: int) -> list[float]:
        return timer.run(call, [list] * calls, [lambda: None] * calls).times_ms

    run(_WARM_UP_CALLS)
    return median(run(_CALLS))
