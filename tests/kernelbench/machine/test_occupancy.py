"""Theoretical occupancy, by hand from the limits of an SM."""

import pytest

from kernelbench.machine.occupancy import occupancy_percent


@pytest.mark.parametrize(
    "capability, block, registers, shared, percent",
    [
        ("9.0", 256, 32, 0, 100.0),  # 64 warps / 8 a block = 8 blocks; registers for 64 warps
        ("9.0", 256, 64, 0, 50.0),  # 64 * 32 = 2,048 registers a warp: 32 warps, 4 blocks of 8
        ("9.0", 256, 65, 0, 37.5),  # 65 * 32 = 2,080, in units of 256 2,304: 28 warps, 3 blocks of 8
        ("9.0", 256, 32, 100 << 10, 25.0),  # 228 KiB hold 2 blocks of 100 KiB + 1 KiB: 16 of 64 warps
        ("9.0", 32, 32, 0, 50.0),  # 32 blocks of one warp
        ("8.6", 1024, 32, 0, 200 / 3),  # 48 warps: one block of 32
        ("7.5", 64, 255, 0, 25.0),  # 8,192 registers a warp: 8 of 32 warps
        ("9.0", 160, 80, 0, 31.25),  # 2,560 a warp: 6 in each of four parts, not 25 in all: 4 blocks of 5
        ("9.0", 1, 16, 0, 50.0),  # a block of one thread has a warp
    ],
)
def test_occupancy_by_hand(capability, block, registers, shared, percent):
    assert occupancy_percent(capability, block, registers, shared) == pytest.approx(percent)


def test_an_unknown_architecture_has_none():
    assert occupancy_percent("99.0", 256, 32, 0) is None and occupancy_percent("9.0", 0, 32, 0) is None
