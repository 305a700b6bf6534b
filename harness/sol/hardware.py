"""Limits of devices: peak rates, clocks, bandwidth, caches.

Rates are dense, in TFLOP/s, with a multiply-add as two operations, as the
manufacturer's datasheets and architecture papers give them (NVIDIA's of T4,
A100, A10G, L4, L40S, H100, H200, B200 and the Ada and Blackwell GeForce papers).
``quoted_mhz`` is the SM clock at which they are quoted, ``max_mhz`` the highest that
the card may reach, ``rated_mhz`` the one at which guidance takes them to hold: the
highest, except for cards that boost far beyond what is quoted. A device at hand is
asked for its multiprocessors, L2, clocks and bus width, which may differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from harness import device as devices


class UnknownDevice(ValueError):
    """No limits are known for a device, and what to do about it."""


@dataclass(frozen=True)
class Limits:
    """Limits of a device. Rates in TFLOP/s, bandwidth in GB/s, clocks in MHz."""

    name: str  # as in ``kb sol --device h100-sxm``
    title: str
    fp32: float  # CUDA cores
    tf32: float | None  # tensor cores from here on; None where there are none for the type
    fp16: float
    bf16: float | None
    quoted_mhz: int
    max_mhz: int
    rated_mhz: int
    gbps: float
    memory_mhz: int
    bus_bits: int
    l2_bytes: int
    multiprocessors: int
    product_names: tuple[str, ...] = ()  # how the driver calls it
    fp16_accumulate: float | None = None  # FP16 with FP16 sums, where that is quicker
    fp8: float | None = None  # for review only: no bound uses it

    @property
    def max_gbps(self) -> float:
        """The larger of what is quoted and memory clock x bus width x 2 (double data rate)."""
        return max(self.gbps, self.memory_mhz * 1e6 * self.bus_bits / 8 * 2 / 1e9)

    @property
    def floor_tflops(self) -> float:
        """Return what no kernel exceeds without FP8 or sparsity: the quickest FP16 rate at the highest clock."""
        return max(self.fp16, self.fp16_accumulate or 0.0, self.fp32) * self.max_mhz / self.quoted_mhz


_MB = 1 << 20

DEVICES = {
    limits.name: limits
    for limits in (
        Limits("h100-sxm", "NVIDIA H100 SXM 80 GB", fp32=66.9, tf32=494.7, fp16=989.4, bf16=989.4, fp8=1979,
               quoted_mhz=1830, max_mhz=1980, rated_mhz=1980, gbps=3350, memory_mhz=2619, bus_bits=5120,
               l2_bytes=50 * _MB, multiprocessors=132, product_names=("NVIDIA H100 80GB HBM3",)),
        Limits("h100-pcie", "NVIDIA H100 PCIe", fp32=51.2, tf32=378, fp16=756, bf16=756, fp8=1513,
               quoted_mhz=1755, max_mhz=1755, rated_mhz=1755, gbps=2039, memory_mhz=1593, bus_bits=5120,
               l2_bytes=50 * _MB, multiprocessors=114, product_names=("NVIDIA H100 PCIe",)),
        Limits("h200", "NVIDIA H200", fp32=67, tf32=494.7, fp16=989.4, bf16=989.4, fp8=1979,
               quoted_mhz=1830, max_mhz=1980, rated_mhz=1980, gbps=4800, memory_mhz=3201, bus_bits=6144,
               l2_bytes=60 * _MB, multiprocessors=132, product_names=("NVIDIA H200",)),
        Limits("a100-sxm", "NVIDIA A100 SXM 80 GB", fp32=19.5, tf32=156, fp16=312, bf16=312,
               quoted_mhz=1410, max_mhz=1410, rated_mhz=1410, gbps=2039, memory_mhz=1593, bus_bits=5120,
               l2_bytes=40 * _MB, multiprocessors=108, product_names=("NVIDIA A100-SXM4-80GB",)),
        Limits("a100-pcie", "NVIDIA A100 PCIe 80 GB", fp32=19.5, tf32=156, fp16=312, bf16=312,
               quoted_mhz=1410, max_mhz=1410, rated_mhz=1410, gbps=1935, memory_mhz=1512, bus_bits=5120,
               l2_bytes=40 * _MB, multiprocessors=108, product_names=("NVIDIA A100 80GB PCIe",)),
        Limits("a100-40gb", "NVIDIA A100 40 GB", fp32=19.5, tf32=156, fp16=312, bf16=312,
               quoted_mhz=1410, max_mhz=1410, rated_mhz=1410, gbps=1555, memory_mhz=1215, bus_bits=5120,
               l2_bytes=40 * _MB, multiprocessors=108,
               product_names=("NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB")),
        Limits("l40s", "NVIDIA L40S", fp32=91.6, tf32=183, fp16=362, bf16=362, fp8=733,
               quoted_mhz=2520, max_mhz=2520, rated_mhz=2520, gbps=864, memory_mhz=9001, bus_bits=384,
               l2_bytes=48 * _MB, multiprocessors=142, product_names=("NVIDIA L40S",)),
        Limits("l4", "NVIDIA L4", fp32=30.3, tf32=60, fp16=121, bf16=121, fp8=242,
               quoted_mhz=2040, max_mhz=2040, rated_mhz=2040, gbps=300, memory_mhz=6251, bus_bits=192,
               l2_bytes=48 * _MB, multiprocessors=58, product_names=("NVIDIA L4",)),
        Limits("t4", "NVIDIA T4", fp32=8.1, tf32=None, fp16=65, bf16=None,
               quoted_mhz=1590, max_mhz=1590, rated_mhz=1590, gbps=320, memory_mhz=5001, bus_bits=256,
               l2_bytes=4 * _MB, multiprocessors=40, product_names=("Tesla T4",)),
        # the datasheet's 125 and 70 are of the A10; what an A10G reaches lies between, so the floor takes the larger
        Limits("a10g", "NVIDIA A10G", fp32=35, tf32=35, fp16=70, bf16=70, fp16_accumulate=125,
               quoted_mhz=1710, max_mhz=1710, rated_mhz=1710, gbps=600, memory_mhz=6251, bus_bits=384,
               l2_bytes=6 * _MB, multiprocessors=80, product_names=("NVIDIA A10G",)),
        Limits("rtx-4090", "NVIDIA GeForce RTX 4090", fp32=82.6, tf32=82.6, fp16=165.2, bf16=165.2,
               fp16_accumulate=330.3, fp8=330.3,
               quoted_mhz=2520, max_mhz=3105, rated_mhz=2520, gbps=1008, memory_mhz=10501, bus_bits=384,
               l2_bytes=72 * _MB, multiprocessors=128, product_names=("NVIDIA GeForce RTX 4090",)),
        Limits("b200", "NVIDIA B200", fp32=75, tf32=1100, fp16=2250, bf16=2250, fp8=4500,
               quoted_mhz=1860, max_mhz=1980, rated_mhz=1980, gbps=8000, memory_mhz=3996, bus_bits=7680,
               l2_bytes=126 * _MB, multiprocessors=148, product_names=("NVIDIA B200",)),
        Limits("rtx-5090", "NVIDIA GeForce RTX 5090", fp32=104.8, tf32=104.8, fp16=209.5, bf16=209.5,
               fp16_accumulate=419, fp8=419,
               quoted_mhz=2407, max_mhz=3090, rated_mhz=2407, gbps=1792, memory_mhz=14001, bus_bits=512,
               l2_bytes=96 * _MB, multiprocessors=170, product_names=("NVIDIA GeForce RTX 5090",)),
    )
}  # fmt: skip


def limits_of(name: str) -> Limits:
    """The device called ``name`` in the table; UnknownDevice where there is none."""
    if name not in DEVICES:
        raise UnknownDevice(f"no limits are known for '{name}'; there are: {', '.join(DEVICES)}")
    return DEVICES[name]


def limits_at_hand(device: torch.device) -> Limits:
    """The limits of a GPU of this machine; raises UnknownDevice as ``limits_of_device`` does."""
    return limits_of_device(devices.describe(device))


def limits_of_device(described: dict[str, Any]) -> Limits:
    """The limits of a device as records describe it: the table's, corrected by what the device says of itself.

    So a record and a prompt about the same device have the same limits. Raises UnknownDevice
    for a CPU and for a GPU that is not in the table.
    """
    found = limits_of_product(described["name"])
    if described["type"] != "cuda" or found is None:
        raise UnknownDevice(f"no limits are known for {described['name']}")
    per_multiprocessor = described["multiprocessors"] / found.multiprocessors  # a partition, or a cut-down card
    rates = {
        field: rate * per_multiprocessor
        for field in ("fp32", "tf32", "fp16", "bf16", "fp16_accumulate", "fp8")
        if (rate := getattr(found, field)) is not None
    }
    clocks = {field: described[field] for field in ("max_mhz", "memory_mhz", "bus_bits") if field in described}
    return replace(
        found, multiprocessors=described["multiprocessors"], l2_bytes=described["l2_bytes"], **rates, **clocks
    )


def limits_of_product(name: str) -> Limits | None:
    """Return limits by the name that the driver gives; None where it is not in the table."""
    return next((limits for limits in DEVICES.values() if name in limits.product_names), None)
