"""Theoretical occupancy: how many warps of an SM a kernel can keep resident, by its registers, shared memory and block.

References
----------
NVIDIA, CUDA C++ Programming Guide, "Occupancy Calculator" and table "Technical Specifications per Compute Capability".
NVIDIA, cuda_occupancy.h of the CUDA toolkit: the parts of an SM.
Registers are given to a warp in units of 256, shared memory to a block in units of 128 bytes (since compute
capability 8.0; 256 before), and 1 KiB of each block's shared memory is the system's from 8.0 on.
"""

from __future__ import annotations

import math

from harness.sol.datasheet import ARCHITECTURES, Architecture

_WARP = 32  # threads
_REGISTER_UNIT = 256  # registers of one warp
_PARTS = 4  # of an SM, each with a quarter of its registers: no warp has some of two
_SYSTEM_SHARED = 1024  # bytes a block, from 8.0 on


def occupancy_percent(capability: str, block_size: int, registers: int, shared_bytes: int) -> float | None:
    """Return resident warps in percent of the most that an SM holds; None for an unknown compute capability.

    Parameters
    ----------
    capability
        As in ``9.0``.
    block_size
        Threads of a block.
    registers
        32-bit registers of a thread.
    shared_bytes
        Shared memory of a block, static and dynamic.
    """
    limits = ARCHITECTURES.get(capability)
    if limits is None or block_size < 1:
        return None
    warps = math.ceil(block_size / _WARP)
    most_warps = limits.threads_per_sm // _WARP
    blocks = min(
        limits.blocks_per_sm,
        most_warps // warps,
        _by_registers(limits, warps, registers),
        _by_shared_memory(limits, capability, shared_bytes),
    )
    return 100.0 * blocks * warps / most_warps


def _by_registers(limits: Architecture, warps: int, registers: int) -> int:
    if registers < 1:
        return limits.blocks_per_sm
    a_warp = math.ceil(registers * _WARP / _REGISTER_UNIT) * _REGISTER_UNIT
    return limits.registers_per_sm // _PARTS // a_warp * _PARTS // warps


def _by_shared_memory(limits: Architecture, capability: str, shared_bytes: int) -> int:
    before_8 = int(capability.partition(".")[0]) < 8
    unit, system = (256, 0) if before_8 else (128, _SYSTEM_SHARED)
    a_block = math.ceil((shared_bytes + system) / unit) * unit
    return limits.shared_kb_per_sm * 1024 // a_block if a_block else limits.blocks_per_sm
